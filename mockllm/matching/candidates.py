"""The scenarios that may answer a request, and where their conversations begin in it. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mockllm.core.request import Request
from mockllm.matching.agreement import conditions_hold, history_agrees
from mockllm.matching.history import ModelTurn, read_history
from mockllm.matching.index import ScenarioIndex
from mockllm.matching.naming import named_scenario
from mockllm.matching.positions import turn_index
from mockllm.matching.same_request import named_position
from mockllm.scenario.model import Scenario


@dataclass(frozen=True, slots=True)
class Candidate:
    """A scenario that may answer.

    Args:
        start, position: as of `Selection`.
        playable: whether it has a turn at the position.
    """

    scenario: Scenario
    start: int
    position: int
    playable: bool

    @property
    def rank(self) -> tuple[int, int]:
        """The highest rank answers: the most conditions, then the latest beginning."""
        match = self.scenario.match
        return (match.conditions if match is not None else 0, self.start)


def candidates(
    served: ScenarioIndex,
    request: Request,
    headers: Mapping[str, str],
    history: Sequence[ModelTurn],
    prefix: str,
) -> Iterator[Candidate]:
    """Every scenario that matches and whose tool calls are those in the history, each once with
    its latest beginning. Scenarios with `match: any` are not among them."""
    ends = [turn.end for turn in history]
    seen: set[str] = set()
    for start in range(len(request.messages) - 1, -1, -1):
        message = request.messages[start]
        if message.role != "user":
            continue
        for scenario in served.by_user_text(message.text):
            if scenario.name in seen or not scenario.plays_over(request.api):
                continue
            after = history[bisect_right(ends, start) :]
            if not conditions_hold(scenario, request, headers) or not history_agrees(
                scenario, after, request.api, prefix
            ):
                continue
            seen.add(scenario.name)
            playable = turn_index(scenario, len(after)) is not None
            yield Candidate(scenario, start, len(after), playable)
    for scenario in served.by_model(request.model):
        candidate = candidate_without_user(scenario, request, headers, history, prefix)
        if candidate is not None:
            yield candidate


def candidate_without_user(
    scenario: Scenario,
    request: Request,
    headers: Mapping[str, str],
    history: Sequence[ModelTurn],
    prefix: str,
) -> Candidate | None:
    """A scenario without `match.user`, if it matches.

    It begins with the history or, where its tool calls are others, at the latest user message
    after which they agree.
    """
    if not scenario.plays_over(request.api) or not conditions_hold(scenario, request, headers):
        return None
    starts = [index for index, message in enumerate(request.messages) if message.role == "user"]
    past_end: Candidate | None = None
    for start in [0, *reversed(starts)]:
        after = [turn for turn in history if turn.end >= start]
        if history_agrees(scenario, after, request.api, prefix):
            candidate = Candidate(scenario, start, len(after), True)
            if turn_index(scenario, len(after)) is not None:
                return candidate
            past_end = past_end or Candidate(scenario, start, len(after), False)
    return past_end


def begins(
    served: ScenarioIndex,
    scenario: Scenario,
    request: Request,
    headers: Mapping[str, str],
    prefix: str,
) -> tuple[int, bool] | None:
    """The position at which a scenario would answer a request, and whether it has a turn there;
    None where its conditions do not hold, or its tool calls are not those in the history.

    Args:
        served: the scenario alone.
    """
    history = read_history(request.messages).turns
    if named_scenario(served, request, headers) == scenario.name:
        position = named_position(scenario, request, history, prefix)[1]
        return position, turn_index(scenario, position) is not None
    begun = list(candidates(served, request, headers, history, prefix))
    if scenario in served.fallbacks:
        last = candidate_without_user(scenario, request, headers, history, prefix)
        begun += [] if last is None else [last]
    if not begun:
        return None
    best = max(begun, key=lambda candidate: (candidate.playable, candidate.rank))
    return best.position, best.playable
