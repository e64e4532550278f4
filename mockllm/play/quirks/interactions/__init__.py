"""The quirks of Gemini Interactions, group P.

First what they share: events and their deltas. A scenario may send raw frames with any content; a
frame that is no event counts as an empty one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from mockllm.core.events import StreamError
from mockllm.play.quirks.base import (
    Context,
    FramesChange,
    Item,
    Quirk,
    Variant,
    drop,
    quirks_of,
    spread,
    with_parameters,
)
from mockllm.play.quirks.samples import CALL, REASONING, TEXT, TEXT_AND_CALL, TWO_CALLS, ZERO
from mockllm.play.quirks.streams import DONE, alternating, at_times_of, end_position, time_at
from mockllm.wire.protocols.base import dumps
from mockllm.wire.protocols.records import Json
from mockllm.wire.protocols.values import json_object, mapping, string

quirk = quirks_of("interactions")
"""A quirk of Interactions."""

_START, _DELTA, _STOP = "step.start", "step.delta", "step.stop"


def _event(item: Item) -> Json:
    data = item.data
    return data if isinstance(data, dict) and isinstance(data.get("event_type"), str) else {}


def _kind(item: Item) -> str:
    return str(_event(item).get("event_type", ""))


def _delta(item: Item) -> Json:
    value = _event(item).get("delta")
    return value if isinstance(value, dict) else {}


def _new(item: Item, **fields: object) -> Item:
    """An event that is due with another one."""
    return Item(item.at, fields, event=str(fields["event_type"]))


def _index(item: Item) -> int | None:
    index = _event(item).get("index")
    return index if type(index) is int else None


def _step_type(item: Item) -> object:
    """The type of the step that begins; None for another event."""
    begins = _kind(item) == _START and _index(item) is not None
    return mapping(_event(item).get("step")).get("type") if begins else None


def _arguments(item: Item) -> str | None:
    """The fragment of a call's arguments; None for another event."""
    is_fragment = _delta(item).get("type") == "arguments_delta" and _index(item) is not None
    return string(_delta(item).get("arguments")) if is_fragment else None


def _end(items: list[Item]) -> int:
    """The position of the event that begins the end; that of `[DONE]` where none does."""
    position = end_position((item.data for item in items), "interactions")
    return len(items) if position is None else position


def _behind_first(items: list[Item]) -> int:
    """The position behind the first fragment that is not empty; that of the end without one."""
    for at, item in enumerate(items):
        delta = _delta(item)
        content = mapping(delta.get("content"))
        if any((delta.get("text"), _arguments(item), content.get("text"))):
            return at + 1
    return _end(items)


def _behind_first_arguments(items: list[Item]) -> int:
    found = (at for at, item in enumerate(items, 1) if _arguments(item))
    return next(found, len(items))


# Deltas


def _empty_signature(item: Item) -> list[Item]:
    if _delta(item).get("type") != "thought_summary" or _index(item) is None:
        return [item]
    empty = {"signature": "", "type": "thought_signature"}
    return [item, _new(item, index=_index(item), delta=empty, event_type=_DELTA)]


def _with_metadata(items: list[Item], context: Context) -> list[Item]:
    """Adds the usage so far to the first event and to each delta."""
    usage = context.turn.usage
    counts = {"total_tokens": 0 if usage is None else usage.input}
    for item in items:
        if _kind(item) in ("interaction.created", _DELTA):
            _event(item)["metadata"] = {"usage": counts}
    return items


def _in_start(items: list[Item], _: Context) -> list[Item]:
    """Moves the arguments of calls into the starts of their steps."""
    starts = {
        _index(item): _event(item)["step"] for item in items if _step_type(item) == "function_call"
    }
    texts: dict[int | None, str] = {}
    for item in items:
        texts[_index(item)] = texts.get(_index(item), "") + (_arguments(item) or "")
    moved = {
        index: value
        for index, text in texts.items()
        if index in starts and (value := json_object(text))
    }
    for index, value in moved.items():
        starts[index]["arguments"] = value
    return [item for item in items if _arguments(item) is None or _index(item) not in moved]


def _first_in_start(items: list[Item], _: Context) -> list[Item]:
    """Moves the first fragment of each text into the start of its step."""
    kept: list[Item] = []
    for item in items:
        is_first = bool(kept) and _event(kept[-1]).get("step") == {"type": "model_output"}
        is_first = is_first and _index(kept[-1]) == _index(item)
        if is_first and _delta(item).get("type") == "text":
            _event(kept[-1])["step"]["content"] = [dict(_delta(item))]
        else:
            kept.append(item)
    return kept


def _with_braces(items: list[Item], _: Context) -> list[Item]:
    """Adds a fragment `{}` to each call without arguments."""
    argued = {_index(item) for item in items if _arguments(item) is not None}
    delta = {"arguments": "{}", "type": "arguments_delta"}
    changed: list[Item] = []
    for item in items:
        changed.append(item)
        if _step_type(item) == "function_call" and _index(item) not in argued:
            changed.append(_new(item, index=_index(item), delta=dict(delta), event_type=_DELTA))
    return changed


