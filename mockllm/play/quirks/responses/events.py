"""Access to events of Responses streams for the quirks, and new events.

Only small functions on items may live here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from mockllm.play.quirks.base import Context, FramesChange, Item, drop, quirks_of, with_parameters
from mockllm.play.quirks.streams import at_times_of, event, kind
from mockllm.wire.protocols.openai_responses.parts import (
    INPUTS,
    OUTPUT_TEXT,
    REASONING,
    REFUSAL,
    SUMMARY,
)
from mockllm.wire.protocols.records import Json
from mockllm.wire.protocols.values import array

quirk = quirks_of("responses")
"""A quirk of Responses."""

ARGUMENTS_DELTA = "response.function_call_arguments.delta"
ARGUMENTS_DONE = "response.function_call_arguments.done"
ITEM_ADDED = "response.output_item.added"
ITEM_DONE = "response.output_item.done"

OPENERS = frozenset({"response.created", "response.queued", "response.in_progress"})
COMPLETE = frozenset({"response.completed", "response.incomplete"})
TERMINAL = COMPLETE | {"response.failed"}

VALUES = {
    f"response.{part.stem}": part.value
    for part in (OUTPUT_TEXT, REFUSAL, REASONING, SUMMARY, INPUTS["function_call"])
}
"""By the stem of a `.delta` event's type: the field of its `.done` event with the whole value."""


# Reading


def _mapping(value: object) -> Json:
    return value if isinstance(value, dict) else {}


def output_item(item: Item) -> Json:
    """The output item in an `added` or `done` event; {} where it has none."""
    return _mapping(event(item).get("item"))


def response(item: Item) -> Json:
    """The response object in an event; {} where it has none."""
    return _mapping(event(item).get("response"))


def output(item: Item) -> list[Json]:
    """The output items in the response object of an event."""
    return list(map(_mapping, array(response(item).get("output"))))


def output_items(item: Item) -> Iterator[Json]:
    """The output items in an event, in its `item` or in its response object."""
    yield output_item(item)
    yield from output(item)


def item_id(item: Item) -> str | None:
    """The id of the output item that an event belongs to; None where it has none."""
    named = output_item(item).get("id") if "item" in event(item) else event(item).get("item_id")
    return named if isinstance(named, str) else None


def index(item: Item) -> int | None:
    """The `output_index` of an event."""
    named = event(item).get("output_index")
    return named if type(named) is int else None


def value_key(item: Item) -> tuple[str, ...]:
    """The key that a `.delta` event and its `.done` event share: the kind of value, item and
    indexes."""
    value = event(item)
    ids = (value.get(name) for name in ("item_id", "content_index", "summary_index"))
    return (kind(item).rpartition(".")[0], *map(repr, ids))


# Changes


@with_parameters
def with_consecutive_numbers(
    items: list[Item], context: Context, change: FramesChange
) -> list[Item]:
    """The change with consecutive sequence numbers after it inserted, dropped or moved events."""
    before = list(items)
    first = min(_numbers(before), default=0)
    after = change(items, context)
    if len(after) != len(before) or any(a is not b for a, b in zip(after, before, strict=True)):
        with_number = (item for item in after if next(_numbers([item]), None) is not None)
        for number, item in enumerate(with_number, first):
            item.data["sequence_number"] = number
    return after


def _numbers(items: Iterable[Item]) -> Iterator[int]:
    for item in items:
        number = event(item).get("sequence_number")
        if type(number) is int:
            yield number


def new_event(at: int, type: str, **fields: Any) -> Item:
    """A new event; `numbered` gives it its number."""
    return Item(at, {"type": type, "sequence_number": 0, **fields}, event=type)


def rename(item: Item, type: str) -> None:
    """Changes the type of an event."""
    item.data["type"] = type
    if item.event is not None:
        item.event = type


def without(*types: str) -> FramesChange:
    """A change that removes all events of these types."""

    return with_consecutive_numbers(drop(lambda item: kind(item) in types))


def reorder(items: list[Item], moved: list[Item]) -> list[Item]:
    """The items, with those that have an `output_index` in another order.

    All other items keep their positions, and each position keeps its time.

    Args:
        moved: the items that have an `output_index`, in their new order.
    """
    rest = iter(moved)
    return at_times_of(items, [item if index(item) is None else next(rest) for item in items])
