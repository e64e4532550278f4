"""Every condition of a scenario or a turn, and whether a request meets it: for people who look for
the reason why a scenario does not answer. Pure.

The results are those of `conditions` and `select`, so that there is one opinion on them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mockllm.core.request import Request
from mockllm.core.text import display_json, shorten
from mockllm.matching.candidates import begins
from mockllm.matching.conditions import (
    JudgedCondition,
    judged_expectations,
    judged_match,
    judged_user_text,
)
from mockllm.matching.history import read_history
from mockllm.matching.index import ScenarioIndex, named_scenario
from mockllm.matching.positions import planned_calls
from mockllm.matching.request_validation import expected_of
from mockllm.matching.select import Selection
from mockllm.protocols.base import WireProtocol
from mockllm.scenario.model import Scenario, TurnSpec

_LONGEST = 10_000
"""Characters of a value that are given."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition, and whether a request meets it.

    Args:
        path: as in the file: `match.user.equals`, `request.results.call_1`.
        expected, actual: as text, shortened.
        note: why it is not met, in a sentence; "" where it is.
    """

    path: str
    met: bool
    expected: str
    actual: str
    note: str = ""


def scenario_conditions(
    scenario: Scenario, request: Request, headers: Mapping[str, str]
) -> list[Condition]:
    """All that must hold for a scenario to answer a request, if no other one competes.

    A request that names a scenario is answered by that one, and its `match` does not count.
    """
    served = ScenarioIndex((scenario,))
    named = named_scenario(served, request, headers)
    conditions: list[Condition] = []
    if named is not None:
        note = "" if named == scenario.name else "the request names another scenario"
        conditions.append(Condition("scenario", not note, scenario.name, named, note))
    elif scenario.match is None:
        note = "a scenario without `match` answers only requests that name it"
        conditions.append(Condition("scenario", False, scenario.name, "", note))
    if scenario.apis:
        met = scenario.plays_over(request.api)
        note = "" if met else f"it does not play over {request.api!r}"
        conditions.append(Condition("apis", met, ", ".join(scenario.apis), request.api, note))
    if named is None and scenario.match is not None and not scenario.match.anything:
        user = judged_user_text(scenario.match, request)
        judged = judged_match(scenario.match, request, headers, user=user)
        conditions += map(shown, judged)
    if all(condition.met for condition in conditions):
        conditions += _history(scenario, served, request, headers)
    return conditions


def _history(
    scenario: Scenario,
    served: ScenarioIndex,
    request: Request,
    headers: Mapping[str, str],
) -> list[Condition]:
    """What a scenario whose conditions hold needs of the history."""
    begun = begins(served, scenario, request, headers)
    if begun is None:
        note = "its tool calls are not those in the history of this request"
        expected = _planned(scenario, request)
        sent = [f"{call.name} {call.id}".strip() for m in request.messages for call in m.calls]
        return [Condition("history", False, expected, _shown(_names(sent)), note)]
    position, playable = begun
    count = len(scenario.turns)
    note = "" if playable else "the conversation is past its end: add a turn, or `repeat: true`"
    expected = "any" if playable and position >= count else f"at most {count}"
    if playable and position == 0:
        return []
    return [Condition("turns", playable, expected, str(position + 1), note)]


def _planned(scenario: Scenario, request: Request) -> str:
    """The calls of the turns that the history has, with their ids."""
    turns = len(read_history(request.messages).turns)
    names: list[str] = []
    for position in range(min(turns, len(scenario.turns))):
        planned = planned_calls(scenario, position, request.api)
        names += ["any"] if planned is None else [f"{call.name} {call.id}" for call in planned]
    return _shown(_names(names))


def shown(condition: JudgedCondition) -> Condition:
    """A judged condition as it is shown."""
    problems = condition.problems
    note = shorten("\n".join(problems), 1000)
    expected, actual = _shown(condition.expected), _shown(condition.actual)
    return Condition(condition.path, not problems, expected, actual, note)


def _shown(value: Any) -> str:
    if value is None:
        return ""
    text = display_json(value)
    return shorten(text, _LONGEST, mark=f"… ({len(text)} characters)")


def _names(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"


def turn_conditions(
    selection: Selection, spec: TurnSpec, request: Request, protocol: WireProtocol
) -> list[Condition]:
    """The conditions of a turn's `request:`; none where it has none."""
    if spec.request is None:
        return []
    expected = expected_of(selection, spec.request, request, protocol)
    judged = judged_expectations(expected.conditions, request, expected.since, expected.calls)
    return list(map(shown, judged))
