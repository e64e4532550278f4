"""Which kind of player a server or a session has."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from mockllm.replay.faults.fault_plan import FaultPlan
from mockllm.replay.player import Player
from mockllm.scenario.model import Scenario

if TYPE_CHECKING:
    from mockllm.matching.index import ScenarioIndex

__all__ = ["make_player"]


def make_player(
    scenarios: Iterable[Scenario] | ScenarioIndex,
    *,
    in_order: bool,
    plan: FaultPlan,
    **options: Any,
) -> Player:
    """A player; the modules of the unusual kinds are imported with the first of them.

    Args:
        in_order: whether recordings of the same request are played in their order.
        plan: the faults of its answers.
        options: as of `Player`.
    """
    if plan.choices:
        from mockllm.replay.faulty import FaultyOrderedPlayer, FaultyPlayer

        kind = FaultyOrderedPlayer if in_order else FaultyPlayer
        return kind(scenarios, plan=plan, **options)
    if in_order:
        from mockllm.replay.ordered import OrderedPlayer

        return OrderedPlayer(scenarios, **options)  # type: ignore[arg-type]  # never an index
    return Player(scenarios, **options)
