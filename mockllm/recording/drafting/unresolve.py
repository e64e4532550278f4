"""A neutral turn in the scenario language: the inverse of `mockllm.replay.compilation.resolve`.

`resolve` of a scenario with the turn `unresolve(turn)` gives `normal(turn)` again, with its
fragments, interleaving, pauses and tokens. Half of a surrogate pair is replaced first: JSON can
escape it, and no file can hold it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import TypeVar

from mockllm.core.frame import Frame
from mockllm.core.seeded import tokens
from mockllm.core.timeline import normal
from mockllm.core.turn import (
    Opaque,
    Part,
    Reasoning,
    Refusal,
    ServerTool,
    Text,
    ToolCall,
    Turn,
    beats,
)
from mockllm.replay.compilation.resolve import parallel_beats, usual_finish
from mockllm.scenario import model as m
from mockllm.scenario.durations import MAX_DURATION
from mockllm.scenario.jsontext import compact, is_object, parse
from mockllm.scenario.reading.tables import TOOL_NAME

__all__ = ["unresolve"]

T = TypeVar("T")

_VALID_NAME = re.compile(TOOL_NAME).fullmatch
_HALF = re.compile("[\ud800-\udfff]")
_MAX_TOKENS = 10**9
_MAX_BRACKETS = 50
"""Deeper JSON is written as text; YAML has a bound on nesting."""


def unresolve(turn: Turn) -> m.TurnSpec:
    """The turn as the scenario language writes it; it can be dumped and loaded.

    A call is marked `malformed` where its arguments are no JSON object, where no service would
    accept its name, or where another call has its id. A call without an id gets a derived one.
    A pause of more than a day becomes a day.
    """
    turn = _whole_characters(normal(turn))
    reply: list[m.AnyPart] = []
    used: set[str] = set()
    for run, order in _runs(turn):
        written = tuple(_written(part, used) for part in run)
        reply += written if len(run) == 1 else [_group(written, order)]
    last = turn.gaps[-1] if turn.gaps else 0
    if last or not (reply or turn.error):
        reply.append(m.PausePart(min(last, MAX_DURATION)))
    if turn.error is not None:
        error = turn.error
        reply.append(m.ErrorPart(m.ErrorSpec(error.message, error.type, error.code)))
    return m.TurnSpec(
        reply=tuple(reply),
        finish=_finish(turn),
        finish_raw=turn.finish_raw,
        usage=_usage(turn),
        timing=_timing(turn.gaps[:-1]),
    )


def _whole_characters(turn: Turn) -> Turn:
    """The turn with its surrogates made whole: a pair that was cut in two goes into the later
    fragment, and half of one alone becomes U+FFFD."""
    parts = tuple(map(_whole_part, turn.parts))
    error = None if turn.error is None else _whole_fields(turn.error, "message", "type", "code")
    return _whole_fields(replace(turn, parts=parts, error=error), "finish_raw")


def _whole_part(part: Part) -> Part:
    if isinstance(part, Opaque):
        return part
    if isinstance(part, Text) and part.citations:
        cites = (_whole_fields(c, "url", "title", "cited_text") for c in part.citations)
        part = replace(part, citations=tuple(cites))
    part = _whole_fields(part, *_FIELDS.get(type(part), ()))
    if not _HALF.search("".join(part.fragments)):
        return part
    return replace(part, fragments=tuple(_joined(part.fragments)))


def _joined(fragments: tuple[str, ...]) -> Iterator[str]:
    held = ""
    for number, fragment in enumerate(fragments, 1):
        text = held + fragment
        cut = number < len(fragments) and "\ud800" <= text[-1:] <= "\udbff"
        held = text[-1] if cut else ""
        yield _whole(text[:-1] if cut else text)


_FIELDS: dict[type, tuple[str, ...]] = {
    Text: ("signature",),
    Reasoning: ("signature",),
    ToolCall: ("name", "id", "signature"),
    ServerTool: ("kind", "name", "id", "output"),
}
"""The texts of parts besides their fragments."""


def _whole_fields(value: T, *names: str) -> T:
    """A record with these fields made whole, of those that have text."""
    texts = {name: text for name in names if (text := getattr(value, name))}
    broken = {name: _whole(text) for name, text in texts.items() if _HALF.search(text)}
    return replace(value, **broken) if broken else value  # type: ignore[type-var]


def _whole(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _runs(turn: Turn) -> Iterator[tuple[Sequence[Part], tuple[int, ...]]]:
    """The parts in groups as small as can be, such that no beat of a group comes between those
    of another; with the order of the beats in each, by the number of the part in the group."""
    order = turn.order or tuple(i for i, part in enumerate(turn.parts) for _ in range(beats(part)))
    first = begin = due = 0
    last = -1
    for at, index in enumerate(order, 1):
        if index > last:
            due += sum(map(beats, turn.parts[last + 1 : index + 1]))
            last = index
        if at == due:
            yield turn.parts[first : last + 1], tuple(n - first for n in order[begin:at])
            first, begin = last + 1, at


def _group(members: Sequence[m.Member], order: tuple[int, ...]) -> m.AnyPart:
    """Parts whose fragments alternate: as `parallel` calls where that can say it."""
    calls = tuple(part for part in members if isinstance(part, m.ToolPart))
    if len(calls) == len(members):
        openings = {order.index(number) for number in range(len(calls))}
        fragments = tuple(n for at, n in enumerate(order) if at not in openings)
        counts = [order.count(number) - 1 for number in range(len(calls))]
        for short in ((), fragments):
            if tuple(parallel_beats(counts, short)) == order:
                return m.ParallelPart(calls, short)
    return m.InterleavedPart(tuple(members), order)


def _written(part: Part, used: set[str]) -> m.Member:
    """A part; the id of a call is added to those that are `used` already."""
    match part:
        case Text():
            cites = tuple(m.Citation(c.url, c.title, c.cited_text) for c in part.citations)
            split = _split(part.fragments)
            return m.TextPart(
                part.text,
                split,
                citations=cites,
                logprobs=part.logprobs,
                signature=part.signature,
            )
        case Reasoning():
            split = _split(part.fragments)
            return m.ReasoningPart(part.text, split, signature=part.signature, summary=part.summary)
        case Refusal():
            return m.RefusalPart(part.text, _split(part.fragments))
        case ToolCall():
            call = _call(part, repeated=part.id in used)
            used.add(part.id)
            return call
        case ServerTool():
            return _server_tool(part)
        case Opaque():
            return _frame(part.api, part.frame)


def _split(fragments: tuple[str, ...]) -> tuple[str, ...] | None:
    return fragments if len(fragments) > 1 else None


def _call(call: ToolCall, *, repeated: bool) -> m.ToolPart:
    arguments = "".join(call.fragments)
    return m.ToolPart(
        call.name,
        call.id if call.id and len(call.id.splitlines()) == 1 else None,
        arguments or None,
        malformed=repeated
        or not _VALID_NAME(call.name)
        or not (call.custom or is_object(arguments or "{}")),
        split=_split(call.fragments),
        signature=call.signature,
        custom=call.custom,
    )


def _server_tool(call: ServerTool) -> m.ServerToolPart:
    return m.ServerToolPart(
        call.kind,
        call.id if call.id and len(call.id.splitlines()) == 1 else None,
        call.name or None,
        call.input or None,
        call.output,
        _split(call.fragments),
    )


def _frame(api: str, frame: Frame) -> m.FramePart:
    data: object = frame.data
    if frame.data is not None and frame.data[:1] in ("{", "["):
        data = _readable(frame.data)
    return m.FramePart(
        api,
        data,
        frame.event,
        frame.id,
        frame.retry,
        frame.comment,
        frame.raw,
    )


def _readable(data: str) -> object:
    """The JSON value where it dumps to exactly the same text, else the text."""
    if data.count("[") + data.count("{") > _MAX_BRACKETS:
        return data
    try:
        value = parse(data)
    except ValueError:
        return data
    return value if compact(value) == data else data


def _finish(turn: Turn) -> m.Ending | None:
    if turn.error is not None:
        return None
    if turn.finish is None:
        return "none"
    return None if turn.finish == usual_finish(turn.parts) else turn.finish


def _usage(turn: Turn) -> m.UsageSpec | None:
    """The tokens, without those that the fixed rule gives anyway."""
    if turn.usage is None:
        return m.UsageSpec(sent=False)
    usage = turn.usage
    kinds = (usage.input, usage.output, usage.reasoning, usage.cached)
    input, output, reasoning, cached = (max(0, min(n, _MAX_TOKENS)) for n in kinds)
    counted = sum(tokens(part.text) for part in turn.parts if isinstance(part, Reasoning))
    return m.UsageSpec(input, output, None if reasoning == counted else reasoning, cached or None)


def _timing(gaps: tuple[int, ...]) -> m.Timing | None:
    """The time of each beat; beats that come with the last one need none of their own."""
    if not any(gaps):
        return None
    at = [min(moment, MAX_DURATION) for moment in accumulate(gaps)]
    while len(at) > 1 and at[-1] == at[-2]:
        at.pop()
    return m.Timing(at=tuple(at))
