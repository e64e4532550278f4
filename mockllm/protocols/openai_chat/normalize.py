"""The fields of Chat Completions that the service generates anew, and where it adds others."""

from __future__ import annotations

from mockllm.protocols.records import Normalisation, ObjectPlace

NORMALISATION = Normalisation(
    made_up=frozenset(
        {"id", "created", "model", "service_tier", "system_fingerprint", "obfuscation"}
    ),
    places={
        "event": ObjectPlace(("",), ("",)),
        "choice": ObjectPlace(("choices",), ("choices",)),
        "message": ObjectPlace(("choices.delta",), ("choices.message",)),
        "call": ObjectPlace(
            ("choices.delta.tool_calls",), ("choices.message.tool_calls",), is_call=True
        ),
        "usage": ObjectPlace(("usage",), ("usage",)),
    },
)
