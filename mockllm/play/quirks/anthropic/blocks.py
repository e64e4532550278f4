"""Quirks of content blocks in the Messages API: calls and their input, indexes, signatures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any

from mockllm.core.turn import Part, Reasoning, ToolCall, Turn
from mockllm.play.quirks.anthropic import events
from mockllm.play.quirks.base import (
    Context,
    Item,
    Tolerance,
    Variant,
    drop,
    each_with,
    spread,
    with_parameters,
)
from mockllm.play.quirks.samples import CALL, REASONING, TEXT, TEXT_AND_CALL, TWO_CALLS, ZERO
from mockllm.play.quirks.streams import SHARED_ID, alternating, at_times_of, event
from mockllm.scenario.model import Api

# The input of calls


def _no_delta(items: list[Item], _: Context) -> list[Item]:
    empty = (block for block, text in events.calls(items) if not text)
    return events.without(items, (position for block in empty for position in block.deltas))


def _empty_deltas(items: list[Item], _: Context) -> list[Item]:
    first = {block.deltas[0] for block, text in events.calls(items) if not text and block.deltas}
    for position in sorted(first, reverse=True):
        items = events.insert_after(items, position, items[position].copy())
    return items


@with_parameters
def _input_in_start(
    items: list[Item], _: Context, keep: Callable[[events.Block], Iterable[int]]
) -> list[Item]:
    """Puts the input into the start of its block; `keep` gives the positions of deltas to keep."""
    dropped: set[int] = set()
    for block, text in events.calls(items):
        if input := events.arguments(text):
            events.started_block(items[block.start])["input"] = input
            dropped |= set(block.deltas) - set(keep(block))
    return events.without(items, dropped)


def _input_empty(items: list[Item], _: Context) -> list[Item]:
    items = _input_in_start(lambda block: block.deltas[:1])(items, _)
    for block, _text in events.calls(items):
        if events.started_block(items[block.start]).get("input") and block.deltas:
            events.delta(items[block.deltas[0]])["partial_json"] = ""
    return items


@with_parameters
def _started_with(items: list[Item], _: Context, /, **input: Any) -> list[Item]:
    for block, _text in events.calls(items):
        own = events.started_block(items[block.start])
        own.pop("input", None)
        own |= input
    return items


# A call that the limit cuts


def _limit(text: str) -> int:
    """The number of characters of the arguments that stay: two thirds, and never all of them."""
    size = len(text.rstrip())
    return min(size - 1, -(-2 * size // 3))


@with_parameters
def _cut_by_limit(items: list[Item], _: Context, limit: Callable[[str], int]) -> list[Item]:
    called = [(block, text) for block, text in events.calls(items) if events.arguments(text)]
    if not called or not any(map(events.stop_reason, items)):
        return items
    block, text = called[-1]
    fragments = [events.fragment_of(items[position]) for position in block.deltas]
    shortened = events.cut(fragments, limit(text))
    for position, fragment in zip(block.deltas, shortened, strict=False):
        events.delta(items[position])["partial_json"] = fragment
    for item in items:
        if events.stop_reason(item):
            fields = events.delta(item)
            nothing = {"stop_sequence": None, "stop_details": None}
            fields |= {"stop_reason": "max_tokens", **nothing}
    dropped = block.deltas[len(shortened) :] + ([] if block.stop is None else [block.stop])
    for following in events.blocks(items):
        dropped += following.positions if following.start > block.start else []
    return events.without(items, dropped)


def _call_left_out(turn: Turn) -> Turn:
    """The turn without the call that the limit cut; before any of its input, `{}` is not meant."""
    calls = [place for place, part in enumerate(turn.parts) if isinstance(part, ToolCall)]
    if not calls or turn.finish != "length":
        return turn
    parts = (*turn.parts[: calls[-1]], *turn.parts[calls[-1] + 1 :])
    return replace(turn, parts=parts, order=(), gaps=())


_LEFT_OUT = Tolerance(
    "the incomplete call may be left out: the finish says why",
    lambda turn, _: _call_left_out(turn),
)


# Indexes


@each_with(list)
def _renumber(item: Item, number: Callable[[int], int]) -> None:
    index = events.index_of(item)
    if index is not None:
        event(item)["index"] = number(index)


def _out_of_order(items: list[Item], _: Context) -> list[Item]:
    """Gives the lowest indexes to the blocks of the type that began last. Blocks of one type keep
    their order, so that clients that read by arrival and clients that sort by index get the same
    texts and calls."""
    types: dict[int, str] = {}
    for block in events.blocks(items):
        types.setdefault(block.index, block.kind)
    last = {type: position for position, type in enumerate(dict.fromkeys(types.values()))}
    order = sorted(types, key=lambda index: -last[types[index]])
    numbers = dict(zip(order, sorted(types), strict=True))
    return _renumber(lambda index: numbers.get(index, index))(items, _)


def _alone(opened: Sequence[events.Block]) -> list[bool]:
    alone = []
    latest = -1
    for block, following in zip_longest(opened, opened[1:]):
        end = block.positions[-1]
        before = following is None or end < following.start
        alone.append(latest < block.start and before)
        latest = max(latest, end)
    return alone


def _all_zero(items: list[Item], context: Context) -> list[Item]:
    if not all(_alone(events.blocks(items))):
        return items
    return _renumber(lambda _: 0)(items, context)


def _interleave(items: list[Item], _: Context) -> list[Item]:
    for run in _runs(events.blocks(items)):
        order = [
            *(block.start for block in run),
            *alternating(*(block.deltas for block in run)),
            *(block.stop for block in run if block.stop is not None),
        ]
        slots = sorted(order)
        moved = at_times_of([items[slot] for slot in slots], [items[slot] for slot in order])
        for slot, item in zip(slots, moved, strict=True):
            items[slot] = item
    return items


def _runs(opened: Sequence[events.Block]) -> Iterator[list[events.Block]]:
    """Runs of blocks that may be open at once: calls, and at most one block of text and one of
    thinking, because clients that ignore the index would mix two texts."""
    run: list[events.Block] = []
    for block, alone in zip(opened, _alone(opened), strict=True):
        second_text = block.kind != "tool_use" and block.kind in [other.kind for other in run]
        unfinished = bool(run) and run[-1].stop is None
        fits = alone and block.kind in events.NEUTRAL
        if run and (not fits or second_text or unfinished):
            yield run
            run = []
        if fits:
            run.append(block)
    if run:
        yield run


# Blocks without their own start


def _drop_starts(items: list[Item], _: Context) -> list[Item]:
    """Removes the starts of texts and of thinking; without its start a call has no name."""
    texts = ("text", "thinking")
    starts = [block.start for block in events.blocks(items) if block.kind in texts]
    return events.without(items, starts)


def _other_index(items: list[Item], _: Context) -> list[Item]:
    """Gives everything after the start of the last block, if that is a text, the next index."""
    opened = events.blocks(items)
    if opened and opened[-1].kind == "text" and all(_alone(opened)):
        for position in opened[-1].positions[1:]:
            event(items[position])["index"] += 1
    return items


# Ids


def _id_shared(items: list[Item], _: Context) -> list[Item]:
    called = [events.started_block(items[block.start]) for block, _text in events.calls(items)]
    for own in called:
        own["id"] = called[0].get("id")
    return items


# Thinking and text


def _unsigned_start(items: list[Item], _: Context) -> list[Item]:
    for block in events.blocks(items):
        if block.kind == "thinking":
            events.started_block(items[block.start]).pop("signature", None)
    return items


def _split_signature(item: Item) -> list[Item]:
    signature = events.delta(item).get("signature")
    if not isinstance(signature, str) or len(signature) < 2:
        return [item]
    rest = item.copy()
    events.delta(item)["signature"], events.delta(rest)["signature"] = _halves(signature)
    return [item, rest]


def _signatures_not_joined(turn: Turn, _: Api) -> Turn:
    """The turn of a client that keeps each fragment of a signature as a value of its own."""
    parts: list[Part] = []
    for part in turn.parts:
        if isinstance(part, Reasoning) and len(part.signature or "") > 1:
            first, second = _halves(part.signature or "")
            parts += [replace(part, signature=first), Reasoning((), second)]
        else:
            parts.append(part)
    return replace(turn, parts=tuple(parts), order=(), gaps=())


def _last_fragments(turn: Turn, _: Api) -> Turn:
    parts = tuple(
        replace(part, signature=_halves(part.signature)[1])
        if isinstance(part, Reasoning) and part.signature
        else part
        for part in turn.parts
    )
    return replace(turn, parts=parts)


def _halves(text: str) -> tuple[str, str]:
    return text[: len(text) // 2], text[len(text) // 2 :]


@with_parameters
def _text_in_start(items: list[Item], _: Context, *, whole: bool) -> list[Item]:
    """Moves the first fragment that is not empty, or the whole text, to the start of its block."""
    dropped: list[int] = []
    for block in events.blocks(items):
        own = events.started_block(items[block.start])
        deltas = [position for position in block.deltas if events.fragment_of(items[position])]
        if block.kind == "text" and own.get("text") == "" and deltas:
            moved = deltas if whole else deltas[:1]
            own["text"] = "".join(events.fragment_of(items[position]) for position in moved)
            dropped += moved
    return events.without(items, dropped)


# The table

QUIRKS = (
    events.quirk(
        "anth-zero-arg",
        ZERO,
        Variant("empty-deltas", _empty_deltas),
        Variant("no-delta", _no_delta),
    ),
    events.quirk(
        "anth-input-in-start",
        CALL,
        Variant("alone", _input_in_start(lambda block: ())),
        Variant("with-deltas", _input_in_start(lambda block: block.deltas)),
        Variant("empty-delta", _input_empty),
    ),
    events.quirk(
        "anth-input-missing",
        CALL,
        Variant("absent", _started_with()),
        Variant("empty-string", _started_with(input="")),
        Variant("null", _started_with(input=None)),
    ),
    events.quirk(
        "anth-tool-cut-by-limit",
        CALL,
        Variant(frames=_cut_by_limit(_limit), as_sent=True, tolerated=(_LEFT_OUT,)),
        Variant("empty", _cut_by_limit(lambda _: 0), as_sent=True, expected=_call_left_out),
    ),
    events.quirk(
        "anth-index-gap",
        TEXT_AND_CALL,
        Variant("gap", _renumber(lambda index: index + 1 if index > 0 else index)),
        Variant("from-one", _renumber(lambda index: index + 1)),
        Variant("out-of-order", _out_of_order),
    ),
    events.quirk("anth-index-all-zero", TEXT_AND_CALL, _all_zero),
    events.quirk("anth-interleaved", TWO_CALLS, _interleave),
    events.quirk(
        "anth-start-missing",
        TEXT,
        Variant("absent", _drop_starts),
        Variant("other-index", _other_index),
    ),
    events.quirk(
        "anth-id-shared",
        TWO_CALLS,
        Variant(frames=_id_shared, ids=False, tolerated=(SHARED_ID,)),
    ),
    events.quirk(
        "anth-signature",
        REASONING,
        Variant(
            "missing",
            drop(lambda item: events.delta(item).get("type") == "signature_delta"),
            as_sent=True,
        ),
        Variant(
            "split",
            spread(_split_signature),
            tolerated=(
                Tolerance(
                    "the fragments of a signature may be kept one by one", _signatures_not_joined
                ),
                # No server is known to split a signature, and the service does not specify it.
                Tolerance("the last fragment of a signature may be kept", _last_fragments),
            ),
        ),
        Variant("not-in-start", _unsigned_start),
    ),
    events.quirk(
        "anth-text-in-start",
        TEXT,
        Variant("first", _text_in_start(whole=False)),
        Variant("whole", _text_in_start(whole=True)),
    ),
)
