"""Quirks of tool calls in the Messages API: where their input is, and where it is cut."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from mockllm.core.turn import ToolCall, Turn
from mockllm.quirks.anthropic.events import (
    Block,
    arguments,
    blocks,
    calls,
    cut,
    delta,
    fragment_of,
    insert_after,
    started_block,
    stop_reason,
    without,
)
from mockllm.quirks.base import Context, FramesChange, Item, Quirk, Variant
from mockllm.quirks.samples import CALL, ZERO

__all__ = ["CALLS"]


# The input of calls


def _no_delta(items: list[Item], _: Context) -> list[Item]:
    empty = (block for block, text in calls(items) if not text)
    return without(items, (position for block in empty for position in block.deltas))


def _empty_deltas(items: list[Item], _: Context) -> list[Item]:
    first = {block.deltas[0] for block, text in calls(items) if not text and block.deltas}
    for position in sorted(first, reverse=True):
        items = insert_after(items, position, items[position].copy())
    return items


def _input_in_start(keep: Callable[[Block], Iterable[int]]) -> FramesChange:
    """Puts the input into the start of its block; `keep` gives the positions of deltas to keep."""

    def change(items: list[Item], _: Context) -> list[Item]:
        dropped: set[int] = set()
        for block, text in calls(items):
            if input := arguments(text):
                started_block(items[block.start])["input"] = input
                dropped |= set(block.deltas) - set(keep(block))
        return without(items, dropped)

    return change


def _input_empty(items: list[Item], _: Context) -> list[Item]:
    """Puts the input into the start of its block, and leaves one empty delta."""
    items = _input_in_start(lambda block: block.deltas[:1])(items, _)
    for block, _text in calls(items):
        if started_block(items[block.start]).get("input") and block.deltas:
            delta(items[block.deltas[0]])["partial_json"] = ""
    return items


def _started_with(**input: Any) -> FramesChange:
    """Starts calls with another `input`, or without one."""

    def change(items: list[Item], _: Context) -> list[Item]:
        for block, _text in calls(items):
            own = started_block(items[block.start])
            own.pop("input", None)
            own |= input
        return items

    return change


# A call that the limit cuts


def _limit(text: str) -> int:
    """How many characters of the arguments are kept: two thirds, and never all of them."""
    size = len(text.rstrip())
    return min(size - 1, -(-2 * size // 3))


def _cut_by_limit(items: list[Item], _: Context) -> list[Item]:
    found = [(block, text) for block, text in calls(items) if arguments(text)]
    if not found or not any(map(stop_reason, items)):
        return items
    block, text = found[-1]
    fragments = [fragment_of(items[position]) for position in block.deltas]
    kept = cut(fragments, _limit(text))
    for position, fragment in zip(block.deltas, kept, strict=False):
        delta(items[position])["partial_json"] = fragment
    for item in items:
        if stop_reason(item):
            fields = delta(item)
            nothing = {"stop_sequence": None, "stop_details": None}
            fields |= {"stop_reason": "max_tokens", **nothing}
    dropped = block.deltas[len(kept) :] + ([] if block.stop is None else [block.stop])
    for later in blocks(items):
        dropped += later.positions if later.start > block.start else []
    return without(items, dropped)


def _call_incomplete(turn: Turn) -> Turn:
    calls = [
        (position, part)
        for position, part in enumerate(turn.parts)
        if isinstance(part, ToolCall) and part.fragments and arguments(part.arguments)
    ]
    if not calls or turn.finish is None:
        return turn
    position, call = calls[-1]
    call = replace(call, fragments=cut(call.fragments, _limit(call.arguments)))
    parts = (*turn.parts[:position], call)
    return replace(turn, parts=parts, order=(), gaps=(), finish="length", finish_raw=None)


# The table

CALLS: tuple[Quirk, ...] = (
    Quirk(
        name="anth-zero-arg",
        group="H",
        topic="arguments",
        title="A call without arguments has only empty deltas, or none",
        only=("anthropic",),
        servers="Anthropic itself",
        right="same",
        correct="make the call with the input `{}`",
        faults='parses the empty string; drops the call as if it had no input; passes on `""`',
        invariant="zero-arguments",
        sample=ZERO,
        variants=(
            Variant(
                "empty-deltas",
                '`"partial_json":""` more than once, and nothing else',
                frames=_empty_deltas,
            ),
            Variant("no-delta", "the block starts and stops", frames=_no_delta),
        ),
        sources=(
            "BerriAI/litellm#5063",
            "langchain-ai/langchain#34767",
            "langchain-ai/langchain#35453",
            "theopenco/llmgateway#2468",
            "ItzCrazyKns/Vane#1160",
            "jyjeanne/crustly#38",
            "pipecat-ai/pipecat#409",
            "jackmpcollins/magentic#408",
        ),
    ),
    Quirk(
        name="anth-input-in-start",
        group="H",
        topic="arguments",
        title="The start of a call already has its input",
        only=("anthropic",),
        servers="converters and proxies",
        right="same",
        correct="use the input of the deltas; use that of the start if the deltas have none",
        faults="ignores it, doubles the input, or fails",
        invariant="arguments-concatenate",
        sample=CALL,
        variants=(
            Variant(
                "alone",
                "the whole `input` in the start, and no deltas",
                frames=_input_in_start(lambda block: ()),
            ),
            Variant(
                "with-deltas",
                "the whole `input` in the start, and all of it in deltas again",
                frames=_input_in_start(lambda block: block.deltas),
            ),
            Variant(
                "empty-delta",
                "the whole `input` in the start, and one empty delta",
                frames=_input_empty,
            ),
        ),
        sources=("Yeachan-Heo/gajae-code#1895",),
    ),
    Quirk(
        name="anth-input-missing",
        group="H",
        topic="arguments",
        title="The start of a call has no input",
        only=("anthropic",),
        servers="llama.cpp",
        right="same",
        correct="assume `{}` until deltas come",
        faults="rejects the event",
        invariant="null-tolerant",
        sample=CALL,
        variants=(
            Variant("absent", "no `input`", frames=_started_with()),
            Variant("empty-string", '`"input":""`', frames=_started_with(input="")),
            Variant("null", '`"input":null`', frames=_started_with(input=None)),
        ),
        sources=("ggml-org/llama.cpp#22960", "farion1231/cc-switch#2557"),
    ),
    Quirk(
        name="anth-tool-cut-by-limit",
        group="H",
        topic="calls",
        title="The token limit cuts a call, whose block never stops",
        only=("anthropic",),
        servers="Anthropic itself",
        right="either",
        correct="never run it: report it, or pass on the incomplete call with its raw text",
        faults="uses `{}`, or a repaired input, as the input",
        invariant="surface-complete",
        sample=CALL,
        variants=(
            Variant(
                description="the input is cut off, and `max_tokens` follows without a stop",
                frames=_cut_by_limit,
                expected=_call_incomplete,
            ),
        ),
    ),
)
