"""Quirks of the output items of Responses: arguments and texts, ids, indexes and order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container

from mockllm.play.quirks import samples
from mockllm.play.quirks.base import (
    Context,
    FramesChange,
    Item,
    Variant,
    each,
    each_with,
    spread,
    with_parameters,
)
from mockllm.play.quirks.responses import events
from mockllm.play.quirks.streams import alternating, event, kind
from mockllm.wire.protocols.records import Json


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


def _without(items: list[Item], ids: Container[str | None], *types: str) -> list[Item]:
    """The events without those of some types that belong to some items."""
    return [item for item in items if kind(item) not in types or events.item_id(item) not in ids]


@events.with_consecutive_numbers
def _empty_arguments(items: list[Item], context: Context) -> list[Item]:
    zero = _zero(items)
    for item in items:
        if kind(item) == events.ARGUMENTS_DONE and events.item_id(item) in zero:
            item.data["arguments"] = ""
        for entry in events.output_items(item):
            if entry.get("type") == "function_call" and entry.get("id") in zero:
                entry["arguments"] = ""
    return _without(items, zero, events.ARGUMENTS_DELTA)


@events.with_consecutive_numbers
def _no_zero_done(items: list[Item], context: Context) -> list[Item]:
    return _without(items, _zero(items), events.ARGUMENTS_DELTA, events.ARGUMENTS_DONE)


def _in_added(items: list[Item], context: Context) -> list[Item]:
    whole = _arguments(items)
    for item in items:
        if kind(item) == events.ITEM_ADDED and events.item_id(item) in whole:
            events.output_item(item)["arguments"] = whole[events.item_id(item) or ""]
    return items


@events.with_consecutive_numbers
def _only_in_added(items: list[Item], context: Context) -> list[Item]:
    whole = _arguments(items)
    return _without(_in_added(items, context), whole, events.ARGUMENTS_DELTA)


@events.with_consecutive_numbers
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


def _repeat(*types: str) -> FramesChange:
    return events.with_consecutive_numbers(
        spread(lambda item: [item, item.copy()] if kind(item) in types else [item])
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


@events.with_consecutive_numbers
def _lost_delta(items: list[Item], context: Context) -> list[Item]:
    latest: dict[tuple[str, ...], int] = {}
    lost: set[int] = set()
    for i, item in enumerate(items):
        if kind(item).endswith(".delta") and event(item).get("delta"):
            latest[events.value_key(item)] = i
        elif _field(item) and events.value_key(item) in latest:
            lost.add(latest.pop(events.value_key(item)))
    return [item for i, item in enumerate(items) if i not in lost]


# Identifiers


@with_parameters
def _rotate_ids(
    items: list[Item], context: Context, applies: Callable[[str], bool], *, outputs: bool = True
) -> list[Item]:
    """Gives an item a new id at each event that names it.

    Args:
        applies: whether the ids in events of a type are changed.
        outputs: whether those in response objects are changed.
    """

    counts: Counter[str] = Counter()

    def fresh(id: object) -> str:
        prefix = str(id).partition("_")[0]
        counts[prefix] += 1
        return f"{prefix}_{counts[prefix]}"

    for item in items:
        if events.item_id(item) is not None and applies(kind(item)):
            own = events.output_item(item)
            holder, name = (own, "id") if own else (event(item), "item_id")
            holder[name] = fresh(holder[name])
        for entry in events.output(item) if outputs else ():
            if isinstance(entry.get("id"), str):
                entry["id"] = fresh(entry["id"])
    return items


def _entries(items: list[Item]) -> list[Json]:
    return [entry for item in items for entry in events.output_items(item)]


@each_with(_entries)
def _with_ids(entry: Json, name: str, value: str | None) -> None:
    """Sets the ids of one kind of the output items."""
    if name in entry:
        entry[name] = value


def _null_item_ids(items: list[Item], context: Context) -> list[Item]:
    for item in items:
        if "item_id" in event(item):
            item.data["item_id"] = None
    return _with_ids("id", None)(items, context)


# Indexes and order


@each_with(list)
def _renumber(item: Item, number: Callable[[int], int]) -> None:
    if (old := events.index(item)) is not None:
        item.data["output_index"] = number(old)


@events.with_consecutive_numbers
def _reverse(items: list[Item], context: Context) -> list[Item]:
    indexed = [item for item in items if events.index(item) is not None]
    return events.reorder(items, sorted(indexed, key=lambda item: -(events.index(item) or 0)))


@events.with_consecutive_numbers
def _interleave(items: list[Item], context: Context) -> list[Item]:
    groups: dict[int, list[Item]] = {}
    for item in items:
        if (at := events.index(item)) is not None:
            groups.setdefault(at, []).append(item)
    if len(groups) < 2:
        return items
    heads, bodies, tails = [], [], []
    for group in groups.values():
        end = max((i for i, item in enumerate(group) if kind(item).endswith(".delta")), default=0)
        heads.append(group[0])
        bodies.append(group[1 : end + 1])
        tails += group[end + 1 :]
    return events.reorder(items, [*heads, *alternating(*bodies), *tails])


# Reasoning


def _is_reasoning_delta(type: str) -> bool:
    return type.startswith("response.reasoning_") and type.endswith(".delta")


def _shared_index(items: list[Item], context: Context) -> list[Item]:
    if any(events.output_item(item).get("type") == "reasoning" for item in items):
        return _renumber(lambda _: 0)(items, context)
    return items


# The table

QUIRKS = (
    events.quirk(
        "resp-args-done-only",
        samples.CALL,
        Variant("done", events.without(events.ARGUMENTS_DELTA)),
        Variant("item-done", events.without(events.ARGUMENTS_DELTA, events.ARGUMENTS_DONE)),
    ),
    events.quirk(
        "resp-zero-arg",
        samples.ZERO,
        Variant("empty", _empty_arguments),
        Variant("no-done", _no_zero_done),
    ),
    events.quirk(
        "resp-args-in-added",
        samples.CALL,
        Variant("repeated", _in_added),
        Variant("alone", _only_in_added),
    ),
    events.quirk("resp-empty-delta", samples.TEXT_AND_CALL, _empty_first),
    events.quirk(
        "resp-item-id-rotates",
        samples.CALL,
        Variant("every-event", _rotate_ids(lambda _: True)),
        Variant("item-done", _rotate_ids(lambda kind: kind == events.ITEM_DONE)),
        Variant("completed", _rotate_ids(lambda _: False)),
    ),
    events.quirk(
        "resp-item-id-null",
        samples.CALL,
        Variant("null", _null_item_ids),
        Variant("in-items", _with_ids("id", None)),
    ),
    events.quirk(
        "resp-call-id-missing",
        samples.CALL,
        Variant(frames=each(_entries, lambda entry: entry.pop("call_id", None)), ids=False),
        Variant("empty", _with_ids("call_id", ""), ids=False),
    ),
    events.quirk(
        "resp-output-index",
        samples.TWO_CALLS,
        Variant("shared", _renumber(lambda _: 0)),
        Variant("reversed", _reverse),
        Variant("gaps", _renumber(lambda at: 3 * at)),
    ),
    events.quirk("resp-interleaved", samples.TWO_CALLS, _interleave),
    events.quirk(
        "resp-dup-done",
        samples.CALL,
        Variant("both", _repeat(events.ARGUMENTS_DONE, events.ITEM_DONE)),
        Variant("item", _repeat(events.ITEM_DONE)),
        Variant("arguments", _repeat(events.ARGUMENTS_DONE)),
    ),
    events.quirk(
        "resp-delta-after-done",
        samples.TEXT_AND_CALL,
        Variant("late", events.with_consecutive_numbers(spread(_late_delta))),
        Variant("different", _lost_delta),
    ),
    events.quirk(
        "resp-reasoning-ids",
        samples.SUMMARY,
        Variant("deltas", _rotate_ids(_is_reasoning_delta, outputs=False)),
        Variant("shared-index", _shared_index),
    ),
)
