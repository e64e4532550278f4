"""Quirks of tool calls in the Messages API: where their input is, and where it is cut."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from mockllm.core.turn import ToolCall, Turn
from mockllm.quirks.anthropic import events
from mockllm.quirks.base import Context, Item, Variant, parametrised
from mockllm.quirks.samples import CALL, ZERO

# The input of calls


def _no_delta(items: list[Item], _: Context) -> list[Item]:
    empty = (block for block, text in events.calls(items) if not text)
    return events.without(items, (position for block in empty for position in block.deltas))


def _empty_deltas(items: list[Item], _: Context) -> list[Item]:
    first = {block.deltas[0] for block, text in events.calls(items) if not text and block.deltas}
    for position in sorted(first, reverse=True):
        items = events.insert_after(items, position, items[position].copy())
    return items


@parametrised
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


@parametrised
def _started_with(items: list[Item], _: Context, /, **input: Any) -> list[Item]:
    for block, _text in events.calls(items):
        own = events.started_block(items[block.start])
        own.pop("input", None)
        own |= input
    return items


# A call that the limit cuts


def _limit(text: str) -> int:
    """How many characters of the arguments are kept: two thirds, and never all of them."""
    size = len(text.rstrip())
    return min(size - 1, -(-2 * size // 3))


def _cut_by_limit(items: list[Item], _: Context) -> list[Item]:
    called = [(block, text) for block, text in events.calls(items) if events.arguments(text)]
    if not called or not any(map(events.stop_reason, items)):
        return items
    block, text = called[-1]
    fragments = [events.fragment_of(items[position]) for position in block.deltas]
    shortened = events.cut(fragments, _limit(text))
    for position, fragment in zip(block.deltas, shortened, strict=False):
        events.delta(items[position])["partial_json"] = fragment
    for item in items:
        if events.stop_reason(item):
            fields = events.delta(item)
            nothing = {"stop_sequence": None, "stop_details": None}
            fields |= {"stop_reason": "max_tokens", **nothing}
    dropped = block.deltas[len(shortened) :] + ([] if block.stop is None else [block.stop])
    for later in events.blocks(items):
        dropped += later.positions if later.start > block.start else []
    return events.without(items, dropped)


def _call_incomplete(turn: Turn) -> Turn:
    calls = [
        (position, part)
        for position, part in enumerate(turn.parts)
        if isinstance(part, ToolCall) and part.fragments and events.arguments(part.arguments)
    ]
    if not calls or turn.finish is None:
        return turn
    position, call = calls[-1]
    call = replace(call, fragments=events.cut(call.fragments, _limit(call.arguments)))
    parts = (*turn.parts[:position], call)
    return replace(turn, parts=parts, order=(), gaps=(), finish="length", finish_raw=None)


# The table

CALLS = (
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
        "anth-tool-cut-by-limit", CALL, Variant(frames=_cut_by_limit, expected=_call_incomplete)
    ),
)
