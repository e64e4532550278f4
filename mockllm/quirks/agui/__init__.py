"""The quirks of AG-UI, group K.

`calls` has those of tool calls; here are those of the run around them; `events` is the access to
events that they share. Each change stands above its quirk.
"""

from __future__ import annotations

import re
from dataclasses import replace

from mockllm.core.timed_bytes import TimedBytes
from mockllm.core.turn import Turn
from mockllm.quirks import samples
from mockllm.quirks.agui.calls import (
    ARGS_WRONG_ID,
    CHUNK_INTERLEAVE,
    OPEN_CALL_AT_FINISH,
    PARALLEL_CALLS,
    PHANTOM_PARENT,
    SUCCESS_PENDING,
    ZERO_ARG,
)
from mockllm.quirks.agui.events import ENDINGS, kind, last, new_event
from mockllm.quirks.base import Context, FramesChange, Item, Quirk, Variant

__all__ = ["QUIRKS"]

# Framing

_LINE_END = re.compile(rb"\r\n|\r|\n")


def _crlf(stream: list[TimedBytes], context: Context) -> list[TimedBytes]:
    return [TimedBytes(timed.at, _LINE_END.sub(b"\r\n", timed.data)) for timed in stream]


_CRLF = Quirk(
    name="agui-crlf",
    group="K",
    topic="framing",
    only=("agui",),
    title="Lines end in CRLF",
    servers="sse-starlette by default",
    right="same",
    correct="accept all three line ends of the SSE specification",
    faults='splits at "\\n\\n" only: the whole stream is one event, and not JSON',
    invariant="chunking-free",
    sample=samples.TEXT,
    variants=(Variant("", r"data: {...}\r\n\r\n", bytes=_crlf),),
    sources=("hey-api/hey-api#3054",),
)


def _sentinel(items: list[Item], context: Context) -> list[Item]:
    if last(items, *ENDINGS) is None or items[-1].data == "[DONE]":
        return items
    return [*items, Item(items[-1].at, "[DONE]")]


_DONE_SENTINEL = Quirk(
    name="agui-done-sentinel",
    group="K",
    topic="ends",
    only=("agui",),
    title="`[DONE]` follows the end of the run",
    servers="servers that forward the stream of a model",
    right="either",
    correct="ignore it, or report that it is not an event",
    faults="crashes in the JSON parser",
    invariant="unknown-event",
    sample=samples.TEXT,
    variants=(Variant("", "data: [DONE] after RUN_FINISHED", _sentinel),),
)

# The end of the run

_CLOSERS = frozenset(
    {
        "TEXT_MESSAGE_END",
        "TOOL_CALL_END",
        "REASONING_MESSAGE_END",
        "REASONING_ENCRYPTED_VALUE",
        "REASONING_END",
    }
)


def _unfinished(items: list[Item], context: Context) -> list[Item]:
    end = last(items, *ENDINGS)
    return items if end is None else items[:end]


def _unclosed(items: list[Item], context: Context) -> list[Item]:
    """Removes the end of the run, and the events directly before it that close something."""
    end = last(items, *ENDINGS)
    if end is None:
        return items
    while end and kind(items[end - 1]) in _CLOSERS:
        end -= 1
    return items[:end]


def _nothing(items: list[Item], context: Context) -> list[Item]:
    return []


def _cut(turn: Turn) -> Turn:
    return replace(turn, finish=None, finish_raw=None, usage=None, error=None)


_NO_RUN_FINISHED = Quirk(
    name="agui-no-run-finished",
    group="K",
    topic="ends",
    only=("agui",),
    title="The stream ends before the run does",
    servers="servers that crashed",
    right="error",
    correct="report that the run was cut",
    faults="treats the run as finished",
    invariant="truncated-is-not-complete",
    sample=samples.TEXT,
    variants=(
        Variant("after-message", "ends after TEXT_MESSAGE_END", _unfinished, expected=_cut),
        Variant("inside-message", "ends after the last fragment", _unclosed, expected=_cut),
        Variant("empty", "no events at all", _nothing, expected=lambda _: Turn()),
    ),
    sources=("ag-ui-protocol/ag-ui#2300", "ag-ui-protocol/ag-ui#2354", "agno-agi/agno#7593"),
)

# Events between


def _empty_first(items: list[Item], context: Context) -> list[Item]:
    changed = []
    for item in items:
        changed.append(item)
        if kind(item) == "TEXT_MESSAGE_START":
            id = item.data.get("messageId")
            changed.append(new_event(item.at, "TEXT_MESSAGE_CONTENT", messageId=id, delta=""))
    return changed


_EMPTY_DELTA = Quirk(
    name="agui-empty-delta",
    group="K",
    topic="arguments",
    only=("agui",),
    title="A fragment of text is empty",
    servers="agents that forward the first chunk of a model",
    right="same",
    correct="append nothing",
    faults="rejects the run",
    invariant="text-accumulates",
    sample=samples.TEXT,
    variants=(Variant("", '"delta":"" before the first fragment', _empty_first),),
    sources=(
        "ag-ui-protocol/ag-ui#734",
        "ag-ui-protocol/ag-ui#745",
        "pydantic/pydantic-ai#2766",
        "pydantic/pydantic-ai#2779",
        "microsoft/agent-framework#2539",
    ),
)


def _after_start(*types: str) -> FramesChange:
    """Adds events without fields after the first RUN_STARTED."""

    def change(items: list[Item], context: Context) -> list[Item]:
        start = next((i for i, item in enumerate(items, 1) if kind(item) == "RUN_STARTED"), None)
        if start is None:
            return items
        at = items[start - 1].at
        return [*items[:start], *(new_event(at, type) for type in types), *items[start:]]

    return change


_UNKNOWN_EVENT = Quirk(
    name="agui-unknown-event",
    group="K",
    topic="unknown events",
    only=("agui",),
    title="An event type that this version of the protocol does not have",
    servers="agents of another version",
    right="same",
    correct="ignore it, with a warning",
    faults="raises an error",
    invariant="unknown-event",
    sample=samples.TEXT,
    variants=(
        Variant("new", '{"type":"KIT_UNKNOWN"} after RUN_STARTED', _after_start("KIT_UNKNOWN")),
        Variant(
            "removed",
            "THINKING_START and THINKING_END, of versions before 1.0, after RUN_STARTED",
            _after_start("THINKING_START", "THINKING_END"),
        ),
    ),
)

QUIRKS: tuple[Quirk, ...] = (
    _CRLF,
    _NO_RUN_FINISHED,
    _EMPTY_DELTA,
    ARGS_WRONG_ID,
    PHANTOM_PARENT,
    SUCCESS_PENDING,
    OPEN_CALL_AT_FINISH,
    PARALLEL_CALLS,
    _DONE_SENTINEL,
    CHUNK_INTERLEAVE,
    ZERO_ARG,
    _UNKNOWN_EVENT,
)
