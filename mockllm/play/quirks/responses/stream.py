"""Quirks of Responses streams around the items: events, missing fields, names, and the end."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from mockllm.core.events import StreamError
from mockllm.play.quirks import samples
from mockllm.play.quirks.base import (
    Context,
    FramesChange,
    Item,
    Variant,
    each,
    each_with,
    with_parameters,
)
from mockllm.play.quirks.responses import events
from mockllm.play.quirks.streams import event, kind, last, with_done
from mockllm.wire.protocols.records import Json
from mockllm.wire.protocols.values import array


def _after_openers(type: str) -> FramesChange:
    @events.with_consecutive_numbers
    def change(items: list[Item], context: Context) -> list[Item]:
        position = last(items, *events.OPENERS)
        if position is None:
            return items
        added = events.new_event(items[position].at, type)
        return [*items[: position + 1], added, *items[position + 1 :]]

    return change


@events.with_consecutive_numbers
def _keepalive_between(items: list[Item], context: Context) -> list[Item]:
    pairs = ((item, events.new_event(item.at, "keepalive")) for item in items)
    return [each for pair in pairs for each in pair][:-1]


_UNKNOWN = "kit_unknown"


@events.with_consecutive_numbers
def _unknown_item(items: list[Item], context: Context) -> list[Item]:
    used = [number for item in items if (number := events.index(item)) is not None]
    where = {"output_index": max(used, default=-1) + 1}
    whole: Json = {"id": "ku_1", "type": _UNKNOWN, "status": "completed", "value": "new"}
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


@events.with_consecutive_numbers
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


@each_with(list)
def _lacking(item: Item, field: str, *types: str) -> None:
    """Removes a field from the events of these types (none: from all events)."""
    if not types or kind(item) in types:
        event(item).pop(field, None)


def _without_arguments(item: Item) -> None:
    if kind(item) == events.ITEM_ADDED:
        events.output_item(item).pop("arguments", None)


_LEGACY_TEXT = {
    "response.output_text.delta": "response.text.delta",
    "response.output_text.done": "response.text.done",
}
_LEGACY_END = {"response.completed": "response.done"}


@each_with(list)
def _rename(item: Item, names: dict[str, str]) -> None:
    if kind(item) in names:
        events.rename(item, names[kind(item)])


# The beginning

_ITEM_OPENERS = ("response.output_item.added",)
_PART_OPENERS = ("response.content_part.added", "response.reasoning_summary_part.added")


# Errors

_ERROR = StreamError("The server had an error.", "server_error", "server_error")


def _failing(items: list[Item]) -> list[Item]:
    """The stream cut after the openers, with an error as the service sends it; a stream that has
    an error is not changed."""
    position = last(items, *events.OPENERS)
    if position is None or any(kind(item) == "error" for item in items):
        return items
    begun = items[position]
    error = {"code": _ERROR.code, "message": _ERROR.message}
    failed = {**copy.deepcopy(events.response(begun)), "status": "failed", "error": error}
    return [
        *items[: position + 1],
        events.new_event(begun.at, "error", error={"type": _ERROR.type, **error, "param": None}),
        events.new_event(begun.at, "response.failed", response=failed),
    ]


_nested = events.with_consecutive_numbers(lambda items, _context: _failing(items))


@events.with_consecutive_numbers
def _flat(items: list[Item], context: Context) -> list[Item]:
    failing = _failing(items)
    for item in failing:
        nested = event(item).get("error")
        if kind(item) == "error" and isinstance(nested, dict):
            del item.data["error"]
            flat = {name: nested.get(name) for name in ("code", "message", "param")}
            item.data = {"type": "error", **flat, **item.data}
    return [item for item in failing if kind(item) != "response.failed"]


@events.with_consecutive_numbers
def _without_error_event(items: list[Item], context: Context) -> list[Item]:
    failing = _failing(items)
    if last(failing, "response.failed") is None:
        return failing
    return [item for item in failing if kind(item) != "error"]


@events.with_consecutive_numbers
def _code_null(items: list[Item], context: Context) -> list[Item]:
    failing = _failing(items)
    for item in failing:
        if kind(item) == "error" and isinstance(event(item).get("error"), dict):
            item.data["error"]["code"] = None
    return [item for item in failing if kind(item) != "response.failed"]


# The end


@each_with(list)
def _final_output(item: Item, value: Callable[[], Any]) -> None:
    if kind(item) in events.COMPLETE and events.response(item):
        events.response(item)["output"] = value()


def _without_output(item: Item) -> None:
    if kind(item) in events.COMPLETE:
        events.response(item).pop("output", None)


@with_parameters
def _incomplete(items: list[Item], context: Context, reason: str) -> list[Item]:
    position = last(items, *events.COMPLETE)
    if position is None:
        return items
    events.rename(items[position], "response.incomplete")
    final = events.response(items[position])
    final |= {"status": "incomplete", "incomplete_details": {"reason": reason}}
    done = last(items, events.ITEM_DONE)
    unfinished = {} if done is None else events.output_item(items[done])
    entries = array(final.get("output"))
    for entry in (unfinished, *entries):
        same = isinstance(entry, dict) and entry.get("id") == unfinished.get("id")
        if same and "status" in entry:
            entry["status"] = "incomplete"
    return items


@events.with_consecutive_numbers
def _never_ended(items: list[Item], context: Context) -> list[Item]:
    """Like `_incomplete` at the limit of tokens, without the done events of the last item."""
    if last(items, *events.COMPLETE) is None:
        return items
    items = _incomplete("max_output_tokens")(items, context)
    done = last(items, events.ITEM_DONE)
    unfinished = None if done is None else events.index(items[done])
    if unfinished is None:
        return items
    return [i for i in items if not (kind(i).endswith(".done") and events.index(i) == unfinished)]


@events.with_consecutive_numbers
def _delta_after_completed(items: list[Item], context: Context) -> list[Item]:
    end = last(items, *events.COMPLETE)
    deltas = [item for item in items if kind(item).endswith(".delta")]
    if end is None or not deltas:
        return items
    late = deltas[-1].copy()
    late.at = items[end].at
    return [*items[: end + 1], late, *items[end + 1 :]]


# The table

QUIRKS = (
    events.quirk(
        "resp-completed-output-empty",
        samples.TEXT_AND_CALL,
        Variant("empty", _final_output(list)),
        Variant("null", _final_output(lambda: None)),
        Variant("absent", each(list, _without_output)),
    ),
    events.quirk(
        "resp-error-shape",
        samples.TEXT,
        Variant("nested", _nested, as_sent=True),
        Variant("flat", _flat, as_sent=True),
        Variant("failed", _without_error_event, as_sent=True),
        Variant("code-null", _code_null, as_sent=True),
    ),
    events.quirk(
        "resp-keepalive",
        samples.TEXT,
        _after_openers("keepalive"),
        Variant("everywhere", _keepalive_between),
    ),
    events.quirk(
        "resp-unknown-event",
        samples.TEXT,
        Variant("event", _after_openers(f"response.{_UNKNOWN}.event")),
        Variant("item", _unknown_item),
        Variant("part", _unknown_part),
    ),
    events.quirk(
        "resp-required-missing",
        samples.TEXT_AND_CALL,
        Variant("sequence-number", _lacking("sequence_number")),
        Variant(
            "logprobs",
            _lacking("logprobs", "response.output_text.delta", "response.output_text.done"),
        ),
        Variant("arguments", each(list, _without_arguments)),
        Variant("content-index", _lacking("content_index")),
        Variant("summary-index", _lacking("summary_index"), sample=samples.SUMMARY),
    ),
    events.quirk(
        "resp-missing-openers",
        samples.TEXT,
        Variant("all", events.without(*events.OPENERS, *_ITEM_OPENERS, *_PART_OPENERS)),
        Variant("created", events.without(*events.OPENERS)),
        Variant("item-added", events.without(*_ITEM_OPENERS)),
        Variant("part-added", events.without(*_PART_OPENERS)),
    ),
    events.quirk(
        "resp-incomplete",
        samples.TEXT,
        Variant("max-output-tokens", _incomplete("max_output_tokens"), as_sent=True),
        Variant("content-filter", _incomplete("content_filter"), as_sent=True),
        Variant("open-item", _never_ended, as_sent=True, sample=samples.CALL_AT_LIMIT),
    ),
    events.quirk(
        "resp-no-terminal",
        samples.TEXT,
        Variant(frames=events.without(*events.COMPLETE), as_sent=True),
    ),
    events.quirk("resp-after-completed", samples.TEXT, _delta_after_completed),
    events.quirk(
        "resp-legacy-names",
        samples.TEXT,
        Variant("all", _rename(_LEGACY_TEXT | _LEGACY_END)),
        Variant("text", _rename(_LEGACY_TEXT)),
        Variant("done", _rename(_LEGACY_END)),
    ),
    events.quirk(
        "resp-done-sentinel",
        samples.TEXT,
        with_done(lambda items: last(items, *events.TERMINAL) is not None),
    ),
)
