"""A neutral turn in the scenario language: the inverse of `mockllm.replay.compilation.resolve`.

`resolve` of a scenario with the turn `unresolve(turn)` gives a turn with the same parts, finish and
tokens, without times. Its parts come one after the other, in about as many fragments as before.
"""

from __future__ import annotations

import re

from mockllm.core.frame import Frame
from mockllm.core.seeded import tokens
from mockllm.core.turn import (
    Opaque,
    Part,
    Reasoning,
    Refusal,
    ServerTool,
    Text,
    ToolCall,
    Turn,
)
from mockllm.replay.compilation.resolve import usual_finish
from mockllm.scenario import model as m
from mockllm.scenario.jsontext import compact, is_object, parse
from mockllm.scenario.reading.tables import TOOL_NAME

_VALID_NAME = re.compile(TOOL_NAME).fullmatch
_MAX_SPLIT = 1_000_000
_MAX_BRACKETS = 50
"""Deeper JSON is written as text; YAML has a bound on nesting."""


def unresolve(turn: Turn) -> m.TurnSpec:
    """The turn as the scenario language writes it; it can be dumped and loaded.

    A call is marked `malformed` where its arguments are no JSON object, where no service would
    accept its name, or where another call has its id. A call without an id gets a derived one.

    Args:
        turn: as `tapes.recorded_turn.writable` returns it.
    """
    used: set[str] = set()
    reply: list[m.AnyPart] = [_written(part, used) for part in turn.parts]
    if turn.error is not None:
        error = turn.error
        reply.append(m.ErrorPart(m.ErrorSpec(error.message, error.type, error.code)))
    return m.TurnSpec(
        reply=tuple(reply) or (m.PausePart(0),),
        finish=_finish(turn),
        finish_raw=turn.finish_raw,
        usage=_usage(turn),
    )


def _written(part: Part, used: set[str]) -> m.Member:
    """A part; the id of a call is added to those that are `used` already."""
    match part:
        case Text():
            cites = tuple(m.Citation(c.url, c.title, c.cited_text) for c in part.citations)
            return m.TextPart(
                part.text,
                _split(part.fragments),
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


def _split(fragments: tuple[str, ...]) -> int | None:
    """The characters of a fragment, so that there are about as many; people edit no lists."""
    size = sum(map(len, fragments))
    return min(-(-size // len(fragments)), _MAX_SPLIT) if len(fragments) > 1 and size else None


def _call(call: ToolCall, *, repeated: bool) -> m.ToolPart:
    arguments = "".join(call.fragments)
    return m.ToolPart(
        call.name,
        _id(call.id),
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
        _id(call.id),
        call.name or None,
        call.input or None,
        call.output,
        _split(call.fragments),
    )


def _id(id: str) -> str | None:
    """An id that can be written: on one line."""
    return id if id and len(id.splitlines()) == 1 else None


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
    usage = turn.usage
    if usage is None:
        return m.UsageSpec(sent=False)
    counted = sum(tokens(part.text) for part in turn.parts if isinstance(part, Reasoning))
    reasoning = None if usage.reasoning == counted else usage.reasoning
    return m.UsageSpec(usage.input, usage.output, reasoning, usage.cached or None)
