"""Turns put together to scenarios, in a form that can be loaded: the request that a turn answers,
and the attempts before it. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from mockllm.errors import ScenarioError
from mockllm.matching.history import ModelTurn
from mockllm.recording.drafting.conversations import calls_of, text_of
from mockllm.replay.loading import loads
from mockllm.scenario.dump import dump
from mockllm.scenario.jsontext import is_object
from mockllm.scenario.model import (
    AnyPart,
    ErrorPart,
    ErrorSpec,
    Expect,
    InterleavedPart,
    ParallelPart,
    PausePart,
    Recorded,
    Scenario,
    TextCondition,
    TextPart,
    ToolPart,
    TurnSpec,
)
from mockllm.scenario.parts import TOOL_NAME

__all__ = ["answering", "echoed", "tried_before", "with_turn"]


_MOST_WRITTEN = 256 * 1024
"""The longest turn that is written with all its fragments, in characters, roughly. People do not
read longer ones, and writing YAML takes half a millisecond for each fragment."""

_MOST_TEXT = 1024 * 1024

_is_usual = re.compile(TOOL_NAME).fullmatch

_UNWRITTEN = ErrorPart(ErrorSpec("The neutral form of this answer cannot be written."))


def answering(spec: TurnSpec, user: TextCondition | None) -> TurnSpec:
    """A turn that only answers a text of the user; any request where that is None."""
    return spec if user is None else replace(spec, request=Expect(user=user))


def tried_before(failed: TurnSpec, spec: TurnSpec) -> TurnSpec:
    """A turn after another try of it, which ended in an HTTP error or was broken off."""
    attempts = failed.attempts if failed.http is None else (*failed.attempts, failed.http)
    return replace(spec, attempts=attempts, request=failed.request)


def echoed(turn: ModelTurn) -> TurnSpec:
    """A turn that was not recorded, as the client sends it back; it can be loaded."""
    reply: list[AnyPart] = [TextPart(turn.text)] if turn.text else []
    for call in turn.calls:
        arguments = call.arguments or None
        malformed = not _is_usual(call.name) or not is_object(call.arguments or "{}")
        reply.append(ToolPart(call.name, call.id or None, arguments, malformed))
    return _loadable(TurnSpec(reply=tuple(reply) or (PausePart(0),)))


def with_turn(scenario: Scenario, spec: TurnSpec, file: str = "") -> Scenario:
    """A scenario with a turn more, in a form that can be loaded and read.

    Args:
        file: the tape of the turn; "" where there is none.

    Raises:
        ScenarioError: it cannot be loaded whatever the turn says.
    """
    if file:
        spec = replace(spec, recorded=Recorded(file))
    used = {call.id for turn in scenario.turns for call in calls_of(turn.reply)} - {None}
    spec = replace(spec, reply=_without_ids(spec.reply, used))
    return replace(scenario, turns=(*scenario.turns, _loadable(spec)))


def _loadable(spec: TurnSpec) -> TurnSpec:
    """The turn as it is loaded again; with less of it where it could not be."""
    try:
        return _loaded(spec, _MOST_WRITTEN)
    except (ScenarioError, ValueError):
        pass
    less = TurnSpec(request=spec.request, attempts=spec.attempts, recorded=spec.recorded)
    text = text_of(spec.reply)
    if text:
        try:
            return _loaded(replace(less, reply=(TextPart(text),)), _MOST_TEXT)
        except (ScenarioError, ValueError):
            pass
    return _loaded(replace(less, reply=(_UNWRITTEN,)), _MOST_TEXT)


def _loaded(spec: TurnSpec, most: int) -> TurnSpec:
    size = len(repr(spec))
    if size > most:
        raise ValueError(f"it takes {size} characters")
    return loads(dump(Scenario("turn", (spec,))))[0].turns[0]


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
