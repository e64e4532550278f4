"""The rules between values of a scenario: calls fit their tools, fragments join to their value.

A scenario is checked however it was made: problems come with paths, which `nodes` finds in a
document. A call without a name stands for a part that could not be read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, takewhile
from typing import Any

from mockllm.core.jsontext import parse
from mockllm.core.patterns import compile_pattern
from mockllm.core.record import record
from mockllm.core.tokens_and_fragments import RandomSplit, Split, fragments
from mockllm.scenario import model as m
from mockllm.scenario.mcp_model import server_and_tool
from mockllm.scenario.part_model import (
    AnyPart,
    AudioPart,
    AutoPart,
    ErrorPart,
    FramePart,
    Gate,
    GatePart,
    InterleavedPart,
    Member,
    NativePart,
    ParallelPart,
    ServerToolPart,
    TextPart,
    ToolPart,
    content_of,
    members,
    placed_members,
    tool_parts,
)
from mockllm.scenario.reading.conditions import is_position
from mockllm.scenario.reading.jobs import check_jobs
from mockllm.scenario.reading.mcp import check_mcp
from mockllm.scenario.reading.nodes import KeyPath
from mockllm.scenario.reading.routes import check_route
from mockllm.scenario.reading.sockets import check_socket
from mockllm.scenario.reading.values import excerpt, suggestion
from mockllm.scenario.schema_validation import schema_flaws, violations

Mistake = tuple[KeyPath, str]
"""The path to a value of a scenario, and what is wrong with the value."""


def check(scenario: m.Scenario) -> list[Mistake]:
    """The mistakes of a scenario beyond keys, types and ranges; each is listed once."""
    tools = {tool.name: tool for tool in scenario.tools}
    mistakes = [*_tools(scenario), *_repeats_and_variants(scenario)]
    mistakes += [*check_route(scenario), *check_jobs(scenario), *_match(scenario)]
    mistakes += [*check_socket(scenario), *check_mcp(scenario)]
    for path, turn in _written_turns(scenario):
        mistakes += _turn(scenario, tools, path, turn)
    if scenario.varies:
        mistakes += _ways(scenario)
    for turns in () if scenario.varies else _played_turns(scenario):
        mistakes += _call_ids(turns)
    return list(dict.fromkeys(mistakes)) if mistakes else mistakes


def _written_turns(scenario: m.Scenario) -> Iterator[tuple[KeyPath, m.TurnSpec]]:
    """Every turn, and all that may answer in its place, without what it inherits from the turn."""
    for index, turn in enumerate(scenario.turns):
        yield ("turns", index), turn
        for path, form in _forms(turn, ("turns", index)):
            own = replace(
                form,
                reply=() if form.reply == turn.reply else form.reply,
                choices=() if form.choices == turn.choices else form.choices,
                request=None if form.request == turn.request else form.request,
                repeat=False if form.repeat == turn.repeat else form.repeat,
            )
            yield path, own


def _forms(turn: m.TurnSpec, path: KeyPath) -> Iterator[tuple[KeyPath, m.TurnSpec]]:
    """The alternatives to a turn, each with its path."""
    for number, drawn in enumerate(turn.one_of):
        yield (*path, "one_of", number), drawn.turn
    for number, branch in enumerate(turn.branches):
        yield (*path, "when", number), branch.turn
        yield from _forms(branch.turn, (*path, "when", number))


@record
class _PlayedTurn:
    """A turn as one protocol plays it, and the paths at which request and reply are written."""

    turn: m.TurnSpec
    request: KeyPath
    reply: KeyPath


def _played_turns(scenario: m.Scenario) -> Iterator[list[_PlayedTurn]]:
    """The turns without branches, then once more for each protocol that has branches."""
    yield [
        _PlayedTurn(turn, ("turns", index), ("turns", index))
        for index, turn in enumerate(scenario.turns)
    ]
    apis = dict.fromkeys(b.api for turn in scenario.turns for b in turn.branches if b.api)
    for api in apis:
        yield [_played_turn(turn, index, api) for index, turn in enumerate(scenario.turns)]


def _played_turn(turn: m.TurnSpec, index: int, api: m.Api) -> _PlayedTurn:
    base: KeyPath = ("turns", index)
    for number, branch in enumerate(turn.branches):
        if branch.api == api:
            own, form = (*base, "when", number), branch.turn
            return _PlayedTurn(
                form,
                base if form.request == turn.request else own,
                base if form.reply == turn.reply else own,
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
            yield (*path, "repeat"), "only the last turn can repeat without end; take 'times'"
        if turn.repeat and scenario.restart:
            yield (*path, "repeat"), "cannot go with 'then: restart'; take one of them"
        if scenario.in_order and turn.go_to:
            yield (*path, "go_to"), "cannot go with 'in_order'; take one of them"
    if scenario.in_order and scenario.restart:
        yield ("in_order",), "cannot go with 'then: restart'; take one of them"
    for index, turn in enumerate(scenario.turns):
        for number, branch in enumerate(turn.branches):
            if branch.api and not scenario.plays_over(branch.api):
                yield ("turns", index, "when", number, "api"), _not_among(branch.api, scenario)


def _ways(scenario: m.Scenario) -> Iterator[Mistake]:
    """The mistakes of a scenario whose conversations may go in different ways."""
    named: set[str] = set()
    for index, turn in enumerate(scenario.turns):
        if turn.name in named and turn.name:
            yield ("turns", index, "name"), f"{turn.name!r} is the name of an earlier turn"
        named.add(turn.name)
        forms = [(("turns", index), turn), *_forms(turn, ("turns", index))]
        for path, form in forms:
            yield from _way(path, form, scenario)
    yield from _known_results(scenario)


def _way(path: KeyPath, form: m.TurnSpec, scenario: m.Scenario) -> Iterator[Mistake]:
    named = {turn.name: turn for turn in scenario.turns if turn.name}
    if form.go_to and form.go_to not in named:
        hint = suggestion(form.go_to, named) or f"; there are: {', '.join(named) or 'none'}"
        yield (*path, "go_to"), f"no turn has the name {form.go_to!r}{hint}"
    if form.go_to and form.repeat:
        yield (*path, "go_to"), "cannot go with 'repeat: true': the turn answers without end"
    if scenario.is_template(form):
        from mockllm.scenario.turn_texts import template_flaws  # few scenarios need it

        for inner, flaw in template_flaws(form, _group_names(scenario, form)):
            yield (*path, *inner), flaw
        yield from _split_templates(path, form)
    if form.recorded is not None and (form.one_of or form.template or scenario.template):
        other = "one_of" if form.one_of else "template"
        yield (*path, "recorded"), f"cannot go with '{other}': the tape is the answer as it was"


def _group_names(scenario: m.Scenario, form: m.TurnSpec) -> list[str]:
    """The names of groups that a template of a turn may have after `match`."""
    if scenario.route is not None:
        return []
    texts = [
        text
        for one in m.positive_entries(scenario.match or m.Match())
        for text in (one.user, one.system)
    ]
    texts += [one.user for one in m.positive_entries(form.request or m.Expect())]
    regexes = [regex for text in texts for regex in m.regexes_of(text)]
    return sorted({name for regex in regexes for name in compile_pattern(regex).group_names})


def similar_to_templates(scenario: m.Scenario) -> Iterator[Mistake]:
    """The texts that are sent as they stand, and look as if values were to be put into them. What
    was recorded is left out: services send any text."""
    from mockllm.scenario.turn_texts import look_like_templates  # servers do not ask

    names = re.findall(r"\{\w+\}", "" if scenario.route is None else scenario.route.path)
    for index, turn in enumerate(scenario.turns):
        for path, form in [(("turns", index), turn), *_forms(turn, ("turns", index))]:
            if scenario.is_template(form) or turn.recorded is not None:
                continue
            for inner, text in look_like_templates(form, names):
                yield (
                    (*path, *inner),
                    f"has {text!r}, which is sent as it stands; with 'template: true', values of "
                    "the request are written {{ request.user }}",
                )


def _split_templates(path: KeyPath, form: m.TurnSpec) -> Iterator[Mistake]:
    for index, part in enumerate(form.reply):
        for where, member in _members((*path, "reply", index), part):
            content = content_of(member)
            if content is None or "{{" not in content.text:
                continue
            if isinstance(getattr(member, "split", None), tuple):
                yield (*where, "split"), "must be a rule: fragments cannot have values put in"


def _known_results(scenario: m.Scenario) -> Iterator[Mistake]:
    """Results are expected only for calls that some turn makes."""
    forms = [form for turn in scenario.turns for form in turn.forms()]
    calls = _calls([part for form in forms for part in form.reply])
    if calls is None or any(call.id is None for call in calls):
        return
    known = {call.id for call in calls if call.id is not None}
    for index, turn in enumerate(scenario.turns):
        for path, expect in _conditions(("turns", index), turn):
            for id, _ in expect.results:
                if id not in known and not is_position(id):
                    yield (*path, "results", id), _no_call(id, known)


def _begins(reply: tuple[AnyPart, ...], part: AnyPart) -> bool:
    """Whether a part is a frame, with nothing but such frames before it."""
    before = reply[: reply.index(part) + 1]
    return all(isinstance(one, FramePart) and one.first for one in before)


def _turn(
    scenario: m.Scenario, tools: dict[str, m.ToolSpec], path: KeyPath, turn: m.TurnSpec
) -> Iterator[Mistake]:
    last = len(turn.reply) - 1
    for index, part in enumerate(turn.reply):
        part_path = (*path, "reply", index)
        if isinstance(part, AutoPart) and last:
            yield part_path, "must be the only part of its reply"
        elif isinstance(part, ErrorPart) and index < last:
            yield part_path, "must be the last part; an error ends the stream"
        elif isinstance(part, FramePart | NativePart) and not scenario.plays_over(part.api):
            yield (*part_path, "api"), _not_among(part.api, scenario)
        for member_path, member in _members(part_path, part):
            if isinstance(member, FramePart) and member.first and not _begins(turn.reply, part):
                yield (*member_path, "first"), "belongs to the frames at the beginning of a reply"
        yield from _part(scenario, tools, part_path, part)
    for number, choice in enumerate(turn.choices):
        for index, part in enumerate(choice.reply):
            part_path = (*path, "choices", number, "reply", index)
            for member_path, member in _members(part_path, part):
                if isinstance(member, AutoPart | ErrorPart | FramePart | GatePart | NativePart):
                    yield (
                        member_path,
                        "belongs into the reply of the turn; a choice has only content",
                    )
            yield from _part(scenario, tools, part_path, part)
    yield from _gates(path, turn)
    for number, attempt in enumerate(turn.attempts):
        yield from _gates((*path, "attempts", number), attempt)
    elsewhere = [((*path, "attempts", at), tried.usage) for at, tried in enumerate(turn.attempts)]
    if turn.expect is not None:
        elsewhere.append(((*path, "expect"), turn.expect.usage))
    if turn.recorded is not None:  # whose tape has counts of its own
        elsewhere.append((path, turn.usage))
    for place, usage in elsewhere:
        if usage is not None and usage.cached == "prefix":
            message = "must be a number: 'prefix' is for turns alone, which are not recorded"
            yield (*place, "usage", "cached"), message
    if turn.stop_sequence is not None and turn.finish not in (None, "stop"):
        yield (*path, "stop_sequence"), f"ends an answer whose finish is stop, not {turn.finish}"
    for place, expect in _conditions(path, turn):
        if expect.schema is not None:
            for inner, message in schema_flaws(expect.schema):
                yield (*place, "schema", *inner), message
        yield from _body((*place, "body"), expect.body)


def _gates(path: KeyPath, turn: m.TurnSpec) -> Iterator[Mistake]:
    """The gates of a turn at which nothing can wait."""
    places: list[tuple[KeyPath, Gate]] = []
    if turn.gate is not None:
        places.append(((*path, "gate"), turn.gate))
        if turn.client and not turn.service:
            yield (*path, "gate"), "holds the messages of 'service', and this turn has none"
    for index, part in enumerate(turn.reply):
        if isinstance(part, GatePart):
            places.append(((*path, "reply", index, "gate"), part.gate))
    passed: set[str] = set()
    for place, gate in places:
        if turn.recorded is not None and gate is not turn.gate:
            yield (
                place,
                "has no place in a recording, which is sent as it was; make it 'gate' of the turn, "
                "or remove 'recorded'",
            )
        if gate.name in passed:
            message = f"{gate.name!r} is open by then: this answer waited there; take another name"
            yield place, message
        if not gate.limit:
            yield (*place, "limit"), "must be longer than 0; the answer would not wait"
        passed.add(gate.name)


def _conditions(path: KeyPath, turn: m.TurnSpec) -> Iterator[tuple[KeyPath, m.Expect]]:
    """All conditions of a turn on requests, with those inside of others, and their paths."""
    written = [((*path, "request"), turn.request)]
    written += [((*path, "when", n), branch.condition) for n, branch in enumerate(turn.branches)]
    for place, expect in written:
        for inner, entry in m.with_entries(expect) if expect is not None else ():
            yield (*place, *inner), entry


def _match(scenario: m.Scenario) -> Iterator[Mistake]:
    for place, match in m.with_entries(scenario.match) if scenario.match is not None else ():
        texts = _CONVERSATION_TEXTS if scenario.route is None else _ROUTE_TEXTS
        yield from _body(("match", *place, "body"), match.body, texts)


_OPERATORS = ("contains", "equals", "regex", "not")


def text_operators(value: Any, path: KeyPath = ()) -> Iterator[tuple[KeyPath, str]]:
    """Where a body has what only conditions on texts can be, `{regex: a+}`; with the operator."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if len(value) == 1 and key in _OPERATORS and isinstance(inner, str):
                yield path, key
            yield from text_operators(inner, (*path, key))
    elif isinstance(value, list | tuple):
        for index, inner in enumerate(value):
            yield from text_operators(inner, (*path, index))


