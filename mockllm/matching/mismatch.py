"""Why no scenario answered: the nearest ones, each with the first condition that differs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mockllm.core.request import Request
from mockllm.matching.conditions import check_match, last_user_text, shown
from mockllm.matching.index import SCENARIO_HEADER, Catalogue

__all__ = ["NEAREST", "explain"]

NEAREST = 3
"""How many scenarios an error names."""


def explain(catalogue: Catalogue, request: Request, headers: Mapping[str, str]) -> str:
    """Why nothing matched: the nearest scenarios, each with the first condition that differs."""
    near = sorted(_near_misses(catalogue, request, headers), key=lambda miss: miss[0])
    count = len(catalogue.scenarios)
    lines = [
        f"No scenario answers this request (model {request.model!r}, user said "
        f"{shown(last_user_text(request))}); {count} served."
    ]
    if near:
        lines.append("Nearest:")
        lines += [f"- {name}: {problem}" for _, name, problem in near[:NEAREST]]
    lines.append(
        f"Name a scenario with the header {SCENARIO_HEADER} or the model 'mock/<scenario>', add "
        "one whose `match` holds, or serve with --fallback auto."
    )
    return "\n".join(lines)


def _near_misses(
    catalogue: Catalogue, request: Request, headers: Mapping[str, str]
) -> Iterator[tuple[tuple[float, float, str], str, str]]:
    said = _pairs(last_user_text(request)[:2000])
    for scenario in catalogue.scenarios:
        match = scenario.match
        if match is None or match.anything:
            continue
        results = list(check_match(match, request, headers))
        if not scenario.plays_over(request.api):
            problem = f"apis: it does not play over {request.api!r}"
        else:
            problem = next(
                (result for result in results if result is not None),
                "its tool calls are not those in the history of this request",
            )
        wrong = sum(result is not None for result in results) / max(1, len(results))
        wanted = _pairs(match.user.value) if match.user is not None else set()
        likeness = len(wanted & said) / len(wanted) if wanted else 0.0
        yield (wrong, -likeness, scenario.name), scenario.name, problem


def _pairs(text: str) -> set[str]:
    """The pairs of neighbouring letters of a text: how alike two texts are, cheaply."""
    text = text.lower()
    return {text[at : at + 2] for at in range(len(text) - 1)}
