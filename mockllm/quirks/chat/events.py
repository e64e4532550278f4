"""Quirks of events between the chunks, which are no chunks themselves."""

from __future__ import annotations

from mockllm.quirks.base import Context, Item, Quirk, Variant
from mockllm.quirks.chat.chunks import choices_of, inserted
from mockllm.quirks.samples import TEXT_AND_CALL


def _progress(items: list[Item], context: Context) -> list[Item]:
    first = next(choices_of(items), None)
    if first is None:
        return items
    data = {"tool": "web_search", "label": "Searching", "status": "running"}
    return inserted(items, first.item, [Item(first.item.at, data, event="agent.tool.progress")])


QUIRKS: tuple[Quirk, ...] = (
    Quirk("chat-named-event", TEXT_AND_CALL, (Variant(frames=_progress),), only=("chat",)),
)
