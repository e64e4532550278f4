"""Every condition of a scenario or a turn, and whether a request meets it: for people who look for
the reason why a scenario does not answer. Pure.

The results are those of `conditions` and `select`, so that there is one opinion on them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mockllm.core.request import Request
from mockllm.core.text import display_json, shorten
from mockllm.matching.candidates import begins
from mockllm.matching.conditions import (
    Judged,
    check_match,
    check_partial,
    check_text,
    judged_expectations,
    judged_user_text,
    results_sent,
)
from mockllm.matching.history import read_history
from mockllm.matching.index import ScenarioIndex
from mockllm.matching.naming import named_scenario
from mockllm.matching.positions import planned_calls
from mockllm.matching.request_validation import Expected, expected_of
from mockllm.matching.select import Selection
from mockllm.protocols.base import WireProtocol
from mockllm.scenario.model import Expect, Match, Scenario, TextCondition, TurnSpec

__all__ = ["Condition", "scenario_conditions", "turn_conditions"]

_LONGEST = 10_000
"""Characters of a value that are given."""

_OPERATORS = {"contains": "", "equals": ".equals", "regex": ".regex"}


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
    scenario: Scenario, request: Request, headers: Mapping[str, str], prefix: str
) -> list[Condition]:
    """All that must hold for a scenario to answer a request, if no other one competes.

    A request that names a scenario is answered by that one, and its `match` does not count.

    Args:
        headers: of the request, names in lower case.
        prefix: of derived call ids in the request's protocol.
    """
    served = ScenarioIndex((scenario,))
    named = named_scenario(served, request, headers)
    found: list[Condition] = []
    if named is not None:
        note = "" if named == scenario.name else "the request names another scenario"
        found.append(Condition("scenario", not note, scenario.name, named, note))
    elif scenario.match is None:
        note = "a scenario without `match` answers only requests that name it"
        found.append(Condition("scenario", False, scenario.name, "", note))
    if scenario.apis:
        met = scenario.plays_over(request.api)
        note = "" if met else f"it does not play over {request.api!r}"
        found.append(Condition("apis", met, ", ".join(scenario.apis), request.api, note))
    if named is None and scenario.match is not None and not scenario.match.anything:
        found += _match_conditions(scenario.match, request, headers)
    if all(one.met for one in found):
        found += _history(scenario, served, request, headers, prefix)
    return found


def _history(
    scenario: Scenario,
    served: ScenarioIndex,
    request: Request,
    headers: Mapping[str, str],
    prefix: str,
) -> list[Condition]:
    """What a scenario whose conditions hold needs of the history."""
    begun = begins(served, scenario, request, headers, prefix)
    if begun is None:
        note = "its tool calls are not those in the history of this request"
        expected = _planned(scenario, request, prefix)
        sent = [f"{call.name} {call.id}".strip() for m in request.messages for call in m.calls]
        return [Condition("history", False, expected, _shown(_names(sent)), note)]
    position, playable = begun
    count = len(scenario.turns)
    note = "" if playable else "the conversation is past its end: add a turn, or `repeat: true`"
    expected = "any" if playable and position >= count else f"at most {count}"
    if playable and position == 0:
        return []
    return [Condition("turns", playable, expected, str(position + 1), note)]


def _planned(scenario: Scenario, request: Request, prefix: str) -> str:
    """The calls of the turns that the history has, with their ids."""
    turns = len(read_history(request.messages).turns)
    found: list[str] = []
    for position in range(min(turns, len(scenario.turns))):
        planned = planned_calls(scenario, position, request.api, prefix)
        found += ["any"] if planned is None else [f"{one.name} {one.id}" for one in planned]
    return _shown(_names(found))


# `match:`


def _match_conditions(
    match: Match, request: Request, headers: Mapping[str, str]
) -> Iterator[Condition]:
    """The conditions in the order in which `check_match` judges them."""
    user = judged_user_text(match, request)
    results = iter(check_match(match, request, headers, user=""))
    if match.user is not None:
        problem = check_text("match.user: the last user message", match.user, user)
        yield _text("match.user", match.user, user, problem)
    if match.model is not None:
        yield _judged("match.model", match.model, request.model, next(results))
    if match.system is not None:
        yield _text("match.system", match.system, request.system, next(results))
    offered = _names([tool.name for tool in request.tools])
    for name in match.tools:
        yield _judged("match.tools", name, offered, next(results))
    for name, condition in match.headers:
        value = headers.get(name)
        yield _text(f"match.headers.{name}", condition, value, next(results))
    if match.body is not None:
        problem = next(results)
        yield from _body("match.body", match.body, request.body, problem)
    if match.stream is not None:
        yield _judged("match.stream", match.stream, request.stream, next(results, None))


def _body(path: str, expected: Any, actual: Any, problem: str | None) -> Iterator[Condition]:
    """The conditions on a body, one for each of the fields that are expected at its top."""
    if not isinstance(expected, Mapping) or not isinstance(actual, Mapping) or not expected:
        yield _judged(path, expected, actual, problem)
        return
    for key, value in expected.items():
        one = check_partial(f"{path}: body", {key: value}, actual)
        yield _judged(f"{path}.{key}", value, actual.get(key), one)


def _judged(path: str, expected: Any, actual: Any, problem: str | None) -> Condition:
    return Condition(path, problem is None, _shown(expected), _shown(actual), _note(problem))


def _text(path: str, condition: TextCondition, text: str | None, problem: str | None) -> Condition:
    path += _OPERATORS[condition.op]
    return _judged(path, condition.value, "" if text is None else text, problem)


def _note(problem: str | None) -> str:
    return "" if problem is None else shorten(problem, 1000)


def _shown(value: Any) -> str:
    if value is None:
        return ""
    text = display_json(value)
    return shorten(text, _LONGEST, mark=f"… ({len(text)} characters)")


def _names(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"


# `request:` of a turn


def turn_conditions(
    selection: Selection, spec: TurnSpec, request: Request, protocol: WireProtocol
) -> list[Condition]:
    """The conditions of a turn's `request:`; none where it has none."""
    if spec.request is None:
        return []
    expected = expected_of(selection, spec.request, request, protocol)
    return [
        one
        for judged in judged_expectations(
            expected.conditions, request, expected.since, expected.calls
        )
        for one in _turn_condition(judged, expected, request)
    ]


def _turn_condition(judged: Judged, expected: Expected, request: Request) -> Iterator[Condition]:
    path, problems = f"request.{judged.path}", judged.problems
    problem = "\n".join(problems) if problems else None
    conditions: Expect = expected.conditions
    match judged.path.partition(".")[0]:
        case "results":
            sent = results_sent(expected.since, expected.calls).get(judged.key)
            condition = dict(conditions.results)[judged.key]
            text = "" if sent is None else sent.text
            if condition.text is None:
                yield _judged(path, "an error", text, problem)
            else:
                yield _text(path, condition.text, text, problem)
        case "offers":
            yield _judged(path, judged.key, _names([t.name for t in request.tools]), problem)
        case "tool_choice":
            yield _judged(path, conditions.tool_choice, request.tool_choice, problem)
        case "user":
            assert conditions.user is not None
            yield _text(path, conditions.user, judged.key, problem)
        case "body":
            yield from _body(path, conditions.body, request.body, problem)
        case _:
            yield _judged(path, conditions.schema, dict(request.body), problem)
