"""Players of servers and sessions whose answers have faults by a plan."""

from __future__ import annotations

from typing import Any

from mockllm.errors import RequestError
from mockllm.replay.body import parse_object
from mockllm.replay.call import Call
from mockllm.replay.compilation.http_answer import HttpAnswer
from mockllm.replay.faults.broken_answer import broken, call_names, circumstances
from mockllm.replay.faults.fault_plan import FaultPlan
from mockllm.replay.ordered import OrderedPlayer
from mockllm.replay.player import Player

__all__ = ["FaultyOrderedPlayer", "FaultyPlayer"]


class FaultyPlayer(Player):
    """A player that breaks answers by a plan; one that has faults of its own keeps these alone.

    Args:
        plan: which answers have which faults.
        options: as of `Player`.
    """

    def __init__(self, *args: Any, plan: FaultPlan, **options: Any) -> None:
        super().__init__(*args, **options)
        self.plan = plan

    def play(self, call: Call) -> HttpAnswer:
        answer = super().play(call)
        faults = self.plan.draw(call.session.name, call.session.requests_before + 1)
        if not faults or answer.fault is not None or call.exchange.outcome not in _PLAYED:
            return answer
        protocol = call.protocol
        try:
            request = protocol.parse(parse_object(call.exchange.body), call.target, False)
        except RequestError:
            request = None
        scenario = self.served.by_name.get(call.exchange.scenario or "")
        names = {}
        if scenario is not None and call.exchange.position is not None:
            names = call_names(scenario, call.exchange.position, protocol)
        around = circumstances(protocol, request, call.path, call_names=names)
        return broken(answer, faults, around, self.speed)


_PLAYED = ("played", "error")


class FaultyOrderedPlayer(FaultyPlayer, OrderedPlayer):
    """A player of recordings in their order, with faults."""
