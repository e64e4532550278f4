"""Whether scenarios are played with pauses."""

from __future__ import annotations

from collections.abc import Iterable

from mockllm.scenario.model import AnyPart, PausePart, Scenario, Timing, TurnSpec, members


def has_pauses(scenarios: Iterable[Scenario]) -> bool:
    """Whether any answer of some scenarios has pauses, as written or as it was recorded."""
    return any(
        scenario.defaults.every or scenario.defaults.ttft or _has_pauses(inner)
        for scenario in scenarios
        for turn in scenario.turns
        for inner in turn.every()
    )


def _has_pauses(turn: TurnSpec) -> bool:
    timing = turn.timing or Timing()
    return (
        turn.recorded is not None
        or bool(timing.every or timing.ttft or any(timing.at))
        or any(map(_part_has, members(turn.reply)))
    )


def _part_has(part: AnyPart) -> bool:
    return bool(part.duration if isinstance(part, PausePart) else getattr(part, "every", None))
