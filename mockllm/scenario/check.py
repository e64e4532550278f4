"""What one place of a scenario says about another: calls and tools, fragments and values.

It judges scenarios however they were made, and gives places as steps, which `locate` finds in
a document. A call without a name stands for a part that could not be read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from mockllm.scenario import model as m
from mockllm.scenario.cutting import fragments
from mockllm.scenario.jsontext import parse
from mockllm.scenario.locate import Steps
from mockllm.scenario.schemas import Schemas
from mockllm.scenario.wording import shorten, suggestion

__all__ = ["Remark", "check"]

Remark = tuple[Steps, str]
"""A place in a scenario, and what is wrong with it."""


def check(scenario: m.Scenario, schemas: Schemas | None = None) -> list[Remark]:
    """Everything wrong with a scenario beyond its shape, each thing once.

    Args:
        schemas: compiled JSON Schemas, to share them among scenarios.
    """
    schemas = schemas or Schemas()
    tools = {tool.name: tool for tool in scenario.tools}
    remarks = [*_tools(scenario, schemas), *_repeats(scenario)]
    for steps, turn in _written_turns(scenario):
        remarks += _turn(scenario, tools, schemas, steps, turn)
    for view in _views(scenario):
        remarks += _calls(view)
    return list(dict.fromkeys(remarks)) if remarks else remarks


def _written_turns(scenario: m.Scenario) -> Iterator[tuple[Steps, m.TurnSpec]]:
    """Every turn, and every variant without what it takes over from its turn."""
    for index, turn in enumerate(scenario.turns):
        yield ("turns", index), turn
        for number, (_, variant) in enumerate(turn.variants):
            own = replace(
                variant,
                reply=() if variant.reply == turn.reply else variant.reply,
                request=None if variant.request == turn.request else variant.request,
                repeat=variant.repeat and not turn.repeat,
            )
            yield ("turns", index, "when", number), own


@dataclass(frozen=True, slots=True)
class _Seen:
    """A turn as one protocol plays it, and where its request and reply are written."""

    turn: m.TurnSpec
    request: Steps
    reply: Steps


def _views(scenario: m.Scenario) -> Iterator[list[_Seen]]:
    """The turns as they are without variants, and as each protocol with variants has them."""
    yield [
        _Seen(turn, ("turns", index), ("turns", index)) for index, turn in enumerate(scenario.turns)
    ]
    for api in dict.fromkeys(name for turn in scenario.turns for name, _ in turn.variants):
        yield [_seen(turn, index, api) for index, turn in enumerate(scenario.turns)]


def _seen(turn: m.TurnSpec, index: int, api: m.Api) -> _Seen:
    here: Steps = ("turns", index)
    for number, (name, variant) in enumerate(turn.variants):
        if name == api:
            there = (*here, "when", number)
            return _Seen(
                variant,
                here if variant.request == turn.request else there,
                here if variant.reply == turn.reply else there,
            )
    return _Seen(turn, here, here)


def _tools(scenario: m.Scenario, schemas: Schemas) -> Iterator[Remark]:
    seen: set[str] = set()
    for index, tool in enumerate(scenario.tools):
        if tool.name in seen and tool.name:
            yield ("tools", index, "name"), f"tool {tool.name!r} is there twice"
        seen.add(tool.name)
        if tool.parameters is not None:
            for path, message in schemas.flaws(tool.parameters):
                yield ("tools", index, "parameters", *path), message


def _repeats(scenario: m.Scenario) -> Iterator[Remark]:
    for steps, turn in _written_turns(scenario):
        if turn.repeat and steps[1] != len(scenario.turns) - 1:
            yield (*steps, "repeat"), "only the last turn can repeat"
        if turn.repeat and scenario.restart:
            yield (*steps, "repeat"), "cannot go with 'then: restart'; take one of them"
    for index, turn in enumerate(scenario.turns):
        for number, (api, _) in enumerate(turn.variants):
            if not scenario.plays_over(api):
                yield ("turns", index, "when", number, "api"), _not_among(api, scenario)


def _turn(
    scenario: m.Scenario,
    tools: dict[str, m.ToolSpec],
    schemas: Schemas,
    steps: Steps,
    turn: m.TurnSpec,
) -> Iterator[Remark]:
    last = len(turn.reply) - 1
    for index, part in enumerate(turn.reply):
        here = (*steps, "reply", index)
        if isinstance(part, m.AutoPart) and last:
            yield here, "must be the only part of its reply"
        elif isinstance(part, m.ErrorPart) and index < last:
            yield here, "must be the last part; an error ends the stream"
        elif isinstance(part, m.FramePart) and not scenario.plays_over(part.api):
            yield (*here, "api"), _not_among(part.api, scenario)
        for place, single in _singles(here, part):
            yield from _joins(place, single)
            if isinstance(single, m.ToolPart):
                yield from _arguments(place, single, tools, schemas)
        if isinstance(part, m.ParallelPart | m.InterleavedPart):
            yield from _order((*here, "order"), part, scenario.defaults.split or "whole")
    if turn.request is not None and turn.request.schema is not None:
        for path, message in schemas.flaws(turn.request.schema):
            yield (*steps, "request", "schema", *path), message


def _not_among(api: m.Api, scenario: m.Scenario) -> str:
    return f"{api} is not among the scenario's apis: {', '.join(scenario.apis)}"


def _singles(here: Steps, part: m.AnyPart) -> list[tuple[Steps, m.AnyPart]]:
    """A part, or the members of a parallel one."""
    if isinstance(part, m.ParallelPart):
        return [((*here, "parallel", index), call) for index, call in enumerate(part.calls)]
    if isinstance(part, m.InterleavedPart):
        return [((*here, "interleaved", index), one) for index, one in enumerate(part.parts)]
    return [(here, part)]


def _joins(here: Steps, part: m.AnyPart) -> Iterator[Remark]:
    match part:
        case m.TextPart() | m.ReasoningPart() | m.RefusalPart():
            value, what = part.text, "text"
        case m.ToolPart():
            value, what = part.arguments or "", "arguments"
        case _:
            return
    if isinstance(part.split, tuple) and "".join(part.split) != value:
        at, steps = _difference(part.split, value)
        fragments = _rest("".join(part.split), at)
        yield (
            (*here, "split", *steps),
            f"the fragments do not join to the {what}: "
            f"from character {at + 1} they give {fragments} instead of {_rest(value, at)}",
        )


def _difference(split: tuple[str, ...], value: str) -> tuple[int, tuple[int, ...]]:
    """The first character in which fragments differ from a value, and in which fragment."""
    at = 0
    for index, fragment in enumerate(split):
        for character in fragment:
            if at >= len(value) or value[at] != character:
                return at, (index,)
            at += 1
    return at, ()


def _rest(text: str, at: int) -> str:
    return repr(shorten(text[at : at + 10])) if at < len(text) else "nothing more"


def _arguments(
    here: Steps, call: m.ToolPart, tools: dict[str, m.ToolSpec], schemas: Schemas
) -> Iterator[Remark]:
    if call.malformed or not call.name:
        return
    if tools and call.name not in tools and "" not in tools:
        hint = suggestion(call.name, tools) or f"; they are {', '.join(tools)}"
        yield (*here, "tool"), f"{call.name!r} is not among the scenario's tools{hint}"
    place = (*here, "arguments") if call.arguments is not None else here
    text = "{}" if call.arguments is None else call.arguments
    try:
        value = parse(text)
    except ValueError as error:
        yield place, f"must be JSON, or the call be marked 'malformed: true'; {error}"
        return
    if not isinstance(value, dict):
        yield place, "must be a JSON object, or the call be marked 'malformed: true'"
        return
    tool = tools.get(call.name)
    if tool is None or tool.parameters is None:
        return
    for path, message in schemas.violations(tool.parameters, value):
        yield (*place, *path), f"does not fit the parameters of {call.name}: {message}"


def _order(
    here: Steps, group: m.ParallelPart | m.InterleavedPart, default: m.Split
) -> Iterator[Remark]:
    """What an order must be: each fragment of each part once."""
    if not group.order:
        return
    parallel = isinstance(group, m.ParallelPart)
    parts = group.calls if isinstance(group, m.ParallelPart) else group.parts
    kind = "call" if parallel else "part"
    strangers = [n for n, number in enumerate(group.order) if number >= len(parts)]
    for index in strangers:
        expected = f"the number of a {kind}, from 0 to {len(parts) - 1}"
        yield (*here, index), f"must be {expected}, got {group.order[index]}"
    for index, part in enumerate(() if strangers else parts):
        split = None if isinstance(part, m.FramePart) else part.split or default
        if isinstance(split, m.RandomSplit):
            yield (
                here,
                f"{kind} {index} is split at random, so its fragments cannot be put in order",
            )
            continue
        count, found = _fragments(part, split, opening=not parallel), group.order.count(index)
        if found != count:
            yield (
                here,
                f"{kind} {index} has {count} fragments and must be there as often, got {found}",
            )


def _fragments(part: m.Member, split: m.Split | None, *, opening: bool) -> int:
    """How many fragments a part has; the `opening` of a call is one of them, or not."""
    match part:
        case m.FramePart():
            return 1
        case m.ToolPart():
            cut = fragments(part.arguments or "", split or "whole", "")
            # A call normalises what stands for "no arguments" to no fragments. Imported here,
            # where few scenarios come by: it is not needed to start.
            from mockllm.core.turn import ToolCall

            return len(ToolCall("", "", cut).fragments) + opening
        case _:
            return len(fragments(part.text, split or "whole", "")) or 1


def _calls(view: list[_Seen]) -> Iterator[Remark]:
    """Ids of calls: each once, and results only for calls that earlier turns made."""
    known: set[str] = set()
    complete = True
    for seen in view:
        if seen.turn.request is not None and complete:
            for id, _ in seen.turn.request.results:
                if id not in known:
                    yield (*seen.request, "request", "results", id), _no_call(id, known)
        for index, part in enumerate(seen.turn.reply):
            complete = complete and not isinstance(part, (m.AutoPart, m.FramePart))
            for place, call in _singles((*seen.reply, "reply", index), part):
                if not isinstance(call, m.ToolPart):
                    continue
                if call.id is None:
                    complete = False
                elif call.id in known and not call.malformed:
                    yield (*place, "id"), f"call id {call.id!r} is taken by an earlier call"
                else:
                    known.add(call.id)


def _no_call(id: str, known: set[str]) -> str:
    if not known:
        return "is the result of no call; no turn before this one calls a tool"
    return "is the result of no call in the turns before" + (
        suggestion(id, sorted(known)) or f"; known: {shorten(', '.join(sorted(known)))}"
    )
