"""The quirks of AG-UI, group K.

First what they share: calls, and new events.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from itertools import groupby
from typing import Any

from mockllm.core.events import StreamError
from mockllm.core.turn import ToolCall, Turn
from mockllm.play.quirks import samples
from mockllm.play.quirks.base import (
    Context,
    Item,
    Quirk,
    Variant,
    each,
    quirks_of,
    spread,
    with_parameters,
)
from mockllm.play.quirks.framing.changes import line_ends
from mockllm.play.quirks.streams import (
    alternating,
    at_times_of,
    end_in_error,
    event,
    kind,
    last,
    with_done,
)
from mockllm.wire.protocols.ag_ui.objects import ENDINGS

quirk = quirks_of("agui")
"""A quirk of AG-UI."""

START, ARGS, END = "TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END"


def call_id(item: Item) -> str | None:
    """The id of the call that an event belongs to; None where it belongs to none."""
    value = event(item)
    named = value.get("toolCallId")
    if value.get("subtype") == "tool-call":
        named = value.get("entityId")
    return named if isinstance(named, str) else None


def new_event(at: int, type: str, **fields: Any) -> Item:
    """A new event."""
    return Item(at, {"type": type, **fields})


# Consecutive calls

Calls = list[list[Item]]
"""The events of several calls, each from its start to its end."""


@with_parameters
def in_runs(
    items: list[Item], context: Context, change: Callable[[Calls], list[Item]]
) -> list[Item]:
    """Changes each run of several calls with no other event between them.

    Args:
        change: from the events of these calls, the events that replace them. Each position keeps
            its time.
    """

    out: list[Item] = []
    for called, group in groupby(items, key=lambda item: call_id(item) is not None):
        run = list(group)
        calls = _whole_calls(run) if called else []
        out += at_times_of(run, change(calls)) if len(calls) > 1 else run
    return out


def _whole_calls(run: list[Item]) -> Calls:
    """The calls of a run; none where one of them is incomplete, or where two share an id."""
    calls: defaultdict[str | None, list[Item]] = defaultdict(list)
    for item in run:
        calls[call_id(item)].append(item)
    return list(calls.values()) if all(map(_whole, calls.values())) else []


def _whole(call: list[Item]) -> bool:
    kinds = [kind(item) for item in call]
    end = kinds.index(END) if END in kinds else 0
    inside, after = kinds[1:end], kinds[end + 1 :]
    return (
        kinds[0] == START
        and end > 0
        and all(type == ARGS for type in inside)
        and all(type == "REASONING_ENCRYPTED_VALUE" for type in after)
    )


# Parallel calls


def _of(call: list[Item], *types: str) -> list[Item]:
    return [item for item in call if kind(item) in types]


def _alternating(calls: Calls) -> list[Item]:
    starts = [item for call in calls for item in _of(call, START)]
    return [*starts, *alternating(*(_of(call, ARGS) for call in calls))]


def _ends(calls: Calls) -> list[Item]:
    return [item for call in calls for item in call if kind(item) not in (START, ARGS)]


_parallel = in_runs(lambda calls: [*_alternating(calls), *_ends(calls)])


def _as_chunks(calls: Calls) -> list[Item]:
    chunks = _alternating(calls)
    signatures = [item for item in _ends(calls) if kind(item) != END]
    for item in chunks:
        item.data["type"] = "TOOL_CALL_CHUNK"
    return [*chunks, *signatures]


# The run ends too early


def _left_open(items: list[Item], context: Context) -> list[Item]:
    items = _parallel(items, context)
    finish, end = last(items, "RUN_FINISHED"), last(items, END)
    if finish is None or end is None:
        return items
    return [*items[:end], *items[end + 1 :]]


@with_parameters
def _insert_before_finish(
    items: list[Item], context: Context, /, type: str, **fields: Any
) -> list[Item]:
    finish = last(items, "RUN_FINISHED")
    if finish is None:
        return items
    return [*items[:finish], new_event(items[finish].at, type, **fields), *items[finish:]]


def _expect_refusal(what: str, *, called: bool = False) -> Callable[[Turn], Turn]:
    """The turn of a run that a client has to refuse when it finishes.

    Args:
        what: what is open then, for the message.
        called: leave turns without calls unchanged.
    """

    def expect(turn: Turn) -> Turn:
        if turn.finish is None or (called and not turn.tool_calls):
            return turn
        return end_in_error(StreamError(f"the run finishes while {what} is open"))(turn)

    return expect


# Adapters leave out `pendingToolCallIds`, which would name the calls that the client has to run.
def _success(items: list[Item], context: Context) -> list[Item]:
    finish = last(items, "RUN_FINISHED")
    called = {call_id(item) for item in items if kind(item) == START}
    answered = {call_id(item) for item in items if kind(item) == "TOOL_CALL_RESULT"}
    if finish is not None and called - answered and _is_success(items[finish]):
        items[finish].data["outcome"] = {"type": "success"}
    return items


def _is_success(finish: Item) -> bool:
    outcome = event(finish).get("outcome")
    return outcome is None or (isinstance(outcome, dict) and outcome.get("type") == "success")


# Identifiers


def _wrong_id(item: Item) -> None:
    if kind(item) == ARGS and call_id(item) is not None:
        item.data["toolCallId"] += "_other"


def _without_broken_calls(turn: Turn) -> Turn:
    """The turn without the calls whose arguments name another call, and with an error."""
    broken = [part for part in turn.parts if isinstance(part, ToolCall) and part.fragments]
    if not broken or turn.error is not None:
        return turn
    parts = tuple(part for part in turn.parts if part not in broken)
    return Turn(parts, error=StreamError("arguments name a call that is not open"))


def _phantom(item: Item) -> None:
    if kind(item) == START:
        item.data["parentMessageId"] = "nope"


def _no_parent(item: Item) -> None:
    if kind(item) == START:
        item.data["parentMessageId"] = None


# Messages that have ended


def _ended_twice(item: Item) -> list[Item]:
    return [item, item.copy()] if kind(item) == "TEXT_MESSAGE_END" else [item]


def _late_content(items: list[Item], context: Context) -> list[Item]:
    """Sends the last fragment of a text after its end, if it is the only text of the run."""
    kinds = list(map(kind, items))
    end = last(items, "TEXT_MESSAGE_END")
    if end is None or kinds.count("TEXT_MESSAGE_START") != 1:
        return items
    if kinds[end - 1] != "TEXT_MESSAGE_CONTENT":
        return items
    order = [*items[: end - 1], items[end], items[end - 1], *items[end + 1 :]]
    return at_times_of(items, order)


# Calls that are replayed


@with_parameters
def _replay_calls(
    items: list[Item], context: Context, *, after: str, whole: bool = False
) -> list[Item]:
    """Sends the start of each call again, or the whole call.

    Args:
        after: the type of the event that it follows, the last one of the call.
    """
    for id in dict.fromkeys(filter(None, map(call_id, items))):
        own = [item for item in items if call_id(item) == id]
        last_own = last(own, after)
        if last_own is not None and kind(own[0]) == START:
            again = [item.copy() for item in (own if whole else own[:1])]
            at = items.index(own[last_own]) + 1
            items = [*items[:at], *again, *items[at:]]
    return items


# No arguments


def _zero(items: list[Item]) -> set[str | None]:
    arguments: defaultdict[str | None, str] = defaultdict(str)
    for item in items:
        if kind(item) in (START, ARGS):
            arguments[call_id(item)] += str(event(item).get("delta", ""))
    return {id for id, text in arguments.items() if text in ("", "{}")}


def _no_args(items: list[Item], context: Context) -> list[Item]:
    zero = _zero(items)
    return [item for item in items if kind(item) != ARGS or call_id(item) not in zero]


def _empty_args(items: list[Item], context: Context) -> list[Item]:
    zero = _zero(items)
    changed = []
    for item in _no_args(items, context):
        changed.append(item)
        if kind(item) == START and call_id(item) in zero:
            changed.append(new_event(item.at, ARGS, toolCallId=call_id(item), delta=""))
    return changed


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


def _cut_before_end(items: list[Item], context: Context) -> list[Item]:
    end = last(items, *ENDINGS)
    return items if end is None else items[:end]


def _cut_before_closers(items: list[Item], context: Context) -> list[Item]:
    """Removes the end of the run, and the events directly before it that close something."""
    end = last(items, *ENDINGS)
    if end is None:
        return items
    while end and kind(items[end - 1]) in _CLOSERS:
        end -= 1
    return items[:end]


# Events between


def _with_empty(item: Item) -> list[Item]:
    if kind(item) != "TEXT_MESSAGE_START":
        return [item]
    id = item.data.get("messageId")
    return [item, new_event(item.at, "TEXT_MESSAGE_CONTENT", messageId=id, delta="")]


@with_parameters
def _after_start(items: list[Item], context: Context, *types: str) -> list[Item]:
    start = next((i for i, item in enumerate(items, 1) if kind(item) == "RUN_STARTED"), None)
    if start is None:
        return items
    at = items[start - 1].at
    return [*items[:start], *(new_event(at, type) for type in types), *items[start:]]


# The table

QUIRKS: tuple[Quirk, ...] = (
    quirk("agui-crlf", samples.TEXT, Variant(bytes=line_ends(b"\r\n"))),
    quirk(
        "agui-no-run-finished",
        samples.TEXT,
        Variant("after-message", _cut_before_end, as_sent=True),
        Variant("inside-message", _cut_before_closers, as_sent=True),
        Variant("empty", lambda _items, _context: [], as_sent=True),
    ),
    quirk("agui-empty-delta", samples.TEXT, spread(_with_empty)),
    quirk(
        "agui-args-wrong-id",
        samples.CALL,
        Variant(frames=each(list, _wrong_id), expected=_without_broken_calls),
    ),
    quirk("agui-phantom-parent", samples.TEXT_AND_CALL, each(list, _phantom)),
    quirk("agui-parent-null", samples.TEXT_AND_CALL, each(list, _no_parent)),
    quirk(
        "agui-after-message-end",
        samples.TEXT,
        Variant("content", _late_content),
        Variant("end", spread(_ended_twice)),
    ),
    quirk("agui-success-pending", samples.CALL, _success),
    quirk(
        "agui-open-call-at-finish",
        samples.TWO_CALLS,
        Variant("call", _left_open, expected=_expect_refusal("a call", called=True)),
        Variant(
            "message",
            _insert_before_finish("TEXT_MESSAGE_START", messageId="msg_open", role="assistant"),
            expected=_expect_refusal("a message"),
        ),
        Variant(
            "step",
            _insert_before_finish("STEP_STARTED", stepName="open"),
            expected=_expect_refusal("a step"),
        ),
        Variant(
            "reasoning",
            _insert_before_finish("REASONING_START", messageId="msg_open"),
            expected=_expect_refusal("reasoning"),
        ),
    ),
    quirk("agui-parallel-calls", samples.TWO_CALLS, _parallel),
    quirk(
        "agui-done-sentinel",
        samples.TEXT,
        with_done(lambda items: last(items, *ENDINGS) is not None),
    ),
    quirk("agui-chunk-interleave", samples.TWO_CALLS, in_runs(_as_chunks)),
    quirk(
        "agui-start-replayed",
        samples.CALL,
        Variant("at-once", _replay_calls(after=START)),
        Variant("after-arguments", _replay_calls(after=ARGS)),
        Variant("whole-call", _replay_calls(after=END, whole=True)),
    ),
    quirk(
        "agui-zero-arg",
        samples.ZERO,
        Variant("none", _no_args, sample=samples.ZERO_IN_FRAGMENTS),
        Variant("empty", _empty_args),
    ),
    quirk(
        "agui-unknown-event",
        samples.TEXT,
        Variant("new", _after_start("KIT_UNKNOWN")),
        Variant("removed", _after_start("THINKING_START", "THINKING_END")),
    ),
)
