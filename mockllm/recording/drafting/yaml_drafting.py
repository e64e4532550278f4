"""Turns put together to scenarios, in a form that can be loaded: the request that a turn answers,
and the attempts before it. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from mockllm.errors import Problem, ScenarioError
from mockllm.matching.history import ModelTurn
from mockllm.recording.drafting.conversations import calls_of
from mockllm.replay.loading import loads
from mockllm.scenario.dump import dump
from mockllm.scenario.jsontext import is_object
from mockllm.scenario.model import (
    AnyPart,
    AutoPart,
    Ending,
    ErrorPart,
    ErrorSpec,
    Expect,
    FramePart,
    Http,
    InterleavedPart,
    ParallelPart,
    PausePart,
    ReasoningPart,
    Recorded,
    RefusalPart,
    Scenario,
    TextCondition,
    TextPart,
    ToolPart,
    TurnSpec,
)
from mockllm.scenario.reading.tables import TOOL_NAME

__all__ = ["answering", "echoed", "tried_before", "with_turn"]


_MOST_WRITTEN = 256 * 1024
"""The longest turn that is written with all its fragments, in characters, roughly. People do not
read longer ones, and writing YAML takes half a millisecond for each fragment."""

_MOST_WHOLE = 8 * 1024 * 1024
_MOST_PART = 4 * 1024 * 1024
_MOST_SHORTENED = 64 * 1024
"""How much is kept of a text that cannot be written, in characters."""

_is_usual = re.compile(TOOL_NAME).fullmatch

_UNWRITTEN = ErrorPart(ErrorSpec("The neutral form of this answer cannot be written."))


def answering(spec: TurnSpec, user: TextCondition | None) -> TurnSpec:
    """A turn that only answers a text of the user; any request where that is None."""
    return spec if user is None else replace(spec, request=Expect(user=user))


def tried_before(failed: TurnSpec, spec: TurnSpec) -> TurnSpec:
    """A turn after another try of it, which ended in an HTTP error or was broken off."""
    recorded = failed.recorded
    if recorded is not None:
        recorded = replace(recorded, request="", redacted=(), order=0)
    extra = failed.extra if failed.http is not None else ()
    tried = replace(failed.http or Http(200), recorded=recorded, extra=extra)
    if failed.http is None and recorded is None:
        return replace(spec, attempts=failed.attempts, request=failed.request)
    return replace(spec, attempts=(*failed.attempts, tried), request=failed.request)


def echoed(turn: ModelTurn) -> TurnSpec:
    """A turn that was not recorded, as the client sends it back; it can be loaded."""
    reply: list[AnyPart] = [TextPart(turn.text)] if turn.text else []
    for call in turn.calls:
        arguments = call.arguments or None
        malformed = not _is_usual(call.name) or not is_object(call.arguments or "{}")
        reply.append(ToolPart(call.name, call.id or None, arguments, malformed))
    return _loadable(TurnSpec(reply=tuple(reply) or (PausePart(0),)))[0]


def with_turn(
    scenario: Scenario, spec: TurnSpec, file: str = ""
) -> tuple[Scenario, tuple[str, ...]]:
    """A scenario with a turn more, in a form that can be loaded and read, and what is left out of
    the turn for that.

    Args:
        file: the tape of the turn; "" where there is none.

    Raises:
        ScenarioError: it cannot be loaded whatever the turn says.
    """
    if file:
        spec = replace(spec, recorded=replace(spec.recorded or Recorded(file), file=file))
    used = {call.id for turn in scenario.turns for call in calls_of(turn.reply)} - {None}
    spec = replace(spec, reply=_without_ids(spec.reply, used))
    written, left_out = _loadable(spec)
    return replace(scenario, turns=(*scenario.turns, written)), left_out


def _loadable(spec: TurnSpec) -> tuple[TurnSpec, tuple[str, ...]]:
    """The turn as it is loaded again, and what is left out of it where it could not be loaded
    whole: first its fragments and times, then parts."""
    has_fragments = _whole_parts(spec.reply) != spec.reply
    whole = _loaded(spec, _MOST_WRITTEN if has_fragments else _MOST_WHOLE)
    if isinstance(whole, TurnSpec):
        return whole, ()
    plain = replace(spec, reply=_whole_parts(spec.reply), timing=None, extra=())
    notes = [f"{_of_fragments(spec)} ({whole})"]
    found = _loaded(plain, _MOST_WHOLE)
    if isinstance(found, TurnSpec):
        return found, tuple(notes)
    parts: list[AnyPart] = []
    for number, part in enumerate(plain.reply, 1):
        alone = _loaded(TurnSpec(reply=(part,), finish=_any_finish(part)), _MOST_PART)
        if isinstance(alone, TurnSpec):
            parts.append(part)
        else:
            parts += _in_place_of(part)
            notes.append(f"part {number}, {_kind(part)} ({alone})")
    less = replace(plain, reply=tuple(parts) or (_UNWRITTEN,))
    found = _loaded(less, _MOST_WHOLE)
    if isinstance(found, TurnSpec):
        return found, tuple(notes)
    bare = TurnSpec(
        reply=(_UNWRITTEN,),
        request=spec.request,
        attempts=spec.attempts,
        recorded=spec.recorded,
        finish_raw=None,
    )
    found = _loaded(bare, _MOST_WHOLE)
    if isinstance(found, TurnSpec):
        return found, (*notes, f"the whole reply ({found})")
    raise ScenarioError([Problem("", 1, 1, "", found)])


def _of_fragments(spec: TurnSpec) -> str:
    """What a turn without fragments, times and extra fields lacks."""
    return "its fragments and times" + (" and the fields of its service" if spec.extra else "")


def _whole_parts(reply: Sequence[AnyPart]) -> tuple[AnyPart, ...]:
    """The parts one after the other, each in one fragment."""
    parts: list[AnyPart] = []
    for part in reply:
        match part:
            case ParallelPart(calls=members) | InterleavedPart(parts=members):
                parts += [
                    member if isinstance(member, FramePart) else replace(member, split=None)
                    for member in members
                ]
            case FramePart() | PausePart() | ErrorPart() | AutoPart():
                parts.append(part)
            case _:
                parts.append(replace(part, split=None))
    return tuple(parts)


def _any_finish(part: AnyPart) -> Ending | None:
    return None if isinstance(part, ErrorPart) else "stop"


def _in_place_of(part: AnyPart) -> list[AnyPart]:
    """The beginning of a part that cannot be written whole."""
    match part:
        case TextPart() | ReasoningPart() | RefusalPart():
            return [replace(part, text=part.text[:_MOST_SHORTENED])]
        case ToolPart():
            return [replace(part, arguments=None, signature=None, malformed=True)]
    return []


def _kind(part: AnyPart) -> str:
    return type(part).__name__.removesuffix("Part").lower()


def _loaded(spec: TurnSpec, most: int) -> TurnSpec | str:
    """The turn as it is loaded again, or why it cannot be."""
    size = len(repr(spec))
    if size > most:
        return f"it takes {size:,} characters, and {most:,} are written"
    try:
        return loads(dump(Scenario("turn", (spec,))))[0].turns[0]
    except ScenarioError as error:
        return error.problems[0].message
    except ValueError as error:
        return str(error)


def _without_ids(reply: Sequence[AnyPart], used: set[str | None]) -> tuple[AnyPart, ...]:
    """The parts without the call ids that another call of the conversation has: some services
    count their calls anew in each answer."""
    out: list[AnyPart] = []
    for part in reply:
        match part:
            case ToolPart():
                out.append(_own_id(part, used))
            case ParallelPart(calls=calls):
                out.append(replace(part, calls=tuple(_own_id(call, used) for call in calls)))
            case InterleavedPart(parts=parts):
                own = [_own_id(one, used) if isinstance(one, ToolPart) else one for one in parts]
                out.append(replace(part, parts=tuple(own)))
            case _:
                out.append(part)
    return tuple(out)


def _own_id(call: ToolPart, used: set[str | None]) -> ToolPart:
    if call.id is not None and call.id in used:
        return replace(call, id=None)
    used.add(call.id)
    return call