_CONVERSATION_TEXTS = (
    "user, system and headers are; a JSON Schema in a turn's `request: {schema: ...}` can demand a "
    "pattern, or this very object"
)
_ROUTE_TEXTS = "headers and query of a route are"


def _body(path: KeyPath, body: Any, texts: str = _CONVERSATION_TEXTS) -> Iterator[Mistake]:
    for inner, operator in text_operators(body):
        message = (
            f"is compared as JSON, so '{operator}' is no operator here: only conditions on texts "
            f"have operators, as {texts}"
        )
        yield (*path, *inner), message


def _part(
    scenario: m.Scenario, tools: dict[str, m.ToolSpec], path: KeyPath, part: AnyPart
) -> Iterator[Mistake]:
    for member_path, member in _members(path, part):
        yield from _fragments_join(member_path, member)
        yield from _tokens_join(member_path, member)
        if isinstance(member, ToolPart):
            yield from _arguments(member_path, member, tools)
    if isinstance(part, ParallelPart | InterleavedPart):
        yield from _order((*path, "order"), part, scenario.defaults.split or "whole")


def _not_among(api: m.Api, scenario: m.Scenario) -> str:
    return f"{api} is not among the scenario's apis: {', '.join(scenario.apis)}"


def _members(path: KeyPath, part: AnyPart) -> list[tuple[KeyPath, AnyPart]]:
    return [((*path, *inner), member) for inner, member in placed_members(part)]


