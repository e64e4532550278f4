"""Events of AG-UI: which of them end an answer, and what their fields hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mockllm.protocols.ag_ui.objects import ENDINGS
from mockllm.protocols.records import FieldNames, StreamEvents
from mockllm.protocols.values import mapped_text, string


def _is_text(name: str, event: Mapping[str, Any]) -> bool:
    # Arguments of calls are deltas, too.
    return name == "delta" and str(event.get("type")).endswith("MESSAGE_CONTENT")


FIELDS = FieldNames(
    fragments=frozenset({"content", "delta"}),
    arguments=frozenset({"arguments"}),
    labels=frozenset({"id", "messageId", "name", "parentMessageId", "role", "runId"})
    | {"threadId", "toolCallId", "toolCallName", "type"},
    item_ids=frozenset({"messageId", "toolCallId"}),
)

EVENTS = StreamEvents(
    is_end=lambda event: bool(event.get("error")) or string(event.get("type")) in ENDINGS,
    map_text=mapped_text(_is_text, frozenset({"input"})),
)
