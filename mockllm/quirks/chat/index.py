"""Group A: quirks of the `index` of tool calls."""

from __future__ import annotations

from dataclasses import replace

from mockllm.core.timeline import normal
from mockllm.core.turn import ToolCall, Turn
from mockllm.quirks.base import Context, Item, Quirk, Variant
from mockllm.quirks.chat.chunks import (
    CallFragment,
    by_choice,
    calls,
    contiguous,
    continuations,
    fragments,
    removed,
    set_fields,
    whole,
)
from mockllm.quirks.samples import CALL, TWO_CALLS


def _without_index(items: list[Item], _: Context) -> list[Item]:
    items = whole(items)
    for fragment in list(fragments(items)):
        fragment.entry.pop("type", None)
        del fragment.entry["index"]
    return items


def _fragments_without_index(items: list[Item], _: Context) -> list[Item]:
    # Without index and id, only the order shows which call a fragment belongs to.
    items = contiguous(items)
    for fragment in list(fragments(items)):
        del fragment.entry["index"]
    return items


def _empty_id_without_index(items: list[Item], _: Context) -> list[Item]:
    items = whole(items)
    for fragment in list(fragments(items)):
        set_fields(fragment, id="", type="function")
        del fragment.entry["index"]
    return items


def _in_order_of_arrival(turn: Turn) -> Turn:
    """The turn with its calls in the order of their openings; without indexes no other is known."""
    calls = [i for i, part in enumerate(turn.parts) if isinstance(part, ToolCall)]
    arrival = [i for i in dict.fromkeys(turn.order) if i in calls]
    if arrival in ([], calls):
        return turn
    moved = dict(zip(arrival, calls, strict=True))
    parts = list(turn.parts)
    for old, new in moved.items():
        parts[new] = turn.parts[old]
    order = tuple(moved.get(i, i) for i in turn.order)
    return normal(replace(turn, parts=tuple(parts), order=order))


def _index_first_only(items: list[Item], _: Context) -> list[Item]:
    for opening, fragment in continuations(items):
        if "id" in opening.entry:
            set_fields(fragment, id=opening.entry["id"])
            del fragment.entry["index"]
    return items


def _zero(items: list[Item]) -> list[Item]:
    for fragment in fragments(items):
        fragment.entry["index"] = 0
    return items


def _all_zero(items: list[Item], _: Context) -> list[Item]:
    return _zero(whole(items)) if _several(items) else items


def _fragments_all_zero(items: list[Item], _: Context) -> list[Item]:
    # Every fragment has index 0, so it has to follow the opening of its own call.
    return _zero(contiguous(items)) if _several(items) else items


def _several(items: list[Item]) -> bool:
    return any(len({f.entry["index"] for f in own}) > 1 for own in by_choice(items))


def _same_one_chunk(items: list[Item], _: Context) -> list[Item]:
    if not _several(items):
        return items
    items = whole(items)
    gone: list[CallFragment] = []
    for first, *others in by_choice(items):
        for fragment in others:
            gone.append(fragment)
            first.choice.delta["tool_calls"].append({**fragment.entry})
    return _zero(removed(items, gone))


def _duplicate_fragments(items: list[Item], _: Context) -> list[Item]:
    gone: list[CallFragment] = []
    for opening, *others in calls(items):
        entries = opening.choice.delta["tool_calls"]
        after = _position(entries, opening) + 1
        moved = list(others)
        if len(moved) > 1 and not opening.arguments:
            opening.function["arguments"] = moved.pop(0).arguments
        entries[after:after] = [{**fragment.entry} for fragment in moved]
        gone += others
    return removed(items, gone)


def _position(entries: list[object], fragment: CallFragment) -> int:
    return next(i for i, entry in enumerate(entries) if entry is fragment.entry)


def _from_one(items: list[Item], _: Context) -> list[Item]:
    for fragment in fragments(items):
        fragment.entry["index"] += 1
    return items


def _gap(items: list[Item], _: Context) -> list[Item]:
    for fragment in fragments(items):
        fragment.entry["index"] *= 2
    return items


def _reversed(items: list[Item], _: Context) -> list[Item]:
    """Swaps the entries between the chunks; the chunks keep their positions."""
    for own in by_choice(items):
        ordered = sorted(own, key=lambda fragment: -fragment.entry["index"])
        entries = [{**fragment.entry} for fragment in ordered]
        for fragment, entry in zip(own, entries, strict=True):
            fragment.entry.clear()
            fragment.entry.update(entry)
    return items


_MISSING = Quirk(
    "chat-index-missing",
    CALL,
    (
        Variant(frames=_without_index, expected=_in_order_of_arrival),
        Variant("fragments", _fragments_without_index, expected=_in_order_of_arrival),
        Variant("empty-id", _empty_id_without_index, expected=_in_order_of_arrival, ids=False),
    ),
    only=("chat",),
)

_FIRST_ONLY = Quirk(
    "chat-index-first-only", CALL, (Variant(frames=_index_first_only),), only=("chat",)
)

_ALL_ZERO = Quirk(
    "chat-index-all-zero",
    TWO_CALLS,
    (
        Variant(frames=_all_zero, expected=_in_order_of_arrival),
        Variant("fragments", _fragments_all_zero, expected=_in_order_of_arrival),
    ),
    only=("chat",),
)

_SAME_ONE_CHUNK = Quirk(
    "chat-index-same-one-chunk",
    TWO_CALLS,
    (Variant(frames=_same_one_chunk, expected=_in_order_of_arrival),),
    only=("chat",),
)

_DUPLICATE = Quirk(
    "chat-index-duplicate-fragments", CALL, (Variant(frames=_duplicate_fragments),), only=("chat",)
)

_FROM_ONE = Quirk(
    "chat-index-from-one",
    TWO_CALLS,
    (Variant(frames=_from_one), Variant("gap", _gap)),
    only=("chat",),
)

_REVERSED = Quirk("chat-index-reversed", TWO_CALLS, (Variant(frames=_reversed),), only=("chat",))

QUIRKS: tuple[Quirk, ...] = (
    _MISSING,
    _FIRST_ONLY,
    _ALL_ZERO,
    _SAME_ONE_CHUNK,
    _DUPLICATE,
    _FROM_ONE,
    _REVERSED,
)
