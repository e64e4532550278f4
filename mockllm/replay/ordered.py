"""Plays recordings of equal requests one after the other, in the order of their recording.

A request alone determines which turn answers, so of two recordings of one request the first would
answer each time. When a recorded run is repeated, the second request must get the second recording.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import replace
from functools import cached_property

from mockllm.errors import MockLLMError, RequestError
from mockllm.matching.index import ScenarioIndex
from mockllm.matching.select import select
from mockllm.replay.call import ApiCall
from mockllm.replay.compilation.tape_player import load
from mockllm.replay.decision_cache import Decision
from mockllm.scenario.model import Scenario
from mockllm.scenario.precedence import is_recorded, match_key, precedence
from mockllm.tapes.conversion import captured_of, detected, request_of

_Decide = Callable[[ApiCall, bool], Decision]


class RecordedOrder:
    """Chooses, of several recordings with an equal `match`, the first turn that the session has not
    played yet. When all are played, the decision stays as it was."""

    def __init__(
        self, scenarios: Iterable[Scenario], decider: Callable[[Scenario], _Decide]
    ) -> None:
        self._scenarios = tuple(scenarios)
        self._decider = decider

    @cached_property
    def _groups(self) -> dict[Hashable, tuple[_Decide, ...]]:
        """By `match_key`, where several recordings have it: what decides with each of them."""
        groups: dict[Hashable, list[Scenario]] = {}
        for scenario in sorted(self._scenarios, key=precedence):
            if scenario.route is None and scenario.match is not None and is_recorded(scenario):
                groups.setdefault(match_key(scenario.match), []).append(scenario)
        return {
            key: tuple(map(self._decider, group)) for key, group in groups.items() if len(group) > 1
        }

    def next_of(self, decision: Decision, call: ApiCall, strict: bool) -> Decision:
        """The decision for the next of the recordings that compete with the one of a decision."""
        match = decision.selection.scenario.match
        if decision.selection.continued or match is None:
            return decision
        group = self._groups.get(match_key(match), ())
        for decide in group:
            try:
                other = decide(call, strict)
            except RequestError:
                continue
            if not call.session.is_played(other.selection.scenario, other.selection.index):
                other.lasting = False
                return other
        decision.lasting = decision.lasting and not group
        return decision


def with_matches(scenarios: Iterable[Scenario]) -> tuple[Scenario, ...]:
    """Scenarios whose recordings all have a `match`: one without gets that of the scenario that
    answers its first request, which existed before the recording was made."""
    scenarios = tuple(scenarios)
    served = ScenarioIndex(scenarios)
    return tuple(
        _with_match(scenario, served)
        if scenario.match is None and is_recorded(scenario)
        else scenario
        for scenario in scenarios
    )


def _with_match(scenario: Scenario, served: ScenarioIndex) -> Scenario:
    """A recording with the match of the scenario that answers its first request, if one does."""
    recorded = next(turn.recorded for turn in scenario.turns if turn.recorded is not None)
    try:
        captured = captured_of(load(recorded))
        sent = detected(captured)
        if sent.protocol is None:
            return scenario
        request = request_of(captured, sent)
        found = select(served, request, {})
    except (OSError, MockLLMError):
        return scenario
    return replace(scenario, match=found.scenario.match)
