"""Turns put together to scenarios, in a form that can be loaded: the request that a turn answers,
and the attempts before it. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from mockllm.core.jsontext import is_object
from mockllm.errors import Problem, ScenarioError
from mockllm.matching.conversation import ModelTurn
from mockllm.recording.drafting.conversations import calls_of
from mockllm.replay.loading import loads
from mockllm.scenario import model as m
from mockllm.scenario.dump import dump
from mockllm.scenario.reading.tables import TOOL_NAME

_MOST_WHOLE = 8 * 1024 * 1024
_MOST_PART = 4 * 1024 * 1024
"""The longest turn, and the longest part of one, that is written, in characters, roughly."""

_MOST_PLAIN = 64 * 1024
"""Turns up to this size, in characters, are not tried."""

_MOST_SHORTENED = 64 * 1024
"""How much is kept of a text that cannot be written, in characters."""

_is_usual = re.compile(TOOL_NAME).fullmatch

_UNWRITTEN = m.ErrorPart(m.ErrorSpec("The neutral form of this answer cannot be written."))


def answering(spec: m.TurnSpec, user: m.TextCondition | None) -> m.TurnSpec:
    """A turn that only answers a text of the user; any request where that is None."""
    return spec if user is None else replace(spec, request=m.Expect(user=user))


def tried_before(failed: m.TurnSpec, spec: m.TurnSpec) -> m.TurnSpec:
    """A turn after another try of it, which ended in an HTTP error or was broken off."""
    recorded = failed.recorded
    if recorded is not None:
        recorded = replace(recorded, request="", redacted=(), order=0)
    extra = failed.extra if failed.http is not None else ()
    tried = m.TurnSpec(http=failed.http, recorded=recorded, extra=extra)
    if failed.http is None and recorded is None:
        return replace(spec, attempts=failed.attempts, request=failed.request)
    return replace(spec, attempts=(*failed.attempts, tried), request=failed.request)


def echoed(turn: ModelTurn) -> m.TurnSpec:
    """A turn that was not recorded, as the client sends it back; it can be loaded."""
    reply: list[m.AnyPart] = [m.TextPart(turn.text)] if turn.text else []
    for call in turn.calls:
        arguments = call.arguments or None
        malformed = not _is_usual(call.name) or not is_object(call.arguments or "{}")
        reply.append(m.ToolPart(call.name, call.id or None, arguments, malformed))
    return _loadable(m.TurnSpec(reply=tuple(reply) or (m.PausePart(0),)))[0]


def with_turn(
    scenario: m.Scenario, spec: m.TurnSpec, file: str = ""
) -> tuple[m.Scenario, tuple[str, ...]]:
    """A scenario with a turn more, in a form that can be loaded and read, and what is left out of
    the turn for that.

    Raises:
        ScenarioError: it cannot be loaded whatever the turn says.
    """
    if file:
        spec = replace(spec, recorded=replace(spec.recorded or m.Recorded(file), file=file))
    used = {call.id for turn in scenario.turns for call in calls_of(turn.reply)} - {None}
    spec = replace(spec, reply=_without_ids(spec.reply, used))
    written, left_out = (spec, ()) if _is_plain(spec) else _loadable(spec)
    return replace(scenario, turns=(*scenario.turns, written)), left_out


def _loadable(spec: m.TurnSpec) -> tuple[m.TurnSpec, tuple[str, ...]]:
    """The turn as it is loaded again, and what is left out of it where it could not be loaded
    whole: first the fields of its service, then parts."""
    whole = _loaded(spec)
    if isinstance(whole, m.TurnSpec):
        return whole, ()
    notes = [f"the fields of its service ({whole})"] if spec.extra else []
    plain = replace(spec, extra=())
    loaded = _loaded(plain) if spec.extra else whole
    if isinstance(loaded, m.TurnSpec):
        return loaded, tuple(notes)
    if spec.recorded is not None:
        plain = replace(plain, recorded=replace(spec.recorded, partial=True))
    parts: list[m.AnyPart] = []
    for number, part in enumerate(plain.reply, 1):
        alone = _loaded(m.TurnSpec(reply=(part,), finish=_any_finish(part)), _MOST_PART)
        if isinstance(alone, m.TurnSpec):
            parts.append(part)
        else:
            parts += _in_place_of(part)
            notes.append(f"part {number}, {_kind(part)} ({alone})")
    loaded = _loaded(replace(plain, reply=tuple(parts) or (_UNWRITTEN,)))
    if isinstance(loaded, m.TurnSpec):
        return loaded, tuple(notes)
    bare = m.TurnSpec(
        reply=(_UNWRITTEN,),
        request=plain.request,
        attempts=plain.attempts,
        recorded=plain.recorded,
    )
    last = _loaded(bare)
    if isinstance(last, m.TurnSpec):
        return last, (*notes, f"the whole reply ({loaded})")
    raise ScenarioError([Problem("", 1, 1, "", last)])


def _is_plain(spec: m.TurnSpec) -> bool:
    """Whether a turn needs no try: what `unresolve` gives can be loaded and is the same then, but
    for sizes and half characters, which are in conditions and fields of services too. (A property
    of all turns; tests/recording/drafting.)"""
    if spec.http is not None or spec.attempts:
        return False
    user = spec.request.user if spec.request is not None else None
    if user is not None and (user.op != "equals" or not user.value):
        return False
    text = repr(spec)
    return len(text) <= _MOST_PLAIN and "\\ud" not in text


def _any_finish(part: m.AnyPart) -> m.Ending | None:
    return None if isinstance(part, m.ErrorPart) else "stop"


def _in_place_of(part: m.AnyPart) -> list[m.AnyPart]:
    match part:
        case m.TextPart() | m.ReasoningPart() | m.RefusalPart():
            return [replace(part, text=part.text[:_MOST_SHORTENED])]
        case m.ToolPart():
            return [replace(part, arguments=None, signature=None, malformed=True)]
    return []


def _kind(part: m.AnyPart) -> str:
    return type(part).__name__.removesuffix("Part").lower()


def _loaded(spec: m.TurnSpec, most: int = _MOST_WHOLE) -> m.TurnSpec | str:
    size = len(repr(spec))
    if size > most:
        return f"it takes {size:,} characters, and {most:,} are written"
    try:
        return loads(dump(m.Scenario("turn", (spec,))))[0].turns[0]
    except ScenarioError as error:
        return error.problems[0].message
    except ValueError as error:
        return str(error)


def _without_ids(reply: Sequence[m.AnyPart], used: set[str | None]) -> tuple[m.AnyPart, ...]:
    """The parts without the call ids that another call of the conversation has: some services
    count their calls anew in each answer."""
    return tuple(_own_id(part, used) if isinstance(part, m.ToolPart) else part for part in reply)


def _own_id(call: m.ToolPart, used: set[str | None]) -> m.ToolPart:
    if call.id is not None and call.id in used:
        return replace(call, id=None)
    used.add(call.id)
    return call
