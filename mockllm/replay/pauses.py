"""Whether scenarios are played with pauses."""

from __future__ import annotations

from collections.abc import Iterable

from mockllm.scenario.model import AnyPart, PausePart, Scenario, TurnSpec, members


def has_pauses(scenarios: Iterable[Scenario]) -> bool:
    """Whether any answer of some scenarios has pauses, as written or as it was recorded."""
    return any(_has_pauses(scenario) for scenario in scenarios)


def _has_pauses(scenario: Scenario) -> bool:
    defaults = scenario.defaults
    return bool(defaults.every or defaults.ttft) or any(map(_turn_has, scenario.turns))


def _turn_has(turn: TurnSpec) -> bool:
    timing = turn.timing
    return (
        next(turn.recordings(), None) is not None
        or (timing is not None and bool(timing.every or timing.ttft or any(timing.at)))
        or any(map(_part_has, members(turn.reply)))
        or any(map(_turn_has, (*turn.attempts, *(variant for _, variant in turn.variants))))
    )


def _part_has(part: AnyPart) -> bool:
    return bool(part.duration if isinstance(part, PausePart) else getattr(part, "every", None))
