"""Quirks of Responses streams as a whole: their beginning, errors, and their end.

Each change stands above its quirk.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mockllm.core.events import FinishReason, StreamError
from mockllm.core.turn import Turn
from mockllm.quirks import samples
from mockllm.quirks.base import Context, FramesChange, Item, Quirk, Variant
from mockllm.quirks.responses.events import (
    COMPLETE,
    ITEM_DONE,
    OPENERS,
    event,
    index,
    kind,
    last,
    new_event,
    numbered,
    output_item,
    rename,
    response,
    without,
)

__all__ = [
    "AFTER_COMPLETED",
    "COMPLETED_OUTPUT_EMPTY",
    "ERROR_SHAPE",
    "INCOMPLETE",
    "MISSING_OPENERS",
    "NO_TERMINAL",
]

# The beginning

_ITEM_OPENERS = ("response.output_item.added",)
_PART_OPENERS = ("response.content_part.added", "response.reasoning_summary_part.added")

MISSING_OPENERS = Quirk(
    name="resp-missing-openers",
    group="I",
    topic="blocks",
    only=("responses",),
    title="Deltas come without the events that open their item",
    servers="servers that convert from another protocol",
    right="either",
    correct="open the missing item or part at its first delta, or clearly report what is missing",
    faults="fails with a KeyError, or reports content before its item",
    invariant="null-tolerant",
    sample=samples.TEXT,
    variants=(
        Variant(
            "all",
            "the first delta is the first event",
            without(*OPENERS, *_ITEM_OPENERS, *_PART_OPENERS),
        ),
        Variant("created", "neither response.created nor response.in_progress", without(*OPENERS)),
        Variant("item-added", "no response.output_item.added", without(*_ITEM_OPENERS)),
        Variant("part-added", "no response.content_part.added", without(*_PART_OPENERS)),
    ),
    sources=("BerriAI/litellm#30115", "BerriAI/litellm#27442"),
)

# Errors

_ERROR = StreamError("The server had an error.", "server_error", "server_error")


def _failing(items: list[Item]) -> list[Item]:
    """The stream cut after the openers, with an error as the service sends it; a stream that has
    an error is not changed."""
    position = last(items, OPENERS)
    if position is None or any(kind(item) == "error" for item in items):
        return items
    begun = items[position]
    error = {"code": _ERROR.code, "message": _ERROR.message}
    failed = {**copy.deepcopy(response(begun)), "status": "failed", "error": error}
    return [
        *items[: position + 1],
        new_event(begun.at, "error", error={"type": _ERROR.type, **error, "param": None}),
        new_event(begun.at, "response.failed", response=failed),
    ]


@numbered
def _nested(items: list[Item], context: Context) -> list[Item]:
    return _failing(items)


@numbered
def _flat(items: list[Item], context: Context) -> list[Item]:
    failing = _failing(items)
    for item in failing:
        nested = event(item).get("error")
        if kind(item) == "error" and isinstance(nested, dict):
            del item.data["error"]
            flat = {name: nested.get(name) for name in ("code", "message", "param")}
            item.data = {"type": "error", **flat, **item.data}
    return [item for item in failing if kind(item) != "response.failed"]


@numbered
def _failed(items: list[Item], context: Context) -> list[Item]:
    failing = _failing(items)
    if all(kind(item) != "response.failed" for item in failing):
        return failing
    return [item for item in failing if kind(item) != "error"]


def _only_an_error(turn: Turn) -> Turn:
    return turn if turn.error is not None else Turn(error=_ERROR)


ERROR_SHAPE = Quirk(
    name="resp-error-shape",
    group="I",
    topic="errors",
    only=("responses",),
    title="The error event of the service differs from its documentation",
    servers="OpenAI (nested), servers that follow the documentation (flat)",
    right="error",
    correct="raise both forms, and response.failed",
    faults="ignores one of the forms, and treats the answer as complete",
    invariant="error-ends",
    sample=samples.TEXT,
    variants=(
        Variant(
            "nested",
            '{"type":"error","error":{...}}, then response.failed',
            _nested,
            expected=_only_an_error,
        ),
        Variant(
            "flat",
            '{"type":"error","code":...,"message":...,"param":...}, and nothing more',
            _flat,
            expected=_only_an_error,
        ),
        Variant("failed", "response.failed alone", _failed, expected=_only_an_error),
    ),
    sources=(
        "openai/openai-dotnet#881",
        "Effect-TS/effect#7262",
        "vercel/ai#20022",
        "can1357/oh-my-pi#2570",
        "praxis-proxy/ai#1001",
        "BerriAI/litellm#29223",
    ),
)

# The end


def _final_output(value: Callable[[], Any]) -> FramesChange:
    def change(items: list[Item], context: Context) -> list[Item]:
        for item in items:
            if kind(item) in COMPLETE and response(item):
                response(item)["output"] = value()
        return items

    return change


COMPLETED_OUTPUT_EMPTY = Quirk(
    name="resp-completed-output-empty",
    group="I",
    topic="ends",
    only=("responses",),
    title="The final response has no output",
    servers="the backend of Codex, proxies",
    right="same",
    correct="build the output from the finished items",
    faults="returns an empty answer",
    invariant="text-accumulates",
    sample=samples.TEXT_AND_CALL,
    variants=(
        Variant("empty", '"output":[] in the final response', _final_output(list)),
        Variant("null", '"output":null in the final response', _final_output(lambda: None)),
    ),
    sources=(
        "bytedance/deer-flow#1928",
        "NousResearch/hermes-agent#5724",
        "NousResearch/hermes-agent#5758",
        "bubbuild/republic#37",
        "NVIDIA-NeMo/Switchyard#777",
    ),
)


def _incomplete(reason: str) -> FramesChange:
    """Gives the response and the last item of its output the status `incomplete`."""

    def change(items: list[Item], context: Context) -> list[Item]:
        position = last(items, COMPLETE)
        if position is None:
            return items
        rename(items[position], "response.incomplete")
        final = response(items[position])
        final |= {"status": "incomplete", "incomplete_details": {"reason": reason}}
        done = last(items, frozenset({ITEM_DONE}))
        unfinished = {} if done is None else output_item(items[done])
        listed = final.get("output")
        entries = listed if isinstance(listed, list) else []
        for entry in (unfinished, *entries):
            same = isinstance(entry, dict) and entry.get("id") == unfinished.get("id")
            if same and "status" in entry:
                entry["status"] = "incomplete"
        return items

    return change


@numbered
def _never_ended(items: list[Item], context: Context) -> list[Item]:
    """Like `_incomplete` at the limit of tokens, without the done events of the last item."""
    if last(items, COMPLETE) is None:
        return items
    items = _incomplete("max_output_tokens")(items, context)
    done = last(items, frozenset({ITEM_DONE}))
    unfinished = None if done is None else index(items[done])
    if unfinished is None:
        return items
    return [i for i in items if not (kind(i).endswith(".done") and index(i) == unfinished)]


def _finished(finish: FinishReason) -> Callable[[Turn], Turn]:
    def expected(turn: Turn) -> Turn:
        return turn if turn.finish is None else replace(turn, finish=finish, finish_raw=None)

    return expected


INCOMPLETE = Quirk(
    name="resp-incomplete",
    group="I",
    topic="ends",
    only=("responses",),
    title="The stream ends in response.incomplete",
    servers="OpenAI, at a limit",
    right="same",
    correct="return the partial answer with the reason why it is incomplete",
    faults="raises a RuntimeError, answers with status 500, or treats the answer as complete",
    invariant="finish-and-usage",
    sample=samples.TEXT,
    variants=(
        Variant(
            "max-output-tokens",
            "response.incomplete at the limit of tokens",
            _incomplete("max_output_tokens"),
            expected=_finished("length"),
        ),
        Variant(
            "content-filter",
            "response.incomplete by the content filter",
            _incomplete("content_filter"),
            expected=_finished("content_filter"),
        ),
        Variant(
            "open-item",
            "response.incomplete at the limit of tokens, while the last item is open",
            _never_ended,
            expected=_finished("length"),
            sample=samples.CALL_AT_LIMIT,
        ),
    ),
    sources=("BerriAI/litellm#37710", "14790897/MiqroForge-Desktop#1100"),
)


def _unfinished(turn: Turn) -> Turn:
    if turn.finish is None:
        return turn
    return replace(turn, finish=None, finish_raw=None, usage=None)


NO_TERMINAL = Quirk(
    name="resp-no-terminal",
    group="I",
    topic="ends",
    only=("responses",),
    title="The stream ends without response.completed",
    servers="networks, gateways",
    right="error",
    correct="report that the answer was cut",
    faults="treats the answer as complete",
    invariant="truncated-is-not-complete",
    sample=samples.TEXT,
    variants=(
        Variant(
            "",
            "every event but the last; the connection closes properly",
            without(*COMPLETE),
            expected=_unfinished,
        ),
    ),
    sources=("openai/openai-node#2725", "NVIDIA-NeMo/Switchyard#283"),
)


@numbered
def _delta_after_completed(items: list[Item], context: Context) -> list[Item]:
    end = last(items, COMPLETE)
    deltas = [item for item in items if kind(item).endswith(".delta")]
    if end is None or not deltas:
        return items
    late = deltas[-1].copy()
    late.at = items[end].at
    return [*items[: end + 1], late, *items[end + 1 :]]


AFTER_COMPLETED = Quirk(
    name="resp-after-completed",
    group="I",
    topic="ends",
    only=("responses",),
    title="A delta comes after response.completed",
    servers="proxies",
    right="same",
    correct="ignore everything after the end",
    faults="appends it to the answer",
    invariant="final-replaces",
    sample=samples.TEXT,
    variants=(
        Variant("", "the last delta again, after response.completed", _delta_after_completed),
    ),
)
