"""The fields of Anthropic Messages that the service generates anew for each answer."""

from __future__ import annotations

from mockllm.protocols.records import Normalisation

__all__ = ["NORMALISATION"]

NORMALISATION = Normalisation(
    # The usage in `message_start` is provisional; `message_delta` has the final one.
    made_up=frozenset(
        {"message.id", "message.model", "request_id", "message.usage"}
        | {"usage.inference_geo", "usage.service_tier", "usage.cache_creation"}
    ),
    keepalive=frozenset({"ping"}),
    envelope="message",
)
