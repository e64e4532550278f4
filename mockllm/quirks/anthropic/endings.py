"""Quirks of the end of Messages streams: reason and usage, errors, cuts, a second beginning."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from mockllm.core.events import StreamError
from mockllm.core.turn import Turn
from mockllm.protocols.anthropic_messages.blocks import request_id
from mockllm.quirks.anthropic import events
from mockllm.quirks.base import Context, FramesChange, Item, Variant, drop, each_with, parametrised
from mockllm.quirks.ends import failed, time_at, without_finish
from mockllm.quirks.samples import CALL, TEXT, TEXT_AND_CALL

# Reason and usage


@each_with(list)
def _without_usage(item: Item, *, start: bool, end: bool) -> None:
    message = events.event(item).get("message")
    if end and events.kind(item) == "message_delta":
        events.event(item).pop("usage", None)
    elif start and events.kind(item) == "message_start" and isinstance(message, dict):
        message.pop("usage", None)


def _usage_unknown(turn: Turn) -> Turn:
    return replace(turn, usage=None)


@parametrised
def _second_delta(items: list[Item], _: Context, *, behind: bool) -> list[Item]:
    """Adds a `message_delta` without a stop reason, after (`behind`) or before the real one."""
    position = next(
        (position for position, item in enumerate(items) if events.stop_reason(item)), None
    )
    if position is None:
        return items
    second = items[position].copy()
    events.event(second)["delta"] = dict.fromkeys(("stop_reason", "stop_sequence", "stop_details"))
    here = position + behind
    return [*items[:here], second, *items[here:]]


# Errors and cuts

_OVERLOADED = StreamError("Overloaded", "overloaded_error")


@parametrised
def _error(
    items: list[Item], context: Context, position: Callable[[list[Item]], int]
) -> list[Item]:
    start = position(items)
    error = {"type": _OVERLOADED.type, "message": _OVERLOADED.message}
    id = request_id(context.reply.seed)
    at = time_at(items, start)
    return [*items[:start], events.new_event(at, "error", error=error, request_id=id)]


def _cut(position: Callable[[list[Item]], int]) -> FramesChange:
    return lambda items, _: items[: position(items)]


def _behind_first_input(items: list[Item]) -> int:
    first = events.first_output(items, "tool_use")
    return len(items) if first is None else first + 1


# A second attempt


@parametrised
def _started_twice(
    items: list[Item], _: Context, begun: Callable[[list[Item]], int | None]
) -> list[Item]:
    """Puts the beginning of a first attempt before the stream.

    Args:
        begun: gives the position of the first attempt's last event; None: only its start is sent.
    """

    start = events.start_of(items)
    if start is None:
        return items
    last = begun(items)
    first = [item.copy() for item in items[: 1 + (start if last is None else last)]]
    message = events.event(items[start]).get("message")
    if isinstance(message, dict) and isinstance(message.get("id"), str):
        id = message["id"]
        message["id"] = id[:-1] + ("0" if id[-1:] != "0" else "1")
    return [*first, *items]


# The table

ENDINGS = (
    events.quirk(
        "anth-error-event",
        TEXT,
        Variant(
            "behind-delta",
            _error(events.behind_first),
            expected=failed(_OVERLOADED, events.until_first_output),
        ),
        Variant("first", _error(lambda _: 0), expected=failed(_OVERLOADED, lambda _: Turn())),
        Variant(
            "at-the-end",
            _error(events.end_position),
            expected=failed(_OVERLOADED, lambda turn: turn),
        ),
    ),
    events.quirk(
        "anth-cut",
        TEXT_AND_CALL,
        Variant(
            "behind-delta",
            _cut(events.behind_first),
            expected=lambda turn: without_finish(events.until_first_output(turn)),
        ),
        Variant(
            "in-call",
            _cut(_behind_first_input),
            expected=lambda turn: events.until_first_output(turn, call=True),
        ),
        Variant("before-end", _cut(events.end_position), expected=without_finish),
        Variant(
            "before-stop", drop(lambda item: events.kind(item) == "message_stop"), right="either"
        ),
    ),
    events.quirk(
        "anth-usage-missing",
        TEXT,
        Variant("message-delta", _without_usage(start=False, end=True), expected=_usage_unknown),
        Variant("message-start", _without_usage(start=True, end=False)),
        Variant("both", _without_usage(start=True, end=True), expected=_usage_unknown),
    ),
    events.quirk(
        "anth-two-message-delta",
        CALL,
        Variant("null-after", _second_delta(behind=True)),
        Variant("null-before", _second_delta(behind=False)),
    ),
    events.quirk(
        "anth-message-start-twice",
        TEXT,
        Variant("in-block", _started_twice(events.first_output)),
        Variant("at-once", _started_twice(lambda _: None)),
    ),
)
