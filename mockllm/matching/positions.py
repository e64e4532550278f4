"""The turn at a position of a scenario's conversation, and its tool calls. Pure.

A *position* is the number of turns of the model before in the conversation. It differs from the
index of the turn where a scenario repeats or restarts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mockllm.core.record import record
from mockllm.core.seeded import derive
from mockllm.protocols import PROTOCOLS
from mockllm.scenario.model import (
    AnyPart,
    AutoPart,
    InterleavedPart,
    ParallelPart,
    Scenario,
    ToolPart,
    TurnSpec,
    members,
)

_WITH_CALLS = (ToolPart, ParallelPart, InterleavedPart)


def tool_parts(reply: Sequence[AnyPart]) -> Iterator[ToolPart]:
    """The calls in a reply, in order."""
    return (part for part in members(reply) if isinstance(part, ToolPart))


@record
class PlannedCall:
    """A tool call of a scenario's turn.

    Args:
        malformed: whether a correct client may leave the call out of its history.
        any_id: whether the client may send any id: the scenario allows it (`ids: any`), or the call
            was recorded without one, so clients make one up.
    """

    name: str
    id: str
    malformed: bool = False
    any_id: bool = False


def turn_index(scenario: Scenario, position: int) -> int | None:
    """The index of the turn at a position; None past the end."""
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


def planned_calls(scenario: Scenario, position: int, api: str) -> tuple[PlannedCall, ...] | None:
    """The tool calls of the turn at a position, in order.

    None where the scenario alone does not determine them: the turn is `auto`, or there is no such
    turn.
    """
    spec = turn_at(scenario, position, api)
    if spec is None:
        return None
    has_calls = False
    for part in spec.reply:  # of each turn of each history: most have no calls
        if isinstance(part, AutoPart):
            return None
        has_calls = has_calls or isinstance(part, _WITH_CALLS)
    if not has_calls:
        return ()
    return tuple(
        PlannedCall(
            call.name,
            call.id or call_id(scenario, position, number, api),
            call.malformed,
            any_id=scenario.any_ids or (call.id is None and spec.recorded is not None),
        )
        for number, call in enumerate(tool_parts(spec.reply))
    )


def call_id(scenario: Scenario, position: int, number: int, api: str) -> str:
    """The derived id of a call that has none in the scenario, the same in every process.

    Args:
        number: of the call in its turn, from 0.
    """
    prefix = PROTOCOLS[api].call_prefix
    return prefix + derive(scenario.seeded, scenario.name, position, "call", number)
