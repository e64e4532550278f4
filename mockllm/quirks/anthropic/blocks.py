"""The quirks of content blocks in the Messages API: their indexes, thinking, text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest

from mockllm.core.turn import Reasoning, Turn
from mockllm.quirks.anthropic.events import (
    NEUTRAL,
    Block,
    blocks,
    delta,
    event,
    index_of,
    started,
    without,
    words,
)
from mockllm.quirks.base import Context, FramesChange, Item, Quirk, Variant
from mockllm.quirks.samples import REASONING, TEXT, TEXT_AND_CALL, TWO_CALLS

__all__ = ["BLOCKS"]


# Indexes


def _renumbered(number: Callable[[int], int]) -> FramesChange:
    def change(items: list[Item], _: Context) -> list[Item]:
        for item in items:
            index = index_of(item)
            if index is not None:
                event(item)["index"] = number(index)
        return items

    return change


def _out_of_order(items: list[Item], _: Context) -> list[Item]:
    """Gives the blocks of the type that began last the lowest indexes. Blocks of one type keep
    their order, so that whoever reads by arrival and whoever sorts by index agree."""
    types: dict[int, str] = {}
    for block in blocks(items):
        types.setdefault(block.index, block.kind)
    last = {type: place for place, type in enumerate(dict.fromkeys(types.values()))}
    order = sorted(types, key=lambda index: -last[types[index]])
    numbers = dict(zip(order, sorted(types), strict=True))
    return _renumbered(lambda index: numbers.get(index, index))(items, _)


def _alone(found: Sequence[Block]) -> list[bool]:
    """Of each block, whether no other is open while it is."""
    alone = []
    latest = -1
    for block, following in zip_longest(found, found[1:]):
        end = block.places[-1]
        before = following is None or end < following.start
        alone.append(latest < block.start and before)
        latest = max(latest, end)
    return alone


def _all_zero(items: list[Item], context: Context) -> list[Item]:
    """Gives every block the index 0, where no two are open at once."""
    if not all(_alone(blocks(items))):
        return items
    return _renumbered(lambda _: 0)(items, context)


def _interleaved(items: list[Item], _: Context) -> list[Item]:
    for run in _runs(blocks(items)):
        turns = zip_longest(*(block.deltas for block in run))
        order = [
            *(block.start for block in run),
            *(place for each in turns for place in each if place is not None),
            *(block.stop for block in run if block.stop is not None),
        ]
        moved = [items[place] for place in order]
        # The moments stay with the places, or all that comes later would be late.
        slots = sorted(order)
        moments = [items[place].at for place in slots]
        for place, at, item in zip(slots, moments, moved, strict=True):
            items[place] = replace(item, at=at)
    return items


def _runs(found: Sequence[Block]) -> Iterator[list[Block]]:
    """Blocks that follow each other and may be open at once: calls, and not more than one of
    text and of thinking, whose words would mix."""
    run: list[Block] = []
    for block, alone in zip(found, _alone(found), strict=True):
        wordy = block.kind != "tool_use" and block.kind in [other.kind for other in run]
        unfinished = bool(run) and run[-1].stop is None
        fits = alone and block.kind in NEUTRAL
        if run and (not fits or wordy or unfinished):
            yield run
            run = []
        if fits:
            run.append(block)
    if run:
        yield run


# Thinking and text


def _unsigned(items: list[Item], _: Context) -> list[Item]:
    return [item for item in items if delta(item).get("type") != "signature_delta"]


def _without_signatures(turn: Turn) -> Turn:
    parts = (replace(p, signature=None) if isinstance(p, Reasoning) else p for p in turn.parts)
    return replace(turn, parts=tuple(parts))


def _split_signature(items: list[Item], _: Context) -> list[Item]:
    changed = []
    for item in items:
        changed.append(item)
        signature = delta(item).get("signature")
        if isinstance(signature, str) and len(signature) > 1:
            rest = item.copy()
            delta(item)["signature"] = signature[: len(signature) // 2]
            delta(rest)["signature"] = signature[len(signature) // 2 :]
            changed.append(rest)
    return changed


def _text_in_start(*, whole: bool) -> FramesChange:
    """Has the first fragment that says something, or all of them, in the start of its block."""

    def change(items: list[Item], _: Context) -> list[Item]:
        dropped: list[int] = []
        for block in blocks(items):
            own = started(items[block.start])
            telling = [place for place in block.deltas if words(items[place])]
            if block.kind == "text" and own.get("text") == "" and telling:
                taken = telling if whole else telling[:1]
                own["text"] = "".join(words(items[place]) for place in taken)
                dropped += taken
        return without(items, dropped)

    return change


# The table

BLOCKS: tuple[Quirk, ...] = (
    Quirk(
        name="anth-index-gap",
        group="H",
        title="Blocks are not numbered 0, 1, 2",
        only=("anthropic",),
        servers="oMLX, converters that leave thinking out",
        right="same",
        correct="the index is a key and no place in a list",
        faults="an IndexError, or the block is lost without a word",
        invariant="arguments-concatenate",
        sample=TEXT_AND_CALL,
        variants=(
            Variant(
                "gap",
                '`"index":2` for the second block',
                frames=_renumbered(lambda index: index + 1 if index > 0 else index),
            ),
            Variant(
                "from-one",
                '`"index":1` for the first block',
                frames=_renumbered(lambda index: index + 1),
            ),
            Variant("out-of-order", "index 1 comes before index 0", frames=_out_of_order),
        ),
        sources=(
            "jundot/omlx#1353",
            "anthropics/anthropic-sdk-python#1192",
            "anthropics/anthropic-sdk-python#1145",
        ),
    ),
    Quirk(
        name="anth-index-all-zero",
        group="H",
        title="Every block has the index 0",
        only=("anthropic",),
        servers="converters",
        right="same",
        correct="a start begins another block, whatever its index",
        faults="adds the input of a call to the text before it, or loses it",
        invariant="arguments-concatenate",
        sample=TEXT_AND_CALL,
        variants=(Variant(says="text with index 0, then a call with index 0", frames=_all_zero),),
    ),
    Quirk(
        name="anth-interleaved",
        group="H",
        title="Deltas of several blocks alternate",
        only=("anthropic",),
        servers="converters from parallel calls of other APIs",
        right="same",
        correct="each delta belongs to the block of its index",
        faults="adds all deltas to the block that started last",
        invariant="arguments-concatenate",
        sample=TWO_CALLS,
        variants=(Variant(says="deltas with index 0, 1, 0, 1", frames=_interleaved),),
    ),
    Quirk(
        name="anth-signature",
        group="H",
        title="Thinking has no signature, or one in pieces",
        only=("anthropic",),
        servers="llama.cpp, lmdeploy and gateways leave it out; none is known to split it",
        right="same",
        correct="without one, do not send the block back as signed; pieces are left open",
        faults="the next request is refused; only the last piece is kept",
        invariant="null-tolerant",
        sample=REASONING,
        variants=(
            Variant(
                "missing", "no `signature_delta`", frames=_unsigned, meaning=_without_signatures
            ),
            Variant("split", "two of `signature_delta`", frames=_split_signature),
        ),
        sources=(
            "ggml-org/llama.cpp#20090",
            "InternLM/lmdeploy#4851",
            "8monkey-ai/hebo-gateway#132",
            "bitrouter/bitrouter#592",
        ),
    ),
    Quirk(
        name="anth-text-in-start",
        group="H",
        title="The start of a text has its first words already",
        only=("anthropic",),
        servers="converters",
        right="same",
        correct="the text is that of the start and then of the deltas",
        faults="loses the first words",
        invariant="text-accumulates",
        sample=TEXT,
        variants=(
            Variant("first", "the first fragment in the start", frames=_text_in_start(whole=False)),
            Variant(
                "whole",
                "the whole text in the start, and no deltas",
                frames=_text_in_start(whole=True),
            ),
        ),
    ),
)