def _alternate_calls(items: list[Item], _: Context) -> list[Item]:
    """Alternates the events of calls whose steps follow each other."""
    calls = {_index(item) for item in items if _step_type(item) == "function_call"}
    rows: dict[int | None, list[Item]] = {}
    positions = [at for at, item in enumerate(items) if _index(item) in calls]
    if not positions or positions != list(range(positions[0], positions[-1] + 1)):
        return items
    first, last = positions[0], positions[-1] + 1
    for item in items[first:last]:
        rows.setdefault(_index(item), []).append(item)
    mixed = at_times_of(items[first:last], list(alternating(*rows.values())))
    return [*items[:first], *mixed, *items[last:]]


# Further events


def _behind_created(item: Item) -> list[Item]:
    if _kind(item) != "interaction.created":
        return [item]
    return [item, _new(item, event_type="interaction.kit_event")]


def _unknown_step(items: list[Item], _: Context) -> list[Item]:
    """Adds a step of a new type behind the others."""
    indexes = [index for item in items if (index := _index(item)) is not None]
    at = _end(items)
    if at == len(items):
        return items
    index, step = max(indexes, default=-1) + 1, {"type": "kit_step"}
    added = [
        _new(items[at], index=index, step=step, event_type=_START),
        _new(items[at], index=index, event_type=_STOP),
    ]
    return [*items[:at], *added, *items[at:]]


def _unknown_delta(item: Item) -> list[Item]:
    if _step_type(item) != "model_output":
        return [item]
    return [item, _new(item, index=_index(item), delta={"type": "kit_delta"}, event_type=_DELTA)]


# Ends

_OVERLOADED = StreamError("The model is overloaded.", "service_unavailable")
_DEADLINE = StreamError("", "deadline_exceeded")
_UNAVAILABLE: Json = {
    "code": 503,
    "message": "The service is unavailable.",
    "status": "UNAVAILABLE",
}


@with_parameters
def _error(
    items: list[Item],
    _: Context,
    position: Callable[[list[Item]], int],
    error: StreamError = _OVERLOADED,
) -> list[Item]:
    start = position(items)
    told = {"message": error.message, "code": error.type}
    data = {"error": told, "event_type": "error"}
    return [*items[:start], Item(time_at(items, start), data, event="error")]


@with_parameters
def _front_end_error(items: list[Item], _: Context, *, bare: bool) -> list[Item]:
    """Ends the stream in an error of a server before the service."""
    start = _end(items)
    at, error = time_at(items, start), {"error": _UNAVAILABLE}
    last = Item(at, raw=f"{dumps([error])}\n\n") if bare else Item(at, error)
    return [*items[:start], last]


def _cut(position: Callable[[list[Item]], int]) -> FramesChange:
    return lambda items, _: items[: position(items)]


QUIRKS: tuple[Quirk, ...] = (
    quirk(
        "ia-no-event-lines",
        TEXT,
        lambda items, _: [replace(item, event=None) if _event(item) else item for item in items],
    ),
    quirk(
        "ia-unknown-types",
        TEXT,
        Variant("event", spread(_behind_created)),
        Variant("step", _unknown_step),
        Variant("delta", spread(_unknown_delta)),
    ),
    quirk("ia-empty-signatures", REASONING, spread(_empty_signature)),
    quirk("ia-metadata-usage", TEXT, _with_metadata),
    quirk("ia-arguments-in-start", CALL, _in_start),
    quirk("ia-content-in-start", TEXT, _first_in_start),
    quirk("ia-zero-arg", ZERO, _with_braces),
    quirk("ia-interleaved", TWO_CALLS, _alternate_calls),
    quirk("ia-no-done", TEXT, drop(lambda item: item.data == DONE)),
    quirk(
        "ia-error-event",
        TEXT,
        Variant("behind-delta", _error(_behind_first), as_sent=True),
        Variant("first", _error(lambda _: 0), as_sent=True),
        Variant("no-message", _error(_end, _DEADLINE), as_sent=True),
    ),
    quirk(
        "ia-front-end-error",
        TEXT,
        Variant("google", _front_end_error(bare=False), as_sent=True),
        Variant("bare", _front_end_error(bare=True), as_sent=True),
    ),
    quirk(
        "ia-cut",
        TEXT_AND_CALL,
        Variant("behind-delta", _cut(_behind_first), as_sent=True),
        Variant("in-call", _cut(_behind_first_arguments), as_sent=True),
        Variant("before-end", _cut(_end), as_sent=True),
        Variant(
            "done",
            drop(lambda item: _kind(item) == "interaction.completed"),
            as_sent=True,
        ),
    ),
)
