"""Events of Gemini: which of them end an answer, and what their fields hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mockllm.protocols.records import FieldNames, StreamEvents
from mockllm.protocols.values import mapped_text, mapping


def _is_end(chunk: Mapping[str, Any]) -> bool:
    candidates = chunk.get("candidates")
    return bool(chunk.get("error") or chunk.get("promptFeedback")) or (
        isinstance(candidates, list)
        and any(mapping(candidate).get("finishReason") for candidate in candidates)
    )


FIELDS = FieldNames(
    fragments=frozenset({"text"}),
    arguments=frozenset({"args"}),
    labels=frozenset({"finishReason", "id", "modelVersion", "name", "responseId", "role"}),
    opaque=frozenset({"thoughtSignature"}),
    item_ids=frozenset({"index"}),
)

EVENTS = StreamEvents(
    is_end=_is_end,
    map_text=mapped_text(
        lambda name, _: name == "text", frozenset({"functionCall", "groundingMetadata"})
    ),
    id_path="responseId",
    model_path="modelVersion",
)
