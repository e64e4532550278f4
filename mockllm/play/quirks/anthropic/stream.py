"""Quirks of Messages streams around the blocks: other events, and the end with reason and usage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from mockllm.core.events import StreamError
from mockllm.play.quirks.anthropic import events
from mockllm.play.quirks.base import (
    Context,
    FramesChange,
    Item,
    Variant,
    drop,
    each_with,
    with_parameters,
)
from mockllm.play.quirks.samples import CALL, TEXT, TEXT_AND_CALL
from mockllm.play.quirks.streams import event, kind, time_at, with_done
from mockllm.wire.protocols.anthropic_messages.blocks import request_id
from mockllm.wire.protocols.records import Json

# Further events


@with_parameters
def _pings(items: list[Item], _: Context, data: str, name: str | None = "ping") -> list[Item]:
    pinged = []
    for item in items[1:]:
        pinged += [Item(item.at, text=data, event=name), item]
    return [*items[:1], *pinged]


def _ping_first(items: list[Item], _: Context) -> list[Item]:
    return [*(Item(item.at, text='{"type": "ping"}', event="ping") for item in items[:1]), *items]


def _unknown_block(items: list[Item], _: Context) -> list[Item]:
    opened = events.blocks(items)
    stops = [block.stop for block in opened if block.stop is not None]
    position = max(stops) if stops else None if opened else events.start_of(items)
    if position is None:
        return items
    index = max((block.index for block in opened), default=-1) + 1
    start = events.new_event(
        0, "content_block_start", index=index, content_block={"type": "kit_block"}
    )
    return events.insert_after(
        items, position, start, events.new_event(0, "content_block_stop", index=index)
    )


def _unknown_event(items: list[Item], _: Context) -> list[Item]:
    start = events.start_of(items)
    if start is None:
        return items
    return events.insert_after(items, start, events.new_event(0, "vertex_event"))


def _unknown_delta(items: list[Item], _: Context) -> list[Item]:
    block = next((block for block in events.blocks(items) if block.kind in events.NEUTRAL), None)
    if block is None:
        return items
    added = events.new_event(
        0, "content_block_delta", index=block.index, delta={"type": "kit_delta"}
    )
    return events.insert_after(items, block.start, added)


# Events in another form


@each_with(list)
def _pad(item: Item, spaces: int) -> None:
    if event(item) and kind(item) != "ping":
        text = item.frame().data or ""
        item.text = f"{text.rstrip()[:-1].rstrip()}{' ' * spaces}}}"


# The table

QUIRKS = (
    events.quirk(
        "anth-ping",
        TEXT,
        Variant("everywhere", _pings('{"type": "ping"}')),
        Variant("first", _ping_first),
        Variant("untyped", _pings("{}")),
        Variant("bare", _pings("{}", None)),
    ),
    events.quirk(
        "anth-no-event-lines",
        TEXT,
        lambda items, _: [replace(item, event=None) if event(item) else item for item in items],
    ),
    events.quirk(
        "anth-unknown-types",
        TEXT,
        Variant("block", _unknown_block),
        Variant("event", _unknown_event),
        Variant("delta", _unknown_delta),
    ),
    events.quirk("anth-padded-json", TEXT, Variant("usual", _pad(6)), Variant("wide", _pad(1000))),
    events.quirk(
        "anth-done-sentinel",
        TEXT,
        with_done(lambda items: any(kind(item) == "message_stop" for item in items)),
    ),
)


# Reason and usage


@each_with(list)
def _without_usage(item: Item, *, start: bool, end: bool) -> None:
    message = event(item).get("message")
    if end and kind(item) == "message_delta":
        event(item).pop("usage", None)
    elif start and kind(item) == "message_start" and isinstance(message, dict):
        message.pop("usage", None)


_NO_REASON: Json = dict.fromkeys(("stop_reason", "stop_sequence", "stop_details"))


@with_parameters
def _second_delta(
    items: list[Item], _: Context, *, behind: bool, delta: Json = _NO_REASON
) -> list[Item]:
    """Adds a `message_delta` without a stop reason, after (`behind`) or before the real one."""
    position = next(
        (position for position, item in enumerate(items) if events.stop_reason(item)), None
    )
    if position is None:
        return items
    second = items[position].copy()
    event(second)["delta"] = dict(delta)
    here = position + behind
    return [*items[:here], second, *items[here:]]


@each_with(list)
def _ended_turn(item: Item) -> None:
    if events.stop_reason(item) == "tool_use":
        events.delta(item)["stop_reason"] = "end_turn"


# Errors and cuts

_OVERLOADED = StreamError("Overloaded", "overloaded_error")


@with_parameters
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


@with_parameters
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
    message = event(items[start]).get("message")
    if isinstance(message, dict) and isinstance(message.get("id"), str):
        id = message["id"]
        message["id"] = id[:-1] + ("0" if id[-1:] != "0" else "1")
    return [*first, *items]


# The table

ENDINGS = (
    events.quirk(
        "anth-error-event",
        TEXT,
        Variant("behind-delta", _error(events.behind_first), as_sent=True),
        Variant("first", _error(lambda _: 0), as_sent=True),
        Variant("at-the-end", _error(events.end_position), as_sent=True),
    ),
    events.quirk(
        "anth-cut",
        TEXT_AND_CALL,
        Variant("behind-delta", _cut(events.behind_first), as_sent=True),
        Variant("in-call", _cut(_behind_first_input), as_sent=True),
        Variant("before-end", _cut(events.end_position), as_sent=True),
        Variant("before-stop", drop(lambda item: kind(item) == "message_stop"), right="either"),
    ),
    events.quirk(
        "anth-usage-missing",
        TEXT,
        Variant("message-delta", _without_usage(start=False, end=True), as_sent=True),
        Variant("message-start", _without_usage(start=True, end=False)),
        Variant("both", _without_usage(start=True, end=True), as_sent=True),
    ),
    events.quirk(
        "anth-two-message-delta",
        CALL,
        Variant("null-after", _second_delta(behind=True)),
        Variant("null-before", _second_delta(behind=False)),
        Variant("absent-after", _second_delta(behind=True, delta={})),
    ),
    events.quirk("anth-end-turn-with-tools", CALL, Variant(frames=_ended_turn(), as_sent=True)),
    events.quirk(
        "anth-message-start-twice",
        TEXT,
        Variant("in-block", _started_twice(events.first_output)),
        Variant("at-once", _started_twice(lambda _: None)),
    ),
)
