"""Shared by the quirks of several APIs: the types of events, where answers end, and what clients
may make of changed turns.

A scenario may send raw frames with any content. A frame that is not an event counts as an empty
event.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any, TypeVar

from mockllm.core.events import StreamError
from mockllm.core.turn import ToolCall, Turn
from mockllm.play.quirks.base import Context, Item, Tolerance, with_parameters
from mockllm.scenario.model import Api
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.base import dumps
from mockllm.wire.protocols.records import Json
from mockllm.wire.protocols.values import sendable_value

# Events that name their type in the field `type`


def event(item: Item) -> Json:
    """The event in an item; {} where it holds none."""
    data = item.data
    return data if isinstance(data, dict) and isinstance(data.get("type"), str) else {}


def kind(item: Item) -> str:
    """The type of the event in an item; "" where it holds none."""
    return str(event(item).get("type", ""))


def last(items: list[Item], *types: str) -> int | None:
    """The position of the last event that has one of these types; None where none has."""
    return next((i for i in reversed(range(len(items))) if kind(items[i]) in types), None)


# The text


@with_parameters
def separate_characters(items: list[Item], context: Context, separators: str) -> list[Item]:
    """Adds separators after every character of the model's text. Each character is changed by
    itself, so the deltas and an event that repeats the whole text (`response.output_text.done`)
    stay consistent, however the text is cut."""

    def change(text: str) -> str:
        return "".join(character + separators for character in text)

    for item in items:
        item.data = PROTOCOLS[context.api].events.map_text(item.data, change)
    return items


# Another order

_Element = TypeVar("_Element")
_ENDED: Any = object()


def alternating(*rows: Iterable[_Element]) -> Iterator[_Element]:
    """The first of each row, the second of each, and so on; a row that has ended is left out."""
    for turn in zip_longest(*rows, fillvalue=_ENDED):
        yield from (element for element in turn if element is not _ENDED)


def at_times_of(before: Sequence[Item], moved: list[Item]) -> list[Item]:
    """The moved items, due when those were that stood at their positions before. Times never
    decrease, so an event that kept its own while it moves forward would delay all after it."""
    for at, item in zip([item.at for item in before], moved, strict=False):
        item.at = at
    return moved


# Ends

DONE = "[DONE]"
"""The data of the frame that ends streams of Chat Completions."""


def end_position(values: Iterable[object], api: Api) -> int | None:
    """The position of the first event that begins the end of an answer (`StreamEvents.is_end`);
    None where none does.

    Args:
        values: the events of a stream as JSON values.
    """
    is_end = PROTOCOLS[api].events.is_end
    ends = (at for at, value in enumerate(values) if isinstance(value, dict) and is_end(value))
    return next(ends, None)


def time_at(items: Sequence[Item], position: int) -> int:
    """When the frame at a position is due, in microseconds; after the last, when that is."""
    due = items[position : position + 1] or items[-1:]
    return due[0].at if due else 0


@with_parameters
def with_done(
    items: list[Item], context: Context, is_over: Callable[[list[Item]], bool]
) -> list[Item]:
    """Adds `[DONE]` to a stream that is over and has none."""
    if not is_over(items) or items[-1].data == DONE:
        return items
    return [*items, Item(items[-1].at, DONE)]


# What a client may make of a turn


def with_calls(turn: Turn, change: Callable[[ToolCall], ToolCall]) -> Turn:
    """The turn with its calls changed."""
    parts = tuple(change(part) if isinstance(part, ToolCall) else part for part in turn.parts)
    return replace(turn, parts=parts, order=(), gaps=())


SHARED_ID = Tolerance(
    "the calls may keep the id that they share",
    lambda turn, _: with_calls(turn, lambda call: replace(call, id=turn.tool_calls[0].id)),
)


def _with_text(call: ToolCall) -> ToolCall:
    """The call with a string in place of its arguments: JSON, but not an object."""
    value = sendable_value(call.arguments)
    return call if value is None else replace(call, fragments=(dumps(dumps(value)),))


ARGUMENTS_AS_TEXT = Tolerance(
    "arguments that are not an object are malformed, which a policy reports, skips or keeps",
    lambda turn, _: with_calls(turn, _with_text),
)


def without_finish(turn: Turn) -> Turn:
    """The turn without finish, usage and error."""
    return replace(turn, finish=None, finish_raw=None, usage=None, error=None)


def end_in_error(error: StreamError) -> Callable[[Turn], Turn]:
    """The turn that ends in an error, without finish and usage."""
    return lambda turn: replace(without_finish(turn), error=error)
