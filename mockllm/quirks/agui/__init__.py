"""The quirks of AG-UI, group K.

`calls` has those of tool calls; here are those of the run around them; `events` is the access to
events that they share. Each change stands above its quirk.
"""

from __future__ import annotations

from mockllm.core.turn import Turn
from mockllm.protocols.ag_ui.objects import ENDINGS
from mockllm.quirks import samples
from mockllm.quirks.agui import calls
from mockllm.quirks.agui.events import new_event, quirk
from mockllm.quirks.base import Context, Item, Quirk, Variant, parametrised, spread
from mockllm.quirks.ends import with_done, without_finish
from mockllm.quirks.framing.changes import line_ends
from mockllm.quirks.typed_events import kind, last

__all__ = ["QUIRKS"]

# Framing

_CRLF = quirk("agui-crlf", samples.TEXT, Variant(bytes=line_ends(b"\r\n")))


_DONE_SENTINEL = quirk(
    "agui-done-sentinel",
    samples.TEXT,
    Variant(frames=with_done(lambda items: last(items, *ENDINGS) is not None)),
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


_NO_RUN_FINISHED = quirk(
    "agui-no-run-finished",
    samples.TEXT,
    Variant("after-message", _unfinished, expected=without_finish),
    Variant("inside-message", _unclosed, expected=without_finish),
    Variant("empty", lambda _items, _context: [], expected=lambda _: Turn()),
)

# Events between


def _with_empty(item: Item) -> list[Item]:
    if kind(item) != "TEXT_MESSAGE_START":
        return [item]
    id = item.data.get("messageId")
    return [item, new_event(item.at, "TEXT_MESSAGE_CONTENT", messageId=id, delta="")]


_EMPTY_DELTA = quirk("agui-empty-delta", samples.TEXT, Variant(frames=spread(_with_empty)))


@parametrised
def _after_start(items: list[Item], context: Context, *types: str) -> list[Item]:
    start = next((i for i, item in enumerate(items, 1) if kind(item) == "RUN_STARTED"), None)
    if start is None:
        return items
    at = items[start - 1].at
    return [*items[:start], *(new_event(at, type) for type in types), *items[start:]]


_UNKNOWN_EVENT = quirk(
    "agui-unknown-event",
    samples.TEXT,
    Variant("new", _after_start("KIT_UNKNOWN")),
    Variant("removed", _after_start("THINKING_START", "THINKING_END")),
)

QUIRKS: tuple[Quirk, ...] = (
    _CRLF,
    _NO_RUN_FINISHED,
    _EMPTY_DELTA,
    calls.ARGS_WRONG_ID,
    calls.PHANTOM_PARENT,
    calls.SUCCESS_PENDING,
    calls.OPEN_CALL_AT_FINISH,
    calls.PARALLEL_CALLS,
    _DONE_SENTINEL,
    calls.CHUNK_INTERLEAVE,
    calls.ZERO_ARG,
    _UNKNOWN_EVENT,
)
