"""A scenario file for a request that no scenario answers. It loads, and it answers this request.

What is promised is tried: of several ways to write the conditions the first one is taken with which
the scenario is selected beside those that are served. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mockllm.core.errors import MockLLMError, RequestError
from mockllm.core.request import Request
from mockllm.play.matching.conversation import ModelTurn, Selection, read_history
from mockllm.play.matching.index import ScenarioIndex, named_scenario
from mockllm.play.matching.route_selection import RouteIndex, RouteRequest
from mockllm.play.matching.select import select
from mockllm.play.replay.loading import loads
from mockllm.record.recording.drafting.draft import free_name, slug
from mockllm.scenario.check import text_operators
from mockllm.scenario.dump import dump
from mockllm.scenario.model import Match, Scenario, TextCondition, TurnSpec
from mockllm.scenario.part_model import AutoPart, TextPart
from mockllm.scenario.precedence import scenario_key
from mockllm.scenario.reading.tables import is_tool_name
from mockllm.scenario.route_model import RouteAnswer, RouteSpec

_LONGEST = 500
"""Characters of a text that a condition compares as a whole; of a longer one a part must occur."""

_PART = 200
_MOST_BODY = 2_000
_MOST_CALLS = 100
_NAME = re.compile(r"[a-z0-9][a-z0-9-]*").fullmatch
_GLOB = re.compile(r"([*?[])")

Skeleton = Mapping[str, str]
"""A scenario file: its text as `skeleton`, and as `file` a name for it: that of the scenario whose
place it takes, if it does."""


def request_skeleton(
    served: ScenarioIndex, request: Request, headers: Mapping[str, str]
) -> Skeleton | None:
    """A scenario for a request for an answer of a model; None where none can answer it: it names a
    scenario with a name that no scenario can have."""
    for draft in _drafts(served, request, headers):
        loaded = _load(draft)
        if loaded is not None and _answers(served, loaded, request, headers):
            return _skeleton_of(served, loaded, request)
    return None


def _load(draft: Scenario) -> Scenario | None:
    try:
        return loads(dump(draft))[0]
    except (MockLLMError, ValueError):
        return None


def _answers(
    served: ScenarioIndex, scenario: Scenario, request: Request, headers: Mapping[str, str]
) -> bool:
    """Whether the last turn of a scenario answers the request, alone and beside the others."""
    others = [other for other in served.scenarios if other.name != scenario.name]
    key, last = scenario_key(scenario), (scenario.name, len(scenario.turns) - 1)
    if key is not None and any(
        scenario_key(other) == key and other.shares_api(scenario) for other in others
    ):
        return False
    for index in (ScenarioIndex((scenario,)), ScenarioIndex((*others, scenario))):
        turn = find_turn(index, request, headers)
        if turn is None or (turn.scenario.name, turn.index) != last:
            return False
    return True


def find_turn(
    index: ScenarioIndex, request: Request, headers: Mapping[str, str]
) -> Selection | None:
    """The turn that answers a request; None where none does, or several do equally well."""
    try:
        return select(index, request, headers)
    except RequestError:
        return None


# Drafts


def _drafts(
    served: ScenarioIndex, request: Request, headers: Mapping[str, str]
) -> Iterator[Scenario]:
    """The ways to write the scenario, the best first."""
    answer = TurnSpec(reply=(TextPart("Write the answer here."),))
    named = named_scenario(served, request, headers)
    if named is not None:
        known = served.by_name.get(named)
        if known is not None:
            yield from _longer(known, request, answer)
        elif _NAME(named):
            yield Scenario(named, (*_earlier(read_history(request.messages).turns), answer))
        return
    name = _free_name(served, request)
    for match, turns in _beginnings(served, request):
        yield Scenario(name, (*turns, answer), match=match)
    for known in served.scenarios:
        if known.match is not None and known.plays_over(request.api):
            yield from _longer(known, request, answer)


def _longer(known: Scenario, request: Request, answer: TurnSpec) -> Iterator[Scenario]:
    """A scenario that is served, with as many turns more as the history has."""
    if known.route is not None or known.restart:
        return
    apis = known.apis and tuple(dict.fromkeys((*known.apis, request.api)))
    history = read_history(request.messages).turns
    more = max(0, len(history) - len(known.turns))
    yield replace(known, turns=(*known.turns, *_earlier(history[:more]), answer), apis=apis)
    if not history and request.previous is not None:
        yield replace(known, turns=(*known.turns, answer), apis=apis)


def _beginnings(
    served: ScenarioIndex, request: Request
) -> Iterator[tuple[Match, tuple[TurnSpec, ...]]]:
    """The conditions, each with the turns that came before in the conversation that begins there.

    A conversation begins at the last message of the user with a text; where there is none, at the
    first message.
    """
    users, history = request.user_positions, read_history(request.messages).turns
    last = users[-1] if users else 0
    since = [turn for turn in history if turn.end > last]
    user = _condition(request.last_user.text)
    if user is not None:
        yield from ((match, _earlier(since)) for match in _further(Match(user=user), request))
    without_user = _further(Match(), request)
    yield from ((match, _earlier(history)) for match in without_user if match.conditions)
    if not served.fallbacks:
        yield Match(anything=True), _earlier(history)


def _earlier(history: Sequence[ModelTurn]) -> tuple[TurnSpec, ...]:
    """A turn for each of a history; whatever the model said there."""
    return tuple(TurnSpec(reply=(AutoPart(),)) for _ in history)


def _further(match: Match, request: Request) -> Iterator[Match]:
    """A match with more and more further conditions that the request meets."""
    model, system = _GLOB.sub(r"[\1]", request.model), _condition(request.system)
    tools = tuple(tool.name for tool in request.tools if is_tool_name(tool.name))
    yield match
    if model:
        yield (match := replace(match, model=model))
    if system is not None:
        yield (match := replace(match, system=system))
    if tools:
        yield (match := replace(match, tools=tools[:_MOST_CALLS]))
    yield (match := replace(match, stream=request.stream))
    if body := _plain(request.body):
        yield replace(match, body=body)


def _plain(fields: Any) -> dict[str, Any]:
    """The short values of a JSON object or a form."""
    if not isinstance(fields, Mapping):
        return {}
    plain = {
        name: value
        for name, value in fields.items()
        if isinstance(value, int | float | bool)
        or (isinstance(value, str) and len(value) <= _MOST_BODY)
    }
    return {} if any(text_operators(plain)) else plain


def _condition(text: str) -> TextCondition | None:
    """A condition that a text meets, and few others; None for a text without characters."""
    if not text.strip():
        return None
    if len(text) <= _LONGEST:
        return TextCondition("equals", text)
    part = text[: 16 * _LONGEST].strip()[:_PART].strip()
    return TextCondition("contains", part) if part else None


# The file


def _free_name(served: ScenarioIndex, request: Request) -> str:
    texts = [message.text for message in request.users if message.text]
    name = slug(texts[-1] if texts else "", "request")
    return free_name(name, served.by_name.__contains__)


def _skeleton_of(served: ScenarioIndex, scenario: Scenario, request: Request) -> Skeleton:
    known = served.by_name.get(scenario.name)
    lines = [f"# For a request over {request.api} that no scenario answers."]
    if known is not None:
        lines = [f"# In place of the scenario {known.name}: the request is past its last turn."]
    lines.append("# Change the answer, and the conditions if similar requests are to get it, too.")
    text = "\n".join((*lines, dump(scenario)))
    file = known.file if known is not None and known.file else f"{scenario.name}.yaml"
    return {"skeleton": text, "file": file}


_ANSWER = RouteAnswer(200, (), "json", {"answer": "Write the answer here."})


def route_skeleton(served: ScenarioIndex, request: RouteRequest) -> Skeleton | None:
    """A scenario for a route; None where no scenario can have this route."""
    name = slug(f"{request.method} {request.path}", "route")
    name = free_name(name, served.by_name.__contains__)
    for match in _matches(request):
        route = RouteSpec(request.method, request.path)
        scenario = _load(Scenario(name, (TurnSpec(answer=_ANSWER),), route=route, match=match))
        if scenario is not None and _answers_route(served, scenario, request):
            comment = "# For a route that nothing answers. Change the answer.\n"
            return {"skeleton": comment + dump(scenario), "file": f"{name}.yaml"}
    return None


def _answers_route(served: ScenarioIndex, scenario: Scenario, request: RouteRequest) -> bool:
    try:
        turns = RouteIndex((*served.scenarios, scenario)).select(request)
    except MockLLMError:
        return False
    return [answer[0] for answer in turns] == [scenario]


def _matches(request: RouteRequest) -> Iterator[Match | None]:
    """The conditions, as few as possible first."""
    yield None
    query = [
        (name, TextCondition("equals", value))
        for name, value in request.parameters.items()
        if value and len(value) <= _LONGEST
    ]
    if query:
        yield Match(query=tuple(query))
    fields = _plain(request.fields)
    if fields:
        yield Match(body=fields)
        yield Match(query=tuple(query), body=fields)
