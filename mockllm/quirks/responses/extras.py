"""Quirks of Responses streams: unknown events, missing fields, other names."""

from __future__ import annotations

from typing import Any

from mockllm.quirks import samples
from mockllm.quirks.base import Context, FramesChange, Item, Variant, each, each_with
from mockllm.quirks.ends import with_done
from mockllm.quirks.responses.events import (
    ITEM_ADDED,
    ITEM_DONE,
    OPENERS,
    TERMINAL,
    index,
    item_id,
    new_event,
    numbered,
    output,
    output_item,
    quirk,
    rename,
    response,
)
from mockllm.quirks.typed_events import event, kind, last


def _after_openers(type: str) -> FramesChange:
    @numbered
    def change(items: list[Item], context: Context) -> list[Item]:
        position = last(items, *OPENERS)
        if position is None:
            return items
        added = new_event(items[position].at, type)
        return [*items[: position + 1], added, *items[position + 1 :]]

    return change


@numbered
def _keepalive_between(items: list[Item], context: Context) -> list[Item]:
    pairs = ((item, new_event(item.at, "keepalive")) for item in items)
    return [each for pair in pairs for each in pair][:-1]


KEEPALIVE = quirk(
    "resp-keepalive",
    samples.TEXT,
    Variant(frames=_after_openers("keepalive")),
    Variant("everywhere", _keepalive_between),
)

_UNKNOWN = "kit_unknown"


@numbered
def _unknown_item(items: list[Item], context: Context) -> list[Item]:
    used = [number for item in items if (number := index(item)) is not None]
    where = {"output_index": max(used, default=-1) + 1}
    whole: dict[str, Any] = {"id": "ku_1", "type": _UNKNOWN, "status": "completed", "value": "new"}
    end = last(items, *TERMINAL)
    end = len(items) if end is None else end
    at = items[end - 1].at if end else 0
    for item in items[end : end + 1]:
        if isinstance(response(item).get("output"), list):
            response(item)["output"].append(dict(whole))
    added = new_event(at, ITEM_ADDED, **where, item={**whole, "status": "in_progress", "value": ""})
    return [*items[:end], added, new_event(at, ITEM_DONE, **where, item=whole), *items[end:]]


def _contents(item: Item) -> list[list[Any]]:
    entries = [output_item(item)] if kind(item) == ITEM_DONE else output(item)
    return [
        entry["content"]
        for entry in entries
        if entry.get("type") == "message" and isinstance(entry.get("content"), list)
    ]


@numbered
def _unknown_part(items: list[Item], context: Context) -> list[Item]:
    changed = []
    for item in items:
        for content in _contents(item):
            if kind(item) == ITEM_DONE:
                where = {"item_id": item_id(item), "output_index": index(item)}
                where["content_index"] = len(content)
                for step in ("added", "done"):
                    part = {"type": _UNKNOWN, "value": "new"}
                    changed.append(
                        new_event(item.at, f"response.content_part.{step}", **where, part=part)
                    )
            content.append({"type": _UNKNOWN, "value": "new"})
        changed.append(item)
    return changed


UNKNOWN_EVENT = quirk(
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
    if kind(item) == ITEM_ADDED:
        output_item(item).pop("arguments", None)


REQUIRED_MISSING = quirk(
    "resp-required-missing",
    samples.TEXT_AND_CALL,
    Variant("sequence-number", _lacking("sequence_number")),
    Variant(
        "logprobs",
        _lacking("logprobs", "response.output_text.delta", "response.output_text.done"),
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
        rename(item, names[kind(item)])


LEGACY_NAMES = quirk(
    "resp-legacy-names",
    samples.TEXT,
    Variant("all", _renamed(_LEGACY_TEXT | _LEGACY_END)),
    Variant("text", _renamed(_LEGACY_TEXT)),
    Variant("done", _renamed(_LEGACY_END)),
)


DONE_SENTINEL = quirk(
    "resp-done-sentinel",
    samples.TEXT,
    Variant(frames=with_done(lambda items: last(items, *TERMINAL) is not None)),
)
