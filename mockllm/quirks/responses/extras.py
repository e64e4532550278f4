"""Quirks of Responses streams: unknown events, missing fields, other names."""

from __future__ import annotations

from typing import Any

from mockllm.quirks import samples
from mockllm.quirks.base import Context, FramesChange, Item, Variant, each, each_with
from mockllm.quirks.ends import with_done
from mockllm.quirks.responses import events
from mockllm.quirks.typed_events import event, kind, last


def _after_openers(type: str) -> FramesChange:
    @events.numbered
    def change(items: list[Item], context: Context) -> list[Item]:
        position = last(items, *events.OPENERS)
        if position is None:
            return items
        added = events.new_event(items[position].at, type)
        return [*items[: position + 1], added, *items[position + 1 :]]

    return change


@events.numbered
def _keepalive_between(items: list[Item], context: Context) -> list[Item]:
    pairs = ((item, events.new_event(item.at, "keepalive")) for item in items)
    return [each for pair in pairs for each in pair][:-1]


KEEPALIVE = events.quirk(
    "resp-keepalive",
    samples.TEXT,
    Variant(frames=_after_openers("keepalive")),
    Variant("everywhere", _keepalive_between),
)

_UNKNOWN = "kit_unknown"


@events.numbered
def _unknown_item(items: list[Item], context: Context) -> list[Item]:
    used = [number for item in items if (number := events.index(item)) is not None]
    where = {"output_index": max(used, default=-1) + 1}
    whole: dict[str, Any] = {"id": "ku_1", "type": _UNKNOWN, "status": "completed", "value": "new"}
    end = last(items, *events.TERMINAL)
    end = len(items) if end is None else end
    at = items[end - 1].at if end else 0
    for item in items[end : end + 1]:
        if isinstance(events.response(item).get("output"), list):
            events.response(item)["output"].append(dict(whole))
    added = events.new_event(
        at, events.ITEM_ADDED, **where, item={**whole, "status": "in_progress", "value": ""}
    )
    return [
        *items[:end],
        added,
        events.new_event(at, events.ITEM_DONE, **where, item=whole),
        *items[end:],
    ]


def _contents(item: Item) -> list[list[Any]]:
    entries = [events.output_item(item)] if kind(item) == events.ITEM_DONE else events.output(item)
    return [
        entry["content"]
        for entry in entries
        if entry.get("type") == "message" and isinstance(entry.get("content"), list)
    ]


@events.numbered
def _unknown_part(items: list[Item], context: Context) -> list[Item]:
    changed = []
    for item in items:
        for content in _contents(item):
            if kind(item) == events.ITEM_DONE:
                where = {"item_id": events.item_id(item), "output_index": events.index(item)}
                where["content_index"] = len(content)
                for step in ("added", "done"):
                    part = {"type": _UNKNOWN, "value": "new"}
                    changed.append(
                        events.new_event(
                            item.at, f"response.content_part.{step}", **where, part=part
                        )
                    )
            content.append({"type": _UNKNOWN, "value": "new"})
        changed.append(item)
    return changed


UNKNOWN_EVENT = events.quirk(
    "resp-unknown-event",
    samples.TEXT,
    Variant("event", _after_openers(f"response.{_UNKNOWN}.event")),
    Variant("item", _unknown_item),
    Variant("part", _unknown_part),
)


@each_with(list)
def _lacking(item: Item, field: str, *types: str) -> None:
    """Removes a field from the events of these types (none: from all events)."""
    if not types or kind(item) in types:
        event(item).pop(field, None)


def _without_arguments(item: Item) -> None:
    if kind(item) == events.ITEM_ADDED:
        events.output_item(item).pop("arguments", None)


REQUIRED_MISSING = events.quirk(
    "resp-required-missing",
    samples.TEXT_AND_CALL,
    Variant("sequence-number", _lacking("sequence_number")),
    Variant(
        "logprobs", _lacking("logprobs", "response.output_text.delta", "response.output_text.done")
    ),
    Variant("arguments", each(list, _without_arguments)),
)


_LEGACY_TEXT = {
    "response.output_text.delta": "response.text.delta",
    "response.output_text.done": "response.text.done",
}
_LEGACY_END = {"response.completed": "response.done"}


@each_with(list)
def _renamed(item: Item, names: dict[str, str]) -> None:
    if kind(item) in names:
        events.rename(item, names[kind(item)])


LEGACY_NAMES = events.quirk(
    "resp-legacy-names",
    samples.TEXT,
    Variant("all", _renamed(_LEGACY_TEXT | _LEGACY_END)),
    Variant("text", _renamed(_LEGACY_TEXT)),
    Variant("done", _renamed(_LEGACY_END)),
)


DONE_SENTINEL = events.quirk(
    "resp-done-sentinel",
    samples.TEXT,
    Variant(frames=with_done(lambda items: last(items, *events.TERMINAL) is not None)),
)
