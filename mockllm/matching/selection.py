"""The turn that answers a request. Only data may live here."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

from mockllm.core.record import record
from mockllm.matching.conversation import turn_index
from mockllm.scenario.model import Scenario, TurnSpec


@record
class Selection:
    """The turn that answers a request.

    Args:
        scenario: as this conversation goes, where that may differ (`mockllm.matching.branching`).
        position: how many turns of the model came before in the scenario's conversation.
        index: of the turn in the scenario.
        start: the index of the message at which the scenario's conversation begins.
        continued: whether the position comes from the id of an answer of ours, not from the
            history.
        recordings: the recorded turns that answer equally well, in their order, each a scenario and
            the index of its turn; this one is the first of them.
        variation: what of the request the turn has in it; what is kept of an answer is kept by it.
    """

    scenario: Scenario
    position: int
    index: int
    start: int = 0
    continued: bool = False
    recordings: tuple[tuple[Scenario, int], ...] = ()
    variation: tuple[Hashable, ...] = ()

    def with_turn(self, scenario: Scenario, index: int) -> Selection:
        """The same selection with another turn of `recordings`."""
        same = turn_index(scenario, self.position) == index
        position = self.position if same else index
        return replace(self, scenario=scenario, index=index, position=position)

    def playing(self, turn: TurnSpec, variation: Hashable, form: int | None = None) -> Selection:
        """The same selection with a turn that was made for the request, in place of its own.

        Args:
            form: the number of the form that this is; None: it is the same as before.
        """
        scenario, index = self.scenario, self.index
        turns = (*scenario.turns[:index], turn, *scenario.turns[index + 1 :])
        path = scenario.path
        if path and form is not None:
            number, _, step = path[index]
            path = (*path[:index], (number, form, step), *path[index + 1 :])
        changed = replace(scenario, turns=turns, path=path)
        return replace(self, scenario=changed, variation=(*self.variation, variation))

    @property
    def form(self) -> int:
        """The number of the form of the turn that answers (`TurnSpec.forms`)."""
        path = self.scenario.path
        return path[self.index][1] if path else 0

    @property
    def turn(self) -> int:
        """The index of the turn in the scenario as it is written."""
        path = self.scenario.path
        return path[self.index][0] if path else self.index