def _fragments_join(path: KeyPath, part: AnyPart) -> Iterator[Mistake]:
    content, split = content_of(part), getattr(part, "split", None)
    if content is not None and isinstance(split, tuple):
        message = f"the fragments do not join to the {content.noun}"
        yield from _join((*path, "split"), split, content.text, message)


def _tokens_join(path: KeyPath, part: AnyPart) -> Iterator[Mistake]:
    if isinstance(part, TextPart) and part.tokens:
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


def _arguments(path: KeyPath, call: ToolPart, tools: dict[str, m.ToolSpec]) -> Iterator[Mistake]:
    if call.malformed or not call.name or call.action:
        return
    # A tool without a name could not be read: it may be the one that is called.
    of_server = server_and_tool(call.name) is not None
    if tools and call.name not in tools and "" not in tools and not of_server:
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
    if "{{" in text:  # what stands there is only known when it is played
        return
    for inner, message in violations(tool.parameters, value):
        yield (*arguments, *inner), f"does not fit the parameters of {call.name}: {message}"


def _order(
    path: KeyPath, group: ParallelPart | InterleavedPart, default: Split
) -> Iterator[Mistake]:
    """`order` must name each part as often as the part has fragments."""
    if not group.order:
        return
    parallel = isinstance(group, ParallelPart)
    parts = group.calls if isinstance(group, ParallelPart) else group.parts
    kind = "call" if parallel else "part"
    unknown = [n for n, number in enumerate(group.order) if number >= len(parts)]
    for index in unknown:
        expected = f"the number of a {kind}, from 0 to {len(parts) - 1}"
        yield (*path, index), f"must be {expected}, got {group.order[index]}"
    for index, part in enumerate(() if unknown else parts):
        split = _rule(part, default)
        if isinstance(split, RandomSplit):
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


