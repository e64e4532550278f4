"""Which turn of a scenario is played at a position of a conversation, and which calls it makes.

A *position* is how many turns of the model came before in the conversation; it differs from the
index of the turn where a scenario repeats or restarts. Only pure functions may live here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mockllm.core.seeded import derive
from mockllm.scenario.model import (
    AnyPart,
    AutoPart,
    InterleavedPart,
    ParallelPart,
    Scenario,
    ToolPart,
    TurnSpec,
)

__all__ = ["PlannedCall", "call_id", "planned_calls", "tool_parts", "turn_at", "turn_index"]


def tool_parts(reply: Sequence[AnyPart]) -> Iterator[ToolPart]:
    """The calls in a reply, in order."""
    for part in reply:
        if isinstance(part, ToolPart):
            yield part
        elif isinstance(part, ParallelPart):
            yield from part.calls
        elif isinstance(part, InterleavedPart):
            yield from tool_parts(part.parts)


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """A call that a turn makes. One that is `malformed` a client may rightly leave out. One that
    was recorded without an id of its own has `any_id`: what a client calls it is its business."""

    name: str
    id: str
    malformed: bool = False
    any_id: bool = False


def turn_index(scenario: Scenario, position: int) -> int | None:
    """Which turn is played at a position; None past the end."""
    count = len(scenario.turns)
    if position < count:
        return position
    if scenario.restart:
        return position % count
    return count - 1 if scenario.turns[-1].repeat else None


def turn_at(scenario: Scenario, position: int, api: str) -> TurnSpec | None:
    """The turn at a position, as protocol `api` plays it; None past the end."""
    index = turn_index(scenario, position)
    return None if index is None else scenario.turns[index].for_api(api)


def planned_calls(
    scenario: Scenario, position: int, api: str, prefix: str
) -> tuple[PlannedCall, ...] | None:
    """The calls that the turn at a position makes, in order.

    None where they are not known from the scenario alone: the turn answers by itself (`auto`),
    or there is no such turn.
    """
    spec = turn_at(scenario, position, api)
    if spec is None or any(isinstance(part, AutoPart) for part in spec.reply):
        return None
    return tuple(
        PlannedCall(
            call.name,
            call.id or call_id(scenario, position, number, prefix),
            call.malformed,
            any_id=call.id is None and spec.recorded is not None,
        )
        for number, call in enumerate(tool_parts(spec.reply))
    )


def call_id(scenario: Scenario, position: int, number: int, prefix: str) -> str:
    """The id of a call that has none in the scenario: derived, the same in every process."""
    return prefix + derive(scenario.seeded, scenario.name, position, "call", number)
