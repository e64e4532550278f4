"""Events of Responses: which of them end an answer, and what their fields hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mockllm.protocols.records import FieldNames, StreamEvents
from mockllm.protocols.values import mapped_text

_ENDINGS = ("response.completed", "response.incomplete", "response.failed", "error")
_TEXT_DELTAS = ("text.delta", "refusal.delta")


def _is_text(name: str, value: Mapping[str, Any]) -> bool:
    if name == "delta":  # of text or of arguments
        return str(value.get("type")).endswith(_TEXT_DELTAS)
    return name in ("text", "refusal")


FIELDS = FieldNames(
    fragments=frozenset({"arguments", "content", "delta", "input", "refusal", "text"}),
    arguments=frozenset({"arguments"}),
    labels=frozenset({"call_id", "id", "item_id", "model", "name", "object", "response_id"})
    | {"role", "service_tier", "status", "type"},
    opaque=frozenset({"encrypted_content", "obfuscation"}),
    item_ids=frozenset({"content_index", "item_id", "output_index", "summary_index"}),
)

EVENTS = StreamEvents(
    is_end=lambda event: bool(event.get("error")) or event.get("type") in _ENDINGS,
    map_text=mapped_text(_is_text, frozenset({"input", "logprobs", "tools"})),
    id_path="response.id",
    model_path="response.model",
)
