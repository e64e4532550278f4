"""Events of Anthropic Messages: which of them end an answer, and what their fields hold."""

from __future__ import annotations

from mockllm.protocols.records import FieldNames, StreamEvents
from mockllm.protocols.values import mapped_text

_ENDINGS = ("message_delta", "message_stop", "error")

FIELDS = FieldNames(
    fragments=frozenset({"input", "partial_json", "text", "thinking"}),
    arguments=frozenset({"partial_json"}),
    labels=frozenset({"id", "model", "name", "role", "stop_reason", "type"}),
    opaque=frozenset({"signature"}),
    item_ids=frozenset({"index"}),
)

EVENTS = StreamEvents(
    is_end=lambda event: bool(event.get("error")) or event.get("type") in _ENDINGS,
    map_text=mapped_text(lambda name, _: name in ("text", "thinking"), frozenset({"input"})),
    id_path="message.id",
    model_path="message.model",
)
