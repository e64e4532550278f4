"""A scenario file for a request whose route no API and no scenario answers. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mockllm.errors import MockLLMError
from mockllm.matching.index import ScenarioIndex
from mockllm.matching.routes import RouteIndex, RouteRequest
from mockllm.recording.drafting.naming import free_name, slug
from mockllm.replay.loading import loads
from mockllm.scenario.dump import dump
from mockllm.scenario.model import Match, RouteAnswer, RouteSpec, Scenario, TextCondition, TurnSpec
from mockllm.ui.skeleton import Skeleton

_LONGEST = 500
_ANSWER = RouteAnswer(200, (), "json", {"answer": "Write the answer here."})


def route_skeleton(served: ScenarioIndex, request: RouteRequest) -> Skeleton | None:
    """A scenario for a route; None where no scenario can have this route."""
    name = slug(f"{request.method} {request.path}", "route")
    name = free_name(name, served.by_name.__contains__)
    for match in _matches(request):
        route = RouteSpec(request.method, request.path)
        draft = Scenario(name, (TurnSpec(answer=_ANSWER),), route=route, match=match)
        try:
            text = dump(draft)
            (scenario,) = loads(text)
            index = RouteIndex((*served.scenarios, scenario))
            turns = index.select(request)
        except (MockLLMError, ValueError):
            continue
        if len(turns) == 1 and turns[0][0] == scenario:
            comment = "# For a route that nothing answers. Change the answer.\n"
            return Skeleton(comment + text, f"{name}.yaml", scenario)
    return None


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


def _plain(fields: Any) -> dict[str, Any]:
    """The short values of a JSON object or a form."""
    if not isinstance(fields, Mapping):
        return {}
    return {
        name: value
        for name, value in fields.items()
        if isinstance(value, int | float | bool)
        or (isinstance(value, str) and len(value) <= _LONGEST)
    }
