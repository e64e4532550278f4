"""Group A: quirks of the `index` of tool calls."""

from __future__ import annotations

from dataclasses import replace

from mockllm.core.timeline import normal
from mockllm.core.turn import ToolCall, Turn
from mockllm.quirks.base import Context, Item, Variant, each
from mockllm.quirks.chat.chunks import (
    CallFragment,
    by_choice,
    calls,
    contiguous,
    continuations,
    fragments,
    quirk,
    removed,
    set_fields,
    whole,
)
from mockllm.quirks.samples import CALL, TWO_CALLS


def _without_index(fragment: CallFragment) -> None:
    del fragment.entry["index"]


def _without_index_and_type(fragment: CallFragment) -> None:
    fragment.entry.pop("type", None)
    del fragment.entry["index"]


def _with_empty_id(fragment: CallFragment) -> None:
    set_fields(fragment, id="", type="function")
    del fragment.entry["index"]


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


def _index_first_only(pair: tuple[CallFragment, CallFragment]) -> None:
    opening, fragment = pair
    if "id" in opening.entry:
        set_fields(fragment, id=opening.entry["id"])
        del fragment.entry["index"]


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
        after = next(i for i, entry in enumerate(entries) if entry is opening.entry) + 1
        moved = list(others)
        if len(moved) > 1 and not opening.arguments:
            opening.function["arguments"] = moved.pop(0).arguments
        entries[after:after] = [{**fragment.entry} for fragment in moved]
        gone += others
    return removed(items, gone)


def _from_one(fragment: CallFragment) -> None:
    fragment.entry["index"] += 1


def _gap(fragment: CallFragment) -> None:
    fragment.entry["index"] *= 2


def _reversed(own: list[CallFragment]) -> None:
    """Swaps the entries between the chunks; the chunks keep their positions."""
    ordered = sorted(own, key=lambda fragment: -fragment.entry["index"])
    entries = [{**fragment.entry} for fragment in ordered]
    for fragment, entry in zip(own, entries, strict=True):
        fragment.entry.clear()
        fragment.entry.update(entry)


QUIRKS = (
    quirk(
        "chat-index-missing",
        CALL,
        Variant(
            frames=each(fragments, _without_index_and_type, whole), expected=_in_order_of_arrival
        ),
        Variant(
            "fragments",
            # Without index and id, only the order shows which call a fragment belongs to.
            each(fragments, _without_index, contiguous),
            expected=_in_order_of_arrival,
        ),
        Variant(
            "empty-id",
            each(fragments, _with_empty_id, whole),
            expected=_in_order_of_arrival,
            ids=False,
        ),
    ),
    quirk("chat-index-first-only", CALL, Variant(frames=each(continuations, _index_first_only))),
    quirk(
        "chat-index-all-zero",
        TWO_CALLS,
        Variant(frames=_all_zero, expected=_in_order_of_arrival),
        Variant("fragments", _fragments_all_zero, expected=_in_order_of_arrival),
    ),
    quirk(
        "chat-index-same-one-chunk",
        TWO_CALLS,
        Variant(frames=_same_one_chunk, expected=_in_order_of_arrival),
    ),
    quirk("chat-index-duplicate-fragments", CALL, Variant(frames=_duplicate_fragments)),
    quirk(
        "chat-index-from-one",
        TWO_CALLS,
        Variant(frames=each(fragments, _from_one)),
        Variant("gap", each(fragments, _gap)),
    ),
    quirk("chat-index-reversed", TWO_CALLS, Variant(frames=each(by_choice, _reversed))),
)
