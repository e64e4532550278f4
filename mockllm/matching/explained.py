"""Every condition of a scenario, and whether a request meets it: for people who look for the reason
why a scenario does not answer. Pure.

The results are those of `conditions` and `select`, so that there is one opinion on them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mockllm.core.request import Request
from mockllm.matching.candidates import Search
from mockllm.matching.conditions import JudgedCondition, judged_match, judged_user_text
from mockllm.matching.history import read_history
from mockllm.matching.index import ScenarioIndex, named_scenario
from mockllm.matching.positions import planned_calls
from mockllm.scenario.model import Scenario


def scenario_conditions(
    scenario: Scenario, request: Request, headers: Mapping[str, str]
) -> list[JudgedCondition]:
    """All that must hold for a scenario to answer a request, if no other one competes.

    A request that names a scenario is answered by that one, and its `match` does not count.
    """
    served = ScenarioIndex((scenario,))
    named = named_scenario(served, request, headers)
    conditions: list[JudgedCondition] = []
    if named is not None:
        note = "" if named == scenario.name else "the request names another scenario"
        conditions.append(_condition("scenario", scenario.name, named, note))
    elif scenario.match is None:
        note = "a scenario without `match` answers only requests that name it"
        conditions.append(_condition("scenario", scenario.name, None, note))
    if scenario.apis:
        met = scenario.plays_over(request.api)
        note = "" if met else f"it does not play over {request.api!r}"
        conditions.append(_condition("apis", ", ".join(scenario.apis), request.api, note))
    if named is None and scenario.match is not None and not scenario.match.anything:
        user = judged_user_text(scenario.match, request)
        judged = judged_match(scenario.match, request, headers, user=user)
        conditions += judged
    if all(condition.met for condition in conditions):
        conditions += _history(scenario, served, request, headers)
    return conditions


def _history(
    scenario: Scenario,
    served: ScenarioIndex,
    request: Request,
    headers: Mapping[str, str],
) -> list[JudgedCondition]:
    """What a scenario whose conditions hold needs of the history."""
    search = Search(served, request, headers, read_history(request.messages).turns)
    begun = search.begins(scenario)
    if begun is None:
        note = "its tool calls are not those in the history of this request"
        expected = _planned(scenario, request)
        sent = [f"{call.name} {call.id}".strip() for m in request.messages for call in m.calls]
        return [_condition("history", expected, _names(sent), note)]
    position, playable = begun
    count = len(scenario.turns)
    note = "" if playable else "the conversation is past its end: add a turn, or `repeat: true`"
    expected = "any" if playable and position >= count else f"at most {count}"
    if playable and position == 0:
        return []
    return [_condition("turns", expected, str(position + 1), note)]


def _planned(scenario: Scenario, request: Request) -> str:
    """The calls of the turns that the history has, with their ids."""
    turns = len(read_history(request.messages).turns)
    names: list[str] = []
    for position in range(min(turns, len(scenario.turns))):
        planned = planned_calls(scenario, position, request.api)
        names += ["any"] if planned is None else [f"{call.name} {call.id}" for call in planned]
    return _names(names)


def _names(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"


def _condition(path: str, expected: str, actual: str | None, note: str) -> JudgedCondition:
    return JudgedCondition(path, expected, actual, (note,) if note else ())