def _rule(part: Member, default: Split) -> Split | None:
    """The cut of a part; None for one that cannot be."""
    if isinstance(part, TextPart):
        return part.rule(default)
    return None if content_of(part) is None else getattr(part, "split", None) or default


def _fragment_count(part: Member, split: Split | None, *, opening: bool) -> int:
    """The number of fragments of a part; the `opening` of a call may count as one."""
    content = content_of(part)
    if content is None:
        return 1
    cut = fragments(content.text, split or "whole", "")
    match part:
        case AudioPart():
            size = len(part.audio.data)
            texts = sum(map(bool, cut))
            return -(-size // (part.fragment_bytes or size or 1)) + texts or 1
        case ToolPart():
            # `ToolCall` turns each way to write "no arguments" into no fragments. It is imported
            # here because starting does not need it, and few scenarios have an `order`.
            from mockllm.core.turn import ToolCall

            return len(ToolCall("", "", cut, custom=part.custom).fragments) + opening
        case ServerToolPart():
            return (0 if cut == ("",) else len(cut)) + opening
    return len(cut) or 1


def _call_ids(turns: list[_PlayedTurn]) -> Iterator[Mistake]:
    """Each call has an id of its own, and results are expected only for earlier calls."""
    known: set[str] = set()
    complete = True
    before: int | None = 0
    for played in turns:
        request = played.turn.request
        conditions = m.with_entries(request) if request is not None else ()
        for place, id in [(place, id) for place, entry in conditions for id, _ in entry.results]:
            where = (*played.request, "request", *place, "results", id)
            if is_position(id) and id not in known:
                if before is not None and int(id) >= before:
                    yield where, _no_position(id, before)
            elif id not in known and complete:
                yield where, _no_call(id, known)
        calls = _calls(played.turn.reply)
        before, complete = (None, False) if calls is None else (len(calls), complete)
        for index, part in enumerate(played.turn.reply):
            for path, call in _members((*played.reply, "reply", index), part):
                if not isinstance(call, ToolPart):
                    continue
                if call.id is None:
                    complete = False
                # A malformed call may repeat an id on purpose: clients must notice it.
                elif call.id in known and not call.malformed:
                    yield (*path, "id"), f"call id {call.id!r} is taken by an earlier call"
                else:
                    known.add(call.id)


def _calls(reply: Sequence[AnyPart]) -> list[ToolPart] | None:
    """The calls in a reply; None where the request, or a frame, decides which there are."""
    is_open = any(isinstance(part, AutoPart | FramePart) for part in members(reply))
    return None if is_open else list(tool_parts(reply))


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
