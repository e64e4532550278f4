"""Explains why no scenario answers: the nearest ones, each with its first failed condition."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mockllm.core.request import Request
from mockllm.core.text import display
from mockllm.matching.conditions import check_match, judged_user_text, last_user_text
from mockllm.matching.index import SCENARIO_HEADER, ScenarioIndex

NEAREST = 3
"""How many scenarios a message names."""


def explain_mismatch(served: ScenarioIndex, request: Request, headers: Mapping[str, str]) -> str:
    """The message for a request that no scenario answers."""
    count = len(served.scenarios)
    lines = [
        f"No scenario answers this request (model {request.model!r}, user said "
        f"{display(last_user_text(request))}); {count} served."
    ]
    lines += nearest_scenarios(served, request, headers)
    lines.append(
        f"Name a scenario with the header {SCENARIO_HEADER} or the model 'mock/<scenario>', add "
        "one whose `match` holds, or serve with --fallback auto."
    )
    return "\n".join(lines)


def nearest_scenarios(
    served: ScenarioIndex, request: Request, headers: Mapping[str, str]
) -> list[str]:
    """Lines with the nearest scenarios that have a `match`; empty where none has one.

    The nearest are those with the smallest share of failed conditions; among equals, those whose
    `match.user` shares most pairs of letters with the last user message.
    """
    near = sorted(_near_misses(served, request, headers), key=lambda miss: miss[0])
    lines = [f"- {name}: {problem}" for _, name, problem in near[:NEAREST]]
    return ["Nearest:", *lines] if lines else []


def _near_misses(
    served: ScenarioIndex, request: Request, headers: Mapping[str, str]
) -> Iterator[tuple[tuple[float, float, str], str, str]]:
    sent = letter_pairs(last_user_text(request)[:2000])
    for scenario in served.scenarios:
        match = scenario.match
        if match is None or match.anything or scenario.route is not None:
            continue
        user = judged_user_text(match, request)
        results = list(check_match(match, request, headers, user=user))
        if not scenario.plays_over(request.api):
            problem = f"apis: it does not play over {request.api!r}"
        else:
            problem = next(
                (result for result in results if result is not None),
                "its tool calls are not those in the history of this request",
            )
        failed = sum(result is not None for result in results) / max(1, len(results))
        expected = letter_pairs(match.user.value) if match.user is not None else set()
        similarity = len(expected & sent) / len(expected) if expected else 0.0
        yield (failed, -similarity, scenario.name), scenario.name, problem


def letter_pairs(text: str) -> set[str]:
    """The pairs of neighbouring letters of a text, a cheap measure of similarity."""
    text = text.lower()
    return {text[at : at + 2] for at in range(len(text) - 1)}
