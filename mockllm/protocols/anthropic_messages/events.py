"""Events of Anthropic Messages: which of them end an answer, and where they hold text."""

from __future__ import annotations

from mockllm.protocols.records import StreamEvents
from mockllm.protocols.values import mapped_text

__all__ = ["EVENTS"]

_ENDINGS = ("message_delta", "message_stop", "error")

EVENTS = StreamEvents(
    is_end=lambda event: bool(event.get("error")) or event.get("type") in _ENDINGS,
    map_text=mapped_text(lambda name, _: name in ("text", "thinking"), frozenset({"input"})),
    id_path="message.id",
    model_path="message.model",
)
