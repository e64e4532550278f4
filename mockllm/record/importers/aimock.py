"""Fixture files of aimock (@copilotkit/aimock) as scenarios: https://aimock.copilotkit.dev.

A fixture answers one request. Fixtures with the same conditions are the turns of one scenario, in
the order of their `turnIndex`, `hasToolResult` and `sequenceIndex`. A fixture with a `toolCallId`
follows the turn with that call. Errors before an answer become its `attempts`. aimock plays the
first fixture that matches, so a second one with the same conditions is never played; it is skipped
and reported.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import dropwhile
from pathlib import Path
from typing import Any

from mockllm.core.errors import UsageError, WireError
from mockllm.record.importers.aimock_replies import CHUNK_SIZE, agui_turn, turn
from mockllm.record.importers.foreign_files import ForeignFile
from mockllm.record.recording.drafting.draft import Draft, Line, free_name, slug
from mockllm.scenario import model as m
from mockllm.scenario.part_model import ToolPart, tool_parts
from mockllm.scenario.precedence import match_key

_Json = dict[str, Any]
_MODELS: tuple[m.Api, ...] = ("chat", "responses", "anthropic", "gemini")
_CONTEXT = "x-aimock-context"


@dataclass(slots=True)
class _Group:
    """The fixtures of one scenario."""

    match: m.Match
    apis: tuple[m.Api, ...]
    file: str
    fixtures: list[_Fixture] = field(default_factory=list)


@dataclass(slots=True)
class _Fixture:
    """A fixture: its conditions as in the file, its turn, and the keys that are not kept."""

    source: str
    match: _Json
    spec: m.TurnSpec
    lost: tuple[str, ...] = ()

    @property
    def position(self) -> tuple[int, bool, int]:
        """The position in its conversation of the request that it answers, to sort by."""
        match = self.match
        answers_tool = match.get("hasToolResult") is True or _continues(match)
        return _index(match, "turnIndex"), answers_tool, _index(match, "sequenceIndex")


def _index(match: _Json, name: str) -> int:
    value = match.get(name)
    return value if isinstance(value, int) else 0


def _continues(match: _Json) -> bool:
    return "toolCallId" in match or "toolResultContains" in match


def read(file: ForeignFile, used_names: Container[str] = ()) -> list[Draft]:
    """The scenarios of the fixtures in a file, without tapes and without the `used_names`.

    Raises:
        UsageError: the file holds no fixtures.
    """
    entries = _entries(file.value, file.path)
    skipped: list[Line] = []
    groups: list[_Group] = []
    for number, (entry, agui) in enumerate(entries, 1):
        source = f"{file.path}#{number}"
        try:
            _add(_fixture(entry, source, agui=agui), groups, agui=agui)
        except WireError as error:
            skipped.append(Line(source, "skipped", str(error)))
    return [
        *_drafts(groups, used_names),
        *([Draft(None, report=tuple(skipped))] if skipped else []),
    ]


def _entries(value: Any, path: Path) -> list[tuple[Any, bool]]:
    found: list[tuple[Any, bool]] = []
    for section, agui in ((value, False), (value.get("llm"), False), (value.get("agui"), True)):
        match section:
            case {"fixtures": list(fixtures)}:
                found += [(fixture, agui) for fixture in fixtures]
            case {"fixtures": str(other)}:
                raise UsageError(f"{path} only names the file of its fixtures: import {other!r}")
    if not found:
        raise UsageError(f"{path} has no fixtures")
    return found


def _fixture(entry: Any, source: str, *, agui: bool) -> _Fixture:
    match entry:
        case {"match": dict(match)}:
            pass
        case _:
            raise WireError("it has no 'match'")
    kind = match.get("endpoint", "chat")
    if kind != "chat" or "inputText" in match:
        raise WireError(f"it answers requests of '{kind}', which are no conversation")
    spec, lost = (agui_turn(entry), ()) if agui else turn(entry)
    return _Fixture(source, match, spec, lost)


# Conditions


def _match(fields: _Json, *, agui: bool) -> m.Match:
    """The conditions of a fixture; WireError: a condition that scenarios lack."""
    user = fields.get("message" if agui else "userMessage")
    model, tool = fields.get("model"), fields.get("toolName")
    context, form = fields.get("context"), fields.get("responseFormat")
    state = fields.get("stateKey")
    if state is not None:
        raise WireError("it has the condition 'stateKey', which scenarios do not have")
    match = m.Match(
        model=_glob(model) if isinstance(model, str) else None,
        user=m.TextCondition("contains", user) if isinstance(user, str) else None,
        system=_system(fields.get("systemMessage")),
        tools=(tool,) if isinstance(tool, str) else (),
        headers=((_CONTEXT, m.TextCondition("equals", context)),)
        if isinstance(context, str)
        else (),
        body={"response_format": {"type": form}} if isinstance(form, str) else None,
    )
    return match if match.conditions else m.Match(anything=True)


def _glob(model: str) -> str:
    """A glob for a model: aimock also accepts the name with a date after it."""
    return re.sub(r"([*?\[])", r"[\1]", model) + "*"


def _system(value: Any) -> m.TextCondition | None:
    needles = [value] if isinstance(value, str) else value
    if not isinstance(needles, list) or not needles:
        return None
    if len(needles) == 1:
        return m.TextCondition("contains", str(needles[0]))
    ahead = "".join(f"(?=.*{re.escape(str(needle))})" for needle in needles)
    return m.TextCondition("regex", rf"(?s)\A{ahead}")


# Turns


def _add(fixture: _Fixture, groups: list[_Group], *, agui: bool) -> None:
    """Adds a fixture to the group of its scenario; WireError: an earlier one answers first."""
    match = _match(fixture.match, agui=agui)
    apis: tuple[m.Api, ...] = ("agui",) if agui else _MODELS
    continues = _continues(fixture.match)
    if continues and match.user is None:
        _continue(fixture, [group for group in groups if group.apis == apis])
        return
    group = next(
        (g for g in groups if g.apis == apis and match_key(g.match) == match_key(match)), None
    )
    if group is None:
        group = _Group(match, apis, Path(fixture.source.rpartition("#")[0]).name)
        groups.append(group)
    elif any(other.position == fixture.position for other in group.fixtures):
        raise WireError(f"the fixture {group.fixtures[0].source} answers the same requests first")
    group.fixtures.append(fixture)


def _continue(fixture: _Fixture, groups: list[_Group]) -> None:
    """Adds a fixture for a tool result after the turn with the call; WireError: there is none.

    Where no call has the id, the latest call without an id gets it.
    """
    match = fixture.match
    id, text = match.get("toolCallId"), match.get("toolResultContains")
    for group in reversed(groups):
        last = group.fixtures[-1]
        calls = list(tool_parts(last.spec.reply))
        if not any(call.id == id or call.id is None or id is None for call in calls):
            continue
        if isinstance(id, str) and all(call.id != id for call in calls):
            last.spec = _with_id(last.spec, id)
        if isinstance(text, str) and isinstance(id, str):
            condition = m.ResultCondition(m.TextCondition("contains", text))
            fixture.spec = replace(fixture.spec, request=m.Expect(results=((id, condition),)))
        elif isinstance(text, str):
            fixture.lost += ("toolResultContains",)
        fixture.match = {**match, "turnIndex": last.position[0] + 1}
        group.fixtures.append(fixture)
        return
    which = f"the call {id!r}" if id else "a call"
    raise WireError(f"no fixture before it makes {which}, or another answers it")


def _with_id(spec: m.TurnSpec, id: str) -> m.TurnSpec:
    """The turn with an id for the first of its calls that has none."""
    parts = list(spec.reply)
    at = next(i for i, one in enumerate(parts) if isinstance(one, ToolPart) and one.id is None)
    part = parts[at]
    assert isinstance(part, ToolPart)
    parts[at] = replace(part, id=id)
    return replace(spec, reply=tuple(parts))


# Scenarios


def _drafts(groups: Iterable[_Group], used_names: Container[str]) -> Iterator[Draft]:
    own: set[str] = set()
    for group in groups:
        name = free_name(
            slug(_name(group.match), "aimock"),
            lambda candidate: candidate in own or candidate in used_names,
        )
        fixtures = sorted(group.fixtures, key=lambda fixture: fixture.position)
        playable = list(dropwhile(lambda fixture: fixture.position[1], fixtures))
        reason = "it answers the result of a call that no fixture here makes"
        skipped = [
            Line(fixture.source, "skipped", reason)
            for fixture in fixtures
            if fixture not in playable
        ]
        if not playable:
            yield Draft(None, report=tuple(skipped))
            continue
        own.add(name)
        turns, report = _turns(playable, name)
        yield Draft(
            m.Scenario(
                name,
                turns,
                description=f"Imported from {group.file}.",
                apis=group.apis,
                match=group.match,
                defaults=m.Defaults(split=CHUNK_SIZE if group.apis == _MODELS else None),
            ),
            report=(*skipped, *report),
        )


def _turns(fixtures: Sequence[_Fixture], name: str) -> tuple[tuple[m.TurnSpec, ...], list[Line]]:
    """The turns of a scenario, and a line for each fixture. An error before the last fixture is an
    attempt at the turn after it."""
    turns: list[m.TurnSpec] = []
    report: list[Line] = []
    failures: tuple[m.TurnSpec, ...] = ()
    for fixture in fixtures:
        lost = f"; not kept: {', '.join(fixture.lost)}" if fixture.lost else ""
        description = f"turn {len(turns) + 1} of {name}{lost}"
        report.append(Line(fixture.source, "neutral", description, name, len(turns)))
        if fixture.spec.http is not None and fixture is not fixtures[-1]:
            failures += (m.TurnSpec(http=fixture.spec.http),)
            continue
        turns.append(replace(fixture.spec, attempts=failures))
        failures = ()
    return tuple(turns), report


def _name(match: m.Match) -> str:
    """The text that a scenario is named by: its user message, else its first tool or model."""
    user = " ".join(m.expected_texts(match.user))
    return user or next(iter(match.tools), "") or match.model or ""
