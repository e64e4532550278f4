"""Plays recordings of equal requests one after the other, in the order of their recording.

A request alone determines which turn answers, so of two recordings of one request the first would
answer each time. When a recorded run is repeated, the second request must get the second recording.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import replace
from functools import cached_property
from typing import Any

from mockllm.errors import MockLLMError, RequestError
from mockllm.matching.index import ScenarioIndex
from mockllm.matching.select import select
from mockllm.replay.call import Call
from mockllm.replay.compilation.tape_player import load
from mockllm.replay.decision_cache import Decision
from mockllm.replay.player import Player
from mockllm.scenario.model import Scenario
from mockllm.scenario.precedence import is_recorded, match_key, precedence
from mockllm.tapes.conversion import captured_of, detected, request_of

__all__ = ["OrderedPlayer"]


class OrderedPlayer(Player):
    """A player that, of several recordings with an equal `match`, plays the first turn that the
    session has not played yet. When all are played, it answers as `Player` does.

    Args:
        scenarios: a recording without a `match` gets that of the scenario that answers its first
            request: that scenario existed before the recording was made.
        options: as of `Player`.
    """

    def __init__(self, scenarios: Iterable[Scenario], **options: Any) -> None:
        super().__init__(_with_matches(tuple(scenarios)), **options)
        self._options = options

    @cached_property
    def _groups(self) -> dict[Hashable, tuple[Player, ...]]:
        """By `match_key`, where several recordings have it: a player for each recording."""
        groups: dict[Hashable, list[Scenario]] = {}
        for scenario in sorted(self.served.scenarios, key=precedence):
            if scenario.route is None and scenario.match is not None and is_recorded(scenario):
                groups.setdefault(match_key(scenario.match), []).append(scenario)
        return {
            key: tuple(Player((one,), **self._options) for one in group)
            for key, group in groups.items()
            if len(group) > 1
        }

    def decide(self, call: Call, strict: bool) -> Decision:
        decision = super().decide(call, strict)
        match = decision.selection.scenario.match
        if decision.selection.continued or match is None:
            return decision
        group = self._groups.get(match_key(match), ())
        for one in group:
            try:
                other = one.decide(call, strict)
            except RequestError:
                continue
            if not call.session.taken(other.selection.scenario, other.selection.index):
                other.lasting = False
                return other
        decision.lasting = decision.lasting and not group
        return decision


def _with_matches(scenarios: tuple[Scenario, ...]) -> tuple[Scenario, ...]:
    served = ScenarioIndex(scenarios)
    return tuple(
        _with_match(one, served) if one.match is None and is_recorded(one) else one
        for one in scenarios
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
        found = select(served, request, {}, sent.protocol.call_prefix)
    except (OSError, MockLLMError):
        return scenario
    return replace(scenario, match=found.scenario.match)
