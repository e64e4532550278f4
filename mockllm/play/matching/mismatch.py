"""Why no scenario answers a request: the nearest ones, and what of them does not hold. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import itemgetter

from mockllm.core.request import Request
from mockllm.core.text import display
from mockllm.play.matching.conditions import (
    JudgedCondition,
    first_problem,
    judged_match,
    judged_message,
)
from mockllm.play.matching.index import SCENARIO_HEADER, ScenarioIndex, named_scenario
from mockllm.play.matching.sent_files import describe_files
from mockllm.scenario.model import Match, Scenario, expected_texts

NEAREST = 3
"""How many scenarios a message names."""

_MOST_COMPARED = 2000
"""Characters of a text that are compared."""


def explain_mismatch(served: ScenarioIndex, request: Request, headers: Mapping[str, str]) -> str:
    """The message for a request that no scenario answers."""
    count = len(served.scenarios)
    text, files = request.last_user.text, request.last_user.files
    said = [f"user said {display(text)}"] if text or not files else []
    sent = [f"user sent {describe_files(files)}"] if files else []
    what = ", ".join([f"model {request.model!r}", *said, *sent])
    lines = [f"No scenario answers this request ({what}); {count} served."]
    lines += nearest_scenarios(served, request, headers)
    lines.append(
        f"Name a scenario with the header {SCENARIO_HEADER} or the model 'mock/<scenario>', add "
        "one whose `match` holds, or serve with --fallback auto."
    )
    return "\n".join(lines)


def nearest_scenarios(
    served: ScenarioIndex, request: Request, headers: Mapping[str, str]
) -> list[str]:
    """Lines with the nearest scenarios that have a `match`; empty where none has one."""
    lines = [
        f"- {scenario.name}: {_first_problem(scenario, judged, request)}"
        for scenario, judged in near_misses(served, request, headers, NEAREST)
    ]
    return ["Nearest:", *lines] if lines else []


def near_misses(
    served: ScenarioIndex, request: Request, headers: Mapping[str, str], most: int
) -> list[tuple[Scenario, list[JudgedCondition]]]:
    """The scenarios that are nearest to a request, with the conditions of their `match`.

    They are those with the smallest share of failed conditions; among equals, those whose
    `match.user` shares most pairs of letters with the last user message. For a request that names
    a scenario only the likeness of the name counts.
    """
    named = named_scenario(served, request, headers)
    sent = _letter_pairs(request.last_user.text if named is None else named)
    ranked = []
    for scenario in served.scenarios:
        match = scenario.match or Match()
        if match.anything or scenario.route or (named is None and scenario.match is None):
            continue
        judged = []
        if named is None:
            message = judged_message(match, request, headers)
            judged = list(judged_match(match, request, headers, message=message))
        failed = sum(not condition.met for condition in judged) / max(1, len(judged))
        expected = scenario.name if named is not None else " ".join(expected_texts(match.user))
        pairs = _letter_pairs(expected)
        rank = (failed, -len(pairs & sent) / max(1, len(pairs)), scenario.name)
        ranked.append((rank, scenario, judged))
    ranked.sort(key=itemgetter(0))
    return [(scenario, judged) for _, scenario, judged in ranked[:most]]


def _first_problem(scenario: Scenario, judged: Iterable[JudgedCondition], request: Request) -> str:
    if not scenario.plays_over(request.api):
        return f"apis: it does not play over {request.api!r}"
    unmet = "its tool calls are not those in the history of this request"
    return first_problem(judged) or unmet


def _letter_pairs(text: str) -> set[str]:
    """The pairs of neighbouring letters of a text, a cheap measure of similarity."""
    text = text[:_MOST_COMPARED].lower()
    return {text[at : at + 2] for at in range(len(text) - 1)}
