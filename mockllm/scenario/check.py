"""The rules between values of a scenario: calls fit their tools, fragments join to their value.

A scenario is checked however it was made: problems come with paths, which `nodes` finds in a
document. A call without a name stands for a part that could not be read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate, takewhile

from mockllm.core.jsontext import parse
from mockllm.core.record import record
from mockllm.scenario import model as m
from mockllm.scenario.model import fragments
from mockllm.scenario.reading.conditions import is_position
from mockllm.scenario.reading.nodes import KeyPath
from mockllm.scenario.reading.routes import check_route
from mockllm.scenario.reading.values import excerpt, suggestion
from mockllm.scenario.schema_validation import schema_flaws, violations

Mistake = tuple[KeyPath, str]
"""The path to a value of a scenario, and what is wrong with the value."""


def check(scenario: m.Scenario) -> list[Mistake]:
    """The mistakes of a scenario beyond keys, types and ranges; each is listed once."""
    tools = {tool.name: tool for tool in scenario.tools}
    mistakes = [*_tools(scenario), *_repeats_and_variants(scenario)]
    mistakes += check_route(scenario)
    for path, turn in _written_turns(scenario):
        mistakes += _turn(scenario, tools, path, turn)
    for turns in _played_turns(scenario):
        mistakes += _call_ids(turns)
    return list(dict.fromkeys(mistakes)) if mistakes else mistakes


def _written_turns(scenario: m.Scenario) -> Iterator[tuple[KeyPath, m.TurnSpec]]:
    """Every turn, and every variant without what it inherits from its turn."""
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


@record
class _PlayedTurn:
    """A turn as one protocol plays it, and the paths at which request and reply are written."""

    turn: m.TurnSpec
    request: KeyPath
    reply: KeyPath


def _played_turns(scenario: m.Scenario) -> Iterator[list[_PlayedTurn]]:
    """The turns without variants, then once more for each protocol that has variants."""
    yield [
        _PlayedTurn(turn, ("turns", index), ("turns", index))
        for index, turn in enumerate(scenario.turns)
    ]
    for api in dict.fromkeys(name for turn in scenario.turns for name, _ in turn.variants):
        yield [_played_turn(turn, index, api) for index, turn in enumerate(scenario.turns)]


def _played_turn(turn: m.TurnSpec, index: int, api: m.Api) -> _PlayedTurn:
    base: KeyPath = ("turns", index)
    for number, (name, variant) in enumerate(turn.variants):
        if name == api:
            own = (*base, "when", number)
            return _PlayedTurn(
                variant,
                base if variant.request == turn.request else own,
                base if variant.reply == turn.reply else own,
            )
    return _PlayedTurn(turn, base, base)


def _tools(scenario: m.Scenario) -> Iterator[Mistake]:
    seen: set[str] = set()
    for index, tool in enumerate(scenario.tools):
        if tool.name in seen and tool.name:
            yield ("tools", index, "name"), f"tool {tool.name!r} is there twice"
        seen.add(tool.name)
        if tool.parameters is not None:
            for path, message in schema_flaws(tool.parameters):
                yield ("tools", index, "parameters", *path), message


def _repeats_and_variants(scenario: m.Scenario) -> Iterator[Mistake]:
    for path, turn in _written_turns(scenario):
        if turn.repeat and path[1] != len(scenario.turns) - 1:
            yield (*path, "repeat"), "only the last turn can repeat"
        if turn.repeat and scenario.restart:
            yield (*path, "repeat"), "cannot go with 'then: restart'; take one of them"
    for index, turn in enumerate(scenario.turns):
        for number, (api, _) in enumerate(turn.variants):
            if not scenario.plays_over(api):
                yield ("turns", index, "when", number, "api"), _not_among(api, scenario)


def _turn(
    scenario: m.Scenario, tools: dict[str, m.ToolSpec], path: KeyPath, turn: m.TurnSpec
) -> Iterator[Mistake]:
    last = len(turn.reply) - 1
    for index, part in enumerate(turn.reply):
        part_path = (*path, "reply", index)
        if isinstance(part, m.AutoPart) and last:
            yield part_path, "must be the only part of its reply"
        elif isinstance(part, m.ErrorPart) and index < last:
            yield part_path, "must be the last part; an error ends the stream"
        elif isinstance(part, m.FramePart) and not scenario.plays_over(part.api):
            yield (*part_path, "api"), _not_among(part.api, scenario)
        for member_path, member in _members(part_path, part):
            yield from _fragments_join(member_path, member)
            yield from _tokens_join(member_path, member)
            if isinstance(member, m.ToolPart):
                yield from _arguments(member_path, member, tools)
        if isinstance(part, m.ParallelPart | m.InterleavedPart):
            yield from _order((*part_path, "order"), part, scenario.defaults.split or "whole")
    if turn.request is not None and turn.request.schema is not None:
        for inner, message in schema_flaws(turn.request.schema):
            yield (*path, "request", "schema", *inner), message


def _not_among(api: m.Api, scenario: m.Scenario) -> str:
    return f"{api} is not among the scenario's apis: {', '.join(scenario.apis)}"


def _members(path: KeyPath, part: m.AnyPart) -> list[tuple[KeyPath, m.AnyPart]]:
    """The members of a group with their paths; a part that is no group is its own member."""
    if isinstance(part, m.ParallelPart):
        return [((*path, "parallel", index), call) for index, call in enumerate(part.calls)]
    if isinstance(part, m.InterleavedPart):
        return [((*path, "interleaved", index), member) for index, member in enumerate(part.parts)]
    return [(path, part)]


def _fragments_join(path: KeyPath, part: m.AnyPart) -> Iterator[Mistake]:
    match part:
        case m.TextPart() | m.ReasoningPart() | m.RefusalPart():
            value, what = part.text, "text"
        case m.ToolPart():
            value, what = part.arguments or "", "input" if part.custom else "arguments"
        case m.ServerToolPart():
            value, what = part.input or "", "input"
        case m.AudioPart():
            value, what = part.transcript, "transcript"
        case _:
            return
    if isinstance(part.split, tuple):
        message = f"the fragments do not join to the {what}"
        yield from _join((*path, "split"), part.split, value, message)


def _tokens_join(path: KeyPath, part: m.AnyPart) -> Iterator[Mistake]:
    if isinstance(part, m.TextPart) and part.tokens:
        tokens = tuple(token.token for token in part.tokens)
        message = "the tokens do not join to the text"
        yield from _join((*path, "logprobs"), tokens, part.text, message)


def _join(path: KeyPath, pieces: tuple[str, ...], value: str, message: str) -> Iterator[Mistake]:
    joined = "".join(pieces)
    if joined == value:
        return
    equal = takewhile(lambda pair: pair[0] == pair[1], zip(joined, value, strict=False))
    at = sum(1 for _ in equal)
    given = _excerpt_from(joined, at)
    ends = enumerate(accumulate(map(len, pieces)))
    differing = [index for index, end in ends if at < end]  # none where the value is longer
    yield (
        (*path, *differing[:1]),
        f"{message}: "
        f"from character {at + 1} they give {given} instead of {_excerpt_from(value, at)}",
    )


def _excerpt_from(text: str, at: int) -> str:
    return repr(excerpt(text[at : at + 10])) if at < len(text) else "nothing more"


def _arguments(path: KeyPath, call: m.ToolPart, tools: dict[str, m.ToolSpec]) -> Iterator[Mistake]:
    if call.malformed or not call.name:
        return
    # A tool without a name could not be read: it may be the one that is called.
    if tools and call.name not in tools and "" not in tools:
        hint = suggestion(call.name, tools) or f"; they are {', '.join(tools)}"
        yield (*path, "tool"), f"{call.name!r} is not among the scenario's tools{hint}"
    if call.custom:
        return
    arguments = (*path, "arguments") if call.arguments is not None else path
    text = "{}" if call.arguments is None else call.arguments
    try:
        value = parse(text)
    except ValueError as error:
        yield arguments, f"must be JSON, or the call be marked 'malformed: true'; {error}"
        return
    if not isinstance(value, dict):
        yield arguments, "must be a JSON object, or the call be marked 'malformed: true'"
        return
    tool = tools.get(call.name)
    if tool is None or tool.parameters is None:
        return
    for inner, message in violations(tool.parameters, value):
        yield (*arguments, *inner), f"does not fit the parameters of {call.name}: {message}"


def _order(
    path: KeyPath, group: m.ParallelPart | m.InterleavedPart, default: m.Split
) -> Iterator[Mistake]:
    """`order` must name each part as often as the part has fragments."""
    if not group.order:
        return
    parallel = isinstance(group, m.ParallelPart)
    parts = group.calls if isinstance(group, m.ParallelPart) else group.parts
    kind = "call" if parallel else "part"
    unknown = [n for n, number in enumerate(group.order) if number >= len(parts)]
    for index in unknown:
        expected = f"the number of a {kind}, from 0 to {len(parts) - 1}"
        yield (*path, index), f"must be {expected}, got {group.order[index]}"
    for index, part in enumerate(() if unknown else parts):
        split = _rule(part, default)
        if isinstance(split, m.RandomSplit):
            yield (
                path,
                f"{kind} {index} is split at random, so its fragments cannot be put in order",
            )
            continue
        count, named = _fragment_count(part, split, opening=not parallel), group.order.count(index)
        if named != count:
            yield (
                path,
                f"{kind} {index} has {count} fragments and must be there as often, got {named}",
            )


def _rule(part: m.Member, default: m.Split) -> m.Split | None:
    """How a part is cut; None for one that cannot be."""
    match part:
        case m.FramePart() | m.ImagePart():
            return None
        case m.TextPart():
            return part.rule(default)
    return part.split or default


def _fragment_count(part: m.Member, split: m.Split | None, *, opening: bool) -> int:
    """How many fragments a part has; the `opening` of a call may count as one."""
    match part:
        case m.FramePart() | m.ImagePart():
            return 1
        case m.AudioPart():
            cut = fragments(part.transcript, split or "whole", "")
            size = len(part.audio.data)
            texts = sum(map(bool, cut))
            return -(-size // (part.fragment_bytes or size or 1)) + texts or 1
        case m.ToolPart():
            cut = fragments(part.arguments or "", split or "whole", "")
            # `ToolCall` turns each way to write "no arguments" into no fragments. It is imported
            # here because starting does not need it, and few scenarios have an `order`.
            from mockllm.core.turn import ToolCall

            return len(ToolCall("", "", cut, custom=part.custom).fragments) + opening
        case m.ServerToolPart():
            cut = fragments(part.input or "", split or "whole", "") if part.input or split else ()
            return (0 if cut == ("",) else len(cut)) + opening
        case _:
            return len(fragments(part.text, split or "whole", "")) or 1


def _call_ids(turns: list[_PlayedTurn]) -> Iterator[Mistake]:
    """Each call has an id of its own, and results are expected only for earlier calls."""
    known: set[str] = set()
    complete = True
    before: int | None = 0
    for played in turns:
        for id, _ in played.turn.request.results if played.turn.request is not None else ():
            where = (*played.request, "request", "results", id)
            if is_position(id) and id not in known:
                if before is not None and int(id) >= before:
                    yield where, _no_position(id, before)
            elif id not in known and complete:
                yield where, _no_call(id, known)
        before = _count_calls(played.turn)
        for index, part in enumerate(played.turn.reply):
            complete = complete and not isinstance(part, (m.AutoPart, m.FramePart))
            for path, call in _members((*played.reply, "reply", index), part):
                if not isinstance(call, m.ToolPart):
                    continue
                if call.id is None:
                    complete = False
                # A malformed call may repeat an id on purpose: clients must notice it.
                elif call.id in known and not call.malformed:
                    yield (*path, "id"), f"call id {call.id!r} is taken by an earlier call"
                else:
                    known.add(call.id)


def _count_calls(turn: m.TurnSpec) -> int | None:
    """How many calls a turn makes; None where the request decides."""
    if any(isinstance(part, (m.AutoPart, m.FramePart)) for part in turn.reply):
        return None
    members = [call for part in turn.reply for _, call in _members((), part)]
    return sum(isinstance(call, m.ToolPart) for call in members)


def _no_position(id: str, count: int) -> str:
    calls = {0: "no call", 1: "1 call, at position 0"}
    return (
        f"is the result of no call: the turn before this one makes "
        f"{calls.get(count, f'{count} calls, at positions 0 to {count - 1}')}"
    )


def _no_call(id: str, known: set[str]) -> str:
    if not known:
        return "is the result of no call; no turn before this one calls a tool"
    return "is the result of no call in the turns before" + (
        suggestion(id, sorted(known)) or f"; known: {excerpt(', '.join(sorted(known)))}"
    )
