"""Where answers end, and how turns end that were cut: what the quirks of several APIs share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from mockllm.core.events import StreamError
from mockllm.core.turn import Turn
from mockllm.protocols import PROTOCOLS
from mockllm.quirks.base import Context, Item, parametrised
from mockllm.scenario.model import Api

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


@parametrised
def with_done(
    items: list[Item], context: Context, is_over: Callable[[list[Item]], bool]
) -> list[Item]:
    """Adds `[DONE]` to a stream that is over and has none."""
    if not is_over(items) or items[-1].data == DONE:
        return items
    return [*items, Item(items[-1].at, DONE)]


def without_finish(turn: Turn) -> Turn:
    """The turn without finish, usage and error."""
    return replace(turn, finish=None, finish_raw=None, usage=None, error=None)


def failed(error: StreamError, sent: Callable[[Turn], Turn]) -> Callable[[Turn], Turn]:
    """The turn that ends in an error after what `sent` leaves of it."""
    return lambda turn: replace(without_finish(sent(turn)), error=error)


def unfinished(turn: Turn) -> Turn:
    """The turn without finish and usage; one that ended in an error stays as it is."""
    return turn if turn.finish is None else without_finish(turn)
