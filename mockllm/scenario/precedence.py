"""Recorded conversations that begin alike: what the user says later tells them apart.

Two recordings may begin with the same words and get different answers. A scenario that a
person wrote would need a further `match` condition then; of recorded ones the first, by the
order of `precedence`, answers what they have in common, and each what only it has been asked.
"""

from __future__ import annotations

import json
from collections.abc import Hashable

from mockllm.scenario.model import Match, Scenario, TextCondition

__all__ = ["user_condition", "is_recorded", "match_key", "precedence", "differ_later"]


def precedence(scenario: Scenario) -> tuple[int, str]:
    """Sorts scenarios that begin alike: `hello`, `hello-2`, ..., `hello-10`."""
    return len(scenario.name), scenario.name


def user_condition(scenario: Scenario, index: int) -> TextCondition | None:
    """What the user must have said right before a turn, where that is written."""
    request = scenario.turns[index].request
    return request.user if request is not None else None


def is_recorded(scenario: Scenario) -> bool:
    """Whether any turn of it was recorded."""
    return any(turn.recorded is not None for turn in scenario.turns)


def differ_later(one: Scenario, other: Scenario) -> bool:
    """Whether of two scenarios with the same `match` the later one is recorded, and goes on
    where the first does not, or otherwise than the first does."""
    first, second = sorted((one, other), key=precedence)
    if not is_recorded(second):
        return False
    for index in range(1, len(second.turns)):
        if index >= len(first.turns):
            return True
        here, there = user_condition(first, index), user_condition(second, index)
        if here is not None and there is not None and here != there:
            return True
    return False


def match_key(match: Match) -> Hashable:
    """A key that two matches share when the same requests meet their conditions."""
    return (
        match.anything,
        match.model,
        match.user,
        match.system,
        frozenset(match.tools),
        frozenset(match.headers),
        None if match.body is None else json.dumps(match.body, sort_keys=True),
    )
