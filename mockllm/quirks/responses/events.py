"""What changes of Responses streams have in common: what an event is about, and new events.

Frames that a scenario holds as they are may say anything: whatever is no event of the expected
shape counts as an empty one here. Only small functions on items may live here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from mockllm.quirks.base import Context, FramesChange, Item

__all__ = [
    "ARGUMENTS_DELTA",
    "ARGUMENTS_DONE",
    "COMPLETE",
    "ITEM_ADDED",
    "ITEM_DONE",
    "OPENERS",
    "TERMINAL",
    "VALUES",
    "event",
    "index",
    "kind",
    "last",
    "made",
    "numbered",
    "output",
    "owner",
    "put_back",
    "rename",
    "response",
    "shown",
    "shown_items",
    "slot",
    "without",
]

ARGUMENTS_DELTA = "response.function_call_arguments.delta"
ARGUMENTS_DONE = "response.function_call_arguments.done"
ITEM_ADDED = "response.output_item.added"
ITEM_DONE = "response.output_item.done"

OPENERS = frozenset({"response.created", "response.queued", "response.in_progress"})
COMPLETE = frozenset({"response.completed", "response.incomplete"})
TERMINAL = COMPLETE | {"response.failed"}

VALUES = {
    "response.output_text": "text",
    "response.refusal": "refusal",
    "response.reasoning_text": "text",
    "response.reasoning_summary_text": "text",
    "response.function_call_arguments": "arguments",
}
"""What comes in `.delta` events, and the field in which its `.done` event has it whole."""


# What an event is about


def event(item: Item) -> dict[str, Any]:
    """The event in an item; an empty one where it holds none."""
    data = item.data
    return data if isinstance(data, dict) and isinstance(data.get("type"), str) else {}


def kind(item: Item) -> str:
    """The type of the event in an item; `""` where it holds none."""
    return str(event(item).get("type", ""))


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def shown(item: Item) -> dict[str, Any]:
    """The output item that an `added` or `done` event shows."""
    return _mapping(event(item).get("item"))


def response(item: Item) -> dict[str, Any]:
    """The response object that an event shows."""
    return _mapping(event(item).get("response"))


def output(item: Item) -> list[dict[str, Any]]:
    """The output items of the response object that an event shows."""
    listed = response(item).get("output")
    return [_mapping(entry) for entry in listed] if isinstance(listed, list) else []


def shown_items(item: Item) -> Iterator[dict[str, Any]]:
    """The output items that an event shows, by itself or in its response object."""
    yield shown(item)
    yield from output(item)


def owner(item: Item) -> str | None:
    """The id of the output item that an event is about."""
    named = shown(item).get("id") if "item" in event(item) else event(item).get("item_id")
    return named if isinstance(named, str) else None


def index(item: Item) -> int | None:
    """The `output_index` of an event."""
    named = event(item).get("output_index")
    return named if type(named) is int else None


def slot(item: Item) -> tuple[str, ...]:
    """What a `.delta` and its `.done` event have in common: what of which item they tell."""
    value = event(item)
    where = (value.get(name) for name in ("item_id", "content_index", "summary_index"))
    return (kind(item).rpartition(".")[0], *map(repr, where))


# Changes


def numbered(change: FramesChange) -> FramesChange:
    """The change with sequence numbers made right again where it inserts, drops or moves."""

    def played(items: list[Item], context: Context) -> list[Item]:
        before = list(items)
        first = min(_numbers(before), default=0)
        after = change(items, context)
        if len(after) != len(before) or any(a is not b for a, b in zip(after, before, strict=True)):
            with_number = (item for item in after if next(_numbers([item]), None) is not None)
            for number, item in enumerate(with_number, first):
                item.data["sequence_number"] = number
        return after

    return played


def _numbers(items: Iterable[Item]) -> Iterator[int]:
    for item in items:
        number = event(item).get("sequence_number")
        if type(number) is int:
            yield number


def made(at: int, type: str, **fields: Any) -> Item:
    """A new event; `numbered` gives it its number."""
    return Item(at, {"type": type, "sequence_number": 0, **fields}, event=type)


def rename(item: Item, type: str) -> None:
    """Calls an event by another type."""
    item.data["type"] = type
    if item.event is not None:
        item.event = type


def without(*types: str) -> FramesChange:
    """The change that leaves out all events of these types."""

    @numbered
    def change(items: list[Item], context: Context) -> list[Item]:
        return [item for item in items if kind(item) not in types]

    return change


def last(items: list[Item], types: frozenset[str]) -> int | None:
    """The place of the last event that has one of these types."""
    return next((i for i in reversed(range(len(items))) if kind(items[i]) in types), None)


def put_back(items: list[Item], moved: list[Item]) -> list[Item]:
    """The items with those that have an `output_index` in another order.

    All other items stay where they are, and each place keeps its time.

    Args:
        moved: the items that have an `output_index`, in their new order.
    """
    times = [item.at for item in items]
    rest = iter(moved)
    placed = [item if index(item) is None else next(rest) for item in items]
    for at, item in zip(times, placed, strict=True):
        item.at = at
    return placed
