"""Recordings of the same request, played one after the other as they were made.

Which turn answers is read off the request, so of two recordings of one request the first would
answer each time. Where somebody runs again what was recorded, the second time is the second
recording's.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import replace
from functools import cached_property
from typing import Any

from mockllm.errors import MockLLMError, RequestError
from mockllm.matching.index import Catalogue
from mockllm.matching.select import pick
from mockllm.replay.call import Call
from mockllm.replay.player import Player
from mockllm.replay.request_cache import Decision
from mockllm.replay.tape_player import load
from mockllm.scenario.model import Scenario
from mockllm.scenario.precedence import is_recorded, match_key, precedence
from mockllm.tapes.conversion import captured_of, detected, request_of

__all__ = ["InOrder"]


class InOrder(Player):
    """Answers from recordings; of those that answer a request match_key, with the first turn that
    its session has not played yet. When all are played, the usual one answers.

    Args:
        scenarios: recordings without a `match` get that of the one that their first request
            finds; they were made when that one was there already.
        options: as of `Player`.
    """

    def __init__(self, scenarios: Iterable[Scenario], **options: Any) -> None:
        super().__init__(_matched(tuple(scenarios)), **options)
        self._options = options

    @cached_property
    def _groups(self) -> dict[Hashable, tuple[Player, ...]]:
        """Recordings with the same match, where there are several: each by itself."""
        groups: dict[Hashable, list[Scenario]] = {}
        for scenario in sorted(self.catalogue.scenarios, key=precedence):
            if scenario.match is not None and is_recorded(scenario):
                groups.setdefault(match_key(scenario.match), []).append(scenario)
        return {
            key: tuple(Player((one,), **self._options) for one in group)
            for key, group in groups.items()
            if len(group) > 1
        }

    def decide(self, call: Call, strict: bool) -> Decision:
        decision = super().decide(call, strict)
        match = decision.picked.scenario.match
        if decision.picked.continued or match is None:
            return decision
        group = self._groups.get(match_key(match), ())
        for one in group:
            try:
                other = one.decide(call, strict)
            except RequestError:
                continue
            played = call.session.played.get(other.picked.scenario.name, ())
            if other.picked.index not in played:
                other.lasting = False
                return other
        decision.lasting = decision.lasting and not group
        return decision


def _matched(scenarios: tuple[Scenario, ...]) -> tuple[Scenario, ...]:
    catalogue = Catalogue(scenarios)
    return tuple(
        _as_its_first(one, catalogue) if one.match is None and is_recorded(one) else one
        for one in scenarios
    )


def _as_its_first(scenario: Scenario, catalogue: Catalogue) -> Scenario:
    """The scenario with the match of the one that answers its own first request."""
    recorded = next(turn.recorded for turn in scenario.turns if turn.recorded is not None)
    try:
        captured = captured_of(load(recorded))
        sent = detected(captured)
        if sent.protocol is None:
            return scenario
        request = request_of(captured, sent)
        found = pick(catalogue, request, {}, sent.protocol.call_prefix)
    except (OSError, MockLLMError):
        return scenario
    return replace(scenario, match=found.scenario.match)
