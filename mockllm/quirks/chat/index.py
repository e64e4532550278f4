"""Group A: quirks of the `index` of tool calls."""

from __future__ import annotations

from dataclasses import replace

from mockllm.core.timeline import normal
from mockllm.core.turn import ToolCall, Turn
from mockllm.quirks.base import Context, Item, Variant, each
from mockllm.quirks.chat import chunks
from mockllm.quirks.samples import CALL, TWO_CALLS


def _without_index(fragment: chunks.CallFragment) -> None:
    del fragment.entry["index"]


def _without_index_and_type(fragment: chunks.CallFragment) -> None:
    fragment.entry.pop("type", None)
    del fragment.entry["index"]


def _with_empty_id(fragment: chunks.CallFragment) -> None:
    chunks.set_fields(fragment, id="", type="function")
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


def _index_first_only(pair: tuple[chunks.CallFragment, chunks.CallFragment]) -> None:
    opening, fragment = pair
    if "id" in opening.entry:
        chunks.set_fields(fragment, id=opening.entry["id"])
        del fragment.entry["index"]


def _zero(items: list[Item]) -> list[Item]:
    for fragment in chunks.fragments(items):
        fragment.entry["index"] = 0
    return items


def _all_zero(items: list[Item], _: Context) -> list[Item]:
    return _zero(chunks.whole(items)) if _several(items) else items


def _fragments_all_zero(items: list[Item], _: Context) -> list[Item]:
    # Every fragment has index 0, so it has to follow the opening of its own call.
    return _zero(chunks.contiguous(items)) if _several(items) else items


def _several(items: list[Item]) -> bool:
    return any(len({f.entry["index"] for f in own}) > 1 for own in chunks.by_choice(items))


def _same_one_chunk(items: list[Item], _: Context) -> list[Item]:
    if not _several(items):
        return items
    items = chunks.whole(items)
    gone: list[chunks.CallFragment] = []
    for first, *others in chunks.by_choice(items):
        for fragment in others:
            gone.append(fragment)
            first.choice.delta["tool_calls"].append({**fragment.entry})
    return _zero(chunks.removed(items, gone))


def _duplicate_fragments(items: list[Item], _: Context) -> list[Item]:
    gone: list[chunks.CallFragment] = []
    for opening, *others in chunks.calls(items):
        entries = opening.choice.delta["tool_calls"]
        after = next(i for i, entry in enumerate(entries) if entry is opening.entry) + 1
        moved = list(others)
        if len(moved) > 1 and not opening.arguments:
            opening.function["arguments"] = moved.pop(0).arguments
        entries[after:after] = [{**fragment.entry} for fragment in moved]
        gone += others
    return chunks.removed(items, gone)


def _from_one(fragment: chunks.CallFragment) -> None:
    fragment.entry["index"] += 1


def _gap(fragment: chunks.CallFragment) -> None:
    fragment.entry["index"] *= 2


def _reversed(own: list[chunks.CallFragment]) -> None:
    """Swaps the entries between the chunks; the chunks keep their positions."""
    ordered = sorted(own, key=lambda fragment: -fragment.entry["index"])
    entries = [{**fragment.entry} for fragment in ordered]
    for fragment, entry in zip(own, entries, strict=True):
        fragment.entry.clear()
        fragment.entry.update(entry)


QUIRKS = (
    chunks.quirk(
        "chat-index-missing",
        CALL,
        Variant(
            frames=each(chunks.fragments, _without_index_and_type, chunks.whole),
            expected=_in_order_of_arrival,
        ),
        Variant(
            "fragments",
            # Without index and id, only the order shows which call a fragment belongs to.
            each(chunks.fragments, _without_index, chunks.contiguous),
            expected=_in_order_of_arrival,
        ),
        Variant(
            "empty-id",
            each(chunks.fragments, _with_empty_id, chunks.whole),
            expected=_in_order_of_arrival,
            ids=False,
        ),
    ),
    chunks.quirk(
        "chat-index-first-only", CALL, Variant(frames=each(chunks.continuations, _index_first_only))
    ),
    chunks.quirk(
        "chat-index-all-zero",
        TWO_CALLS,
        Variant(frames=_all_zero, expected=_in_order_of_arrival),
        Variant("fragments", _fragments_all_zero, expected=_in_order_of_arrival),
    ),
    chunks.quirk(
        "chat-index-same-one-chunk",
        TWO_CALLS,
        Variant(frames=_same_one_chunk, expected=_in_order_of_arrival),
    ),
    chunks.quirk("chat-index-duplicate-fragments", CALL, Variant(frames=_duplicate_fragments)),
    chunks.quirk(
        "chat-index-from-one",
        TWO_CALLS,
        Variant(frames=each(chunks.fragments, _from_one)),
        Variant("gap", each(chunks.fragments, _gap)),
    ),
    chunks.quirk(
        "chat-index-reversed", TWO_CALLS, Variant(frames=each(chunks.by_choice, _reversed))
    ),
)
