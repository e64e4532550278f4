"""The fields of Chat Completions that the service generates anew, and where it adds others."""

from __future__ import annotations

from mockllm.protocols.records import Normalisation, Place

NORMALISATION = Normalisation(
    made_up=frozenset(
        {"id", "created", "model", "service_tier", "system_fingerprint", "obfuscation"}
    ),
    places={
        "event": Place(("",), ("",)),
        "choice": Place(("choices",), ("choices",)),
        "message": Place(("choices.delta",), ("choices.message",)),
        "call": Place(("choices.delta.tool_calls",), ("choices.message.tool_calls",), is_call=True),
        "usage": Place(("usage",), ("usage",)),
    },
)
