"""What Anthropic Messages makes up in its events."""

from __future__ import annotations

from mockllm.protocols.base import Normalisation

__all__ = ["NORMALISATION"]

NORMALISATION = Normalisation(
    # The usage of `message_start` is what was counted so far; `message_delta` sends it again.
    made_up=frozenset(
        {"message.id", "message.model", "request_id", "message.usage"}
        | {"usage.inference_geo", "usage.service_tier", "usage.cache_creation"}
    ),
    keepalive=frozenset({"ping"}),
    envelope="message",
)
