"""Quirks of arguments and texts in Responses streams: their deltas and their done events."""

from __future__ import annotations

from mockllm.quirks import samples
from mockllm.quirks.base import Context, FramesChange, Item, Variant, spread
from mockllm.quirks.responses import events
from mockllm.quirks.typed_events import event, kind

ARGS_DONE_ONLY = events.quirk(
    "resp-args-done-only",
    samples.CALL,
    Variant("done", events.without(events.ARGUMENTS_DELTA)),
    Variant("item-done", events.without(events.ARGUMENTS_DELTA, events.ARGUMENTS_DONE)),
)


def _arguments(items: list[Item]) -> dict[str, str]:
    return {
        id: arguments
        for item in items
        if kind(item) == events.ITEM_DONE
        and events.output_item(item).get("type") == "function_call"
        if (id := events.item_id(item))
        and isinstance(arguments := events.output_item(item).get("arguments"), str)
    }


def _zero(items: list[Item]) -> set[str]:
    return {id for id, arguments in _arguments(items).items() if arguments in ("", "{}")}


@events.numbered
def _empty_arguments(items: list[Item], context: Context) -> list[Item]:
    zero = _zero(items)
    for item in items:
        if kind(item) == events.ARGUMENTS_DONE and events.item_id(item) in zero:
            item.data["arguments"] = ""
        for entry in events.output_items(item):
            if entry.get("type") == "function_call" and entry.get("id") in zero:
                entry["arguments"] = ""
    return [
        item
        for item in items
        if kind(item) != events.ARGUMENTS_DELTA or events.item_id(item) not in zero
    ]


@events.numbered
def _no_zero_done(items: list[Item], context: Context) -> list[Item]:
    zero, left_out = _zero(items), (events.ARGUMENTS_DELTA, events.ARGUMENTS_DONE)
    return [
        item for item in items if kind(item) not in left_out or events.item_id(item) not in zero
    ]


ZERO_ARG = events.quirk(
    "resp-zero-arg",
    samples.ZERO,
    Variant("empty", _empty_arguments),
    Variant("no-done", _no_zero_done),
)


def _in_added(items: list[Item], context: Context) -> list[Item]:
    whole = _arguments(items)
    for item in items:
        if kind(item) == events.ITEM_ADDED and events.item_id(item) in whole:
            events.output_item(item)["arguments"] = whole[events.item_id(item) or ""]
    return items


@events.numbered
def _only_in_added(items: list[Item], context: Context) -> list[Item]:
    whole = _arguments(items)
    added = _in_added(items, context)
    return [
        item
        for item in added
        if kind(item) != events.ARGUMENTS_DELTA or events.item_id(item) not in whole
    ]


ARGS_IN_ADDED = events.quirk(
    "resp-args-in-added",
    samples.CALL,
    Variant("repeated", _in_added),
    Variant("alone", _only_in_added),
)


@events.numbered
def _empty_first(items: list[Item], context: Context) -> list[Item]:
    begun: set[tuple[str, ...]] = set()
    changed = []
    for item in items:
        if kind(item).endswith(".delta") and events.value_key(item) not in begun:
            begun.add(events.value_key(item))
            empty = item.copy()
            empty.data["delta"] = ""
            changed.append(empty)
        changed.append(item)
    return changed


EMPTY_DELTA = events.quirk("resp-empty-delta", samples.TEXT_AND_CALL, Variant(frames=_empty_first))


def _repeated(*types: str) -> FramesChange:
    return events.numbered(
        spread(lambda item: [item, item.copy()] if kind(item) in types else [item])
    )


DUP_DONE = events.quirk(
    "resp-dup-done",
    samples.CALL,
    Variant("both", _repeated(events.ARGUMENTS_DONE, events.ITEM_DONE)),
    Variant("item", _repeated(events.ITEM_DONE)),
    Variant("arguments", _repeated(events.ARGUMENTS_DONE)),
)


def _field(item: Item) -> str:
    stem, _, step = kind(item).rpartition(".")
    return events.VALUES.get(stem, "") if step == "done" else ""


def _late_delta(item: Item) -> list[Item]:
    """The whole value again, as a delta after its done event."""
    field = _field(item)
    if not field or not event(item).get(field):
        return [item]
    late = item.copy()
    late.data = {
        "delta" if key == field else key: [] if key == "logprobs" else value
        for key, value in late.data.items()
    }
    events.rename(late, kind(item).removesuffix("done") + "delta")
    return [item, late]


@events.numbered
def _lost_delta(items: list[Item], context: Context) -> list[Item]:
    latest: dict[tuple[str, ...], int] = {}
    lost: set[int] = set()
    for i, item in enumerate(items):
        if kind(item).endswith(".delta") and event(item).get("delta"):
            latest[events.value_key(item)] = i
        elif _field(item) and events.value_key(item) in latest:
            lost.add(latest.pop(events.value_key(item)))
    return [item for i, item in enumerate(items) if i not in lost]


DELTA_AFTER_DONE = events.quirk(
    "resp-delta-after-done",
    samples.TEXT_AND_CALL,
    Variant("late", events.numbered(spread(_late_delta))),
    Variant("different", _lost_delta),
)
