"""Fixture files of aimock (@copilotkit/aimock) as scenarios: https://aimock.copilotkit.dev.

A fixture answers one request. Those that share their conditions, and tell by `turnIndex`,
`hasToolResult` or `sequenceIndex` which of the requests they answer, are the turns of one
scenario, in that order; one with a `toolCallId` goes on where that call was made. Errors that
come before an answer are its `attempts`. aimock takes the first fixture that fits, so a second
one with the same conditions is never reached; it is told and left out.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import dropwhile
from pathlib import Path
from typing import Any

from mockllm.errors import UsageError, WireError
from mockllm.importers.aimock_replies import CHUNK_SIZE, agui_turn, turn
from mockllm.importers.files import contents, json_value
from mockllm.recording.drafting.drafts import Draft, Line
from mockllm.recording.drafting.naming import free_name, slug
from mockllm.scenario.model import (
    Api,
    Defaults,
    Expect,
    Http,
    Match,
    ResultCondition,
    Scenario,
    TextCondition,
    ToolPart,
    TurnSpec,
)
from mockllm.scenario.precedence import match_key

__all__ = ["read"]

_Json = dict[str, Any]
_MODELS: tuple[Api, ...] = ("chat", "responses", "anthropic", "gemini")
_CONTEXT = "x-aimock-context"


@dataclass(slots=True)
class _Group:
    """The fixtures of one scenario, with what orders them."""

    match: Match
    apis: tuple[Api, ...]
    file: str
    fixtures: list[_Fixture] = field(default_factory=list)


@dataclass(slots=True)
class _Fixture:
    source: str
    match: _Json
    spec: TurnSpec
    lost: tuple[str, ...] = ()

    @property
    def place(self) -> tuple[int, bool, int]:
        """Which request of the conversation it answers."""
        told = self.match
        answers_tool = told.get("hasToolResult") is True or _continues(told)
        return _count(told, "turnIndex"), answers_tool, _count(told, "sequenceIndex")


def _count(told: _Json, name: str) -> int:
    value = told.get(name)
    return value if isinstance(value, int) else 0


def _continues(told: _Json) -> bool:
    return "toolCallId" in told or "toolResultContains" in told


def read(path: Path, taken: Container[str] = ()) -> list[Draft]:
    """The scenarios that the fixtures of a file make; without any tapes.

    Args:
        taken: names that scenarios cannot have.

    Raises:
        UsageError: the file holds no fixtures.
    """
    entries = _entries(json_value(contents(path), path), path)
    skipped: list[Line] = []
    groups: list[_Group] = []
    for number, (entry, agui) in enumerate(entries, 1):
        source = f"{path}#{number}"
        try:
            _place(_fixture(entry, source, agui=agui), groups, agui=agui)
        except WireError as error:
            skipped.append(Line(source, "skipped", str(error)))
    return [*_drafts(groups, taken), *([Draft(None, report=tuple(skipped))] if skipped else [])]


def _entries(value: Any, path: Path) -> list[tuple[Any, bool]]:
    """The fixtures of a file, and whether each is one of AG-UI."""
    found: list[tuple[Any, bool]] = []
    for place, agui in ((value, False), (value.get("llm"), False), (value.get("agui"), True)):
        match place:
            case {"fixtures": list(fixtures)}:
                found += [(one, agui) for one in fixtures]
            case {"fixtures": str(other)}:
                raise UsageError(f"{path} only names the file of its fixtures: import {other!r}")
    if not found:
        raise UsageError(f"{path} has no fixtures")
    return found


def _fixture(entry: Any, source: str, *, agui: bool) -> _Fixture:
    match entry:
        case {"match": dict(told)}:
            pass
        case _:
            raise WireError("it has no 'match'")
    kind = told.get("endpoint", "chat")
    if kind != "chat" or "inputText" in told:
        raise WireError(f"it answers requests of '{kind}', which are no conversation")
    spec, lost = (agui_turn(entry), ()) if agui else turn(entry)
    return _Fixture(source, told, spec, lost)


# Conditions


def _match(told: _Json, *, agui: bool) -> Match:
    user = told.get("message" if agui else "userMessage")
    model, tool = told.get("model"), told.get("toolName")
    context, form = told.get("context"), told.get("responseFormat")
    state = told.get("stateKey")
    if state is not None:
        raise WireError("it asks for a key of the state, which no condition here can")
    match = Match(
        model=_glob(model) if isinstance(model, str) else None,
        user=TextCondition("contains", user) if isinstance(user, str) else None,
        system=_system(told.get("systemMessage")),
        tools=(tool,) if isinstance(tool, str) else (),
        headers=((_CONTEXT, TextCondition("equals", context)),) if isinstance(context, str) else (),
        body={"response_format": {"type": form}} if isinstance(form, str) else None,
    )
    return match if match.conditions else Match(anything=True)


def _glob(model: str) -> str:
    """aimock also takes the name with a date behind it."""
    return re.sub(r"([*?\[])", r"[\1]", model) + "*"


def _system(told: Any) -> TextCondition | None:
    needles = [told] if isinstance(told, str) else told
    if not isinstance(needles, list) or not needles:
        return None
    if len(needles) == 1:
        return TextCondition("contains", str(needles[0]))
    ahead = "".join(f"(?=.*{re.escape(str(needle))})" for needle in needles)
    return TextCondition("regex", rf"(?s)\A{ahead}")


# Turns


def _place(fixture: _Fixture, groups: list[_Group], *, agui: bool) -> None:
    """Puts a fixture to those of its scenario.

    Raises:
        WireError: another answers all that it could answer.
    """
    match = _match(fixture.match, agui=agui)
    apis: tuple[Api, ...] = ("agui",) if agui else _MODELS
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
    elif any(other.place == fixture.place for other in group.fixtures):
        raise WireError(f"the fixture {group.fixtures[0].source} answers the same requests first")
    group.fixtures.append(fixture)


def _continue(fixture: _Fixture, groups: list[_Group]) -> None:
    """Puts a fixture for a tool's result behind the turn that makes the call.

    Where no turn has the call by its id, it is the one without an id that was made last.
    """
    told = fixture.match
    id, words = told.get("toolCallId"), told.get("toolResultContains")
    for group in reversed(groups):
        last = group.fixtures[-1]
        calls = [part for part in last.spec.reply if isinstance(part, ToolPart)]
        if not any(call.id == id or call.id is None or id is None for call in calls):
            continue
        if isinstance(id, str) and all(call.id != id for call in calls):
            last.spec = _with_id(last.spec, id)
        if isinstance(words, str) and isinstance(id, str):
            condition = ResultCondition(TextCondition("contains", words))
            fixture.spec = replace(fixture.spec, request=Expect(results=((id, condition),)))
        elif isinstance(words, str):
            fixture.lost += ("toolResultContains",)
        fixture.match = {**told, "turnIndex": last.place[0] + 1}
        group.fixtures.append(fixture)
        return
    which = f"the call {id!r}" if id else "a call"
    raise WireError(f"no fixture before it makes {which}, or another answers it")


def _with_id(spec: TurnSpec, id: str) -> TurnSpec:
    """The turn with an id for the first of its calls that has none."""
    parts = list(spec.reply)
    at = next(i for i, one in enumerate(parts) if isinstance(one, ToolPart) and one.id is None)
    part = parts[at]
    assert isinstance(part, ToolPart)
    parts[at] = replace(part, id=id)
    return replace(spec, reply=tuple(parts))


# Scenarios


def _drafts(groups: Iterable[_Group], taken: Container[str]) -> Iterator[Draft]:
    mine: set[str] = set()
    for group in groups:
        name = free_name(
            slug(_words(group.match), "aimock"), lambda one: one in mine or one in taken
        )
        fixtures = sorted(group.fixtures, key=lambda one: one.place)
        begun = list(dropwhile(lambda one: one.place[1], fixtures))
        words = "it answers the result of a call that no fixture here makes"
        skipped = [Line(one.source, "skipped", words) for one in fixtures if one not in begun]
        if not begun:
            yield Draft(None, report=tuple(skipped))
            continue
        mine.add(name)
        turns, report = _turns(begun, name)
        yield Draft(
            Scenario(
                name,
                turns,
                description=f"Imported from {group.file}.",
                apis=group.apis,
                match=group.match,
                defaults=Defaults(split=CHUNK_SIZE if group.apis == _MODELS else None),
            ),
            tuple(None for _ in turns),
            (*skipped, *report),
        )


def _turns(fixtures: Sequence[_Fixture], name: str) -> tuple[tuple[TurnSpec, ...], list[Line]]:
    """The turns of a scenario, and a line for each fixture; errors that others follow are
    attempts at what follows."""
    turns: list[TurnSpec] = []
    report: list[Line] = []
    failures: tuple[Http, ...] = ()
    for one in fixtures:
        lost = f"; not kept: {', '.join(one.lost)}" if one.lost else ""
        words = f"turn {len(turns) + 1} of {name}{lost}"
        report.append(Line(one.source, "neutral", words, name, len(turns)))
        if one.spec.http is not None and one is not fixtures[-1]:
            failures += (one.spec.http,)
            continue
        turns.append(replace(one.spec, attempts=failures))
        failures = ()
    return tuple(turns), report


def _words(match: Match) -> str:
    """What names a scenario: what its user says, or the first other thing that is asked."""
    user = match.user.value if match.user is not None else ""
    return user or next(iter(match.tools), "") or match.model or ""
