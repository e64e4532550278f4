"""The fields of Anthropic Messages that the service generates anew, and where it adds others."""

from __future__ import annotations

from mockllm.protocols.records import Normalisation, ObjectPlace

NORMALISATION = Normalisation(
    # The usage in `message_start` is provisional; `message_delta` has the final one.
    made_up=frozenset(
        {"message.id", "message.model", "message.usage", "id", "model", "request_id"}
        | {"usage.inference_geo"}
    ),
    keepalive=frozenset({"ping"}),
    places={
        "event": ObjectPlace(("",), ()),
        "message": ObjectPlace(("message",), ("",)),
        "call": ObjectPlace(("content_block",), ("content",), is_call=True),
        "usage": ObjectPlace(("usage",), ("usage",)),
    },
)
