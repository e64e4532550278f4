"""Quirks of output items in Responses streams: their ids, indexes and order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import zip_longest
from typing import Any

from mockllm.quirks import samples
from mockllm.quirks.base import Context, Item, Variant, each, each_with, parametrised
from mockllm.quirks.responses import events
from mockllm.quirks.typed_events import event, kind

# Identifiers


@parametrised
def _rotated(
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


ITEM_ID_ROTATES = events.quirk(
    "resp-item-id-rotates",
    samples.CALL,
    Variant("every-event", _rotated(lambda _: True)),
    Variant("item-done", _rotated(lambda kind: kind == events.ITEM_DONE)),
    Variant("completed", _rotated(lambda _: False)),
)


def _entries(items: list[Item]) -> list[dict[str, Any]]:
    return [entry for item in items for entry in events.output_items(item)]


@each_with(_entries)
def _with_ids(entry: dict[str, Any], name: str, value: str | None) -> None:
    """Sets the ids of one kind of the output items."""
    if name in entry:
        entry[name] = value


def _null_item_ids(items: list[Item], context: Context) -> list[Item]:
    for item in items:
        if "item_id" in event(item):
            item.data["item_id"] = None
    return _with_ids("id", None)(items, context)


ITEM_ID_NULL = events.quirk(
    "resp-item-id-null",
    samples.CALL,
    Variant("null", _null_item_ids),
    Variant("in-items", _with_ids("id", None)),
)

CALL_ID_MISSING = events.quirk(
    "resp-call-id-missing",
    samples.CALL,
    Variant(frames=each(_entries, lambda entry: entry.pop("call_id", None)), ids=False),
    Variant("empty", _with_ids("call_id", ""), ids=False),
)


# Indexes and order


@each_with(list)
def _indexed(item: Item, number: Callable[[int], int]) -> None:
    if (old := events.index(item)) is not None:
        item.data["output_index"] = number(old)


@events.numbered
def _reversed(items: list[Item], context: Context) -> list[Item]:
    indexed = [item for item in items if events.index(item) is not None]
    return events.reordered(items, sorted(indexed, key=lambda item: -(events.index(item) or 0)))


OUTPUT_INDEX = events.quirk(
    "resp-output-index",
    samples.TWO_CALLS,
    Variant("shared", _indexed(lambda _: 0)),
    Variant("reversed", _reversed),
    Variant("gaps", _indexed(lambda at: 3 * at)),
)


@events.numbered
def _interleaved(items: list[Item], context: Context) -> list[Item]:
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
    rounds = [item for turn in zip_longest(*bodies) for item in turn if item is not None]
    return events.reordered(items, [*heads, *rounds, *tails])


INTERLEAVED = events.quirk("resp-interleaved", samples.TWO_CALLS, Variant(frames=_interleaved))


# Reasoning


def _is_reasoning_delta(type: str) -> bool:
    return type.startswith("response.reasoning_") and type.endswith(".delta")


def _shared_index(items: list[Item], context: Context) -> list[Item]:
    if any(events.output_item(item).get("type") == "reasoning" for item in items):
        return _indexed(lambda _: 0)(items, context)
    return items


REASONING_IDS = events.quirk(
    "resp-reasoning-ids",
    samples.SUMMARY,
    Variant("deltas", _rotated(_is_reasoning_delta, outputs=False)),
    Variant("shared-index", _shared_index),
)
