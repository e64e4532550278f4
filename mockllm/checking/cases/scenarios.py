"""A turn of a scenario as a scenario of its own; other quirks and wire settings for it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from mockllm.scenario.model import (
    AnyPart,
    AutoPart,
    Match,
    ReasoningPart,
    RefusalPart,
    Scenario,
    TextPart,
    ToolPart,
    TurnSpec,
    Wire,
    members,
)


def single(scenario: Scenario, position: int = 0) -> Scenario:
    """One turn of a scenario as a scenario of its own, which answers every request."""
    turn = scenario.turns[position]
    name = scenario.name if len(scenario.turns) == 1 else f"{scenario.name}-{position + 1}"
    answer = replace(
        turn,
        request=None,
        attempts=(),
        repeat=False,
        fault=(),
        reply=tuple(map(_without_auto, turn.reply)),
        variants=tuple(
            (api, replace(variant, request=None, attempts=(), repeat=False, fault=()))
            for api, variant in turn.variants
        ),
    )
    return replace(
        scenario,
        name=name,
        seed=scenario.seeded,
        match=Match(anything=True),
        turns=(answer,),
        restart=False,
    )


def _without_auto(part: Any) -> Any:
    """Replaces an answer made from the request by fixed text: a case is the same every time."""
    return TextPart("You said: Hello") if isinstance(part, AutoPart) else part


def with_quirks(scenario: Scenario, quirks: tuple[str, ...] | None) -> Scenario:
    """The scenario with more quirks; None removes those it has."""
    return _rewired(
        scenario,
        lambda wire: replace(wire, quirks=() if quirks is None else (*wire.quirks, *quirks)),
    )


def without_wire(scenario: Scenario) -> Scenario:
    """The scenario without settings of how its events are written."""
    return _rewired(scenario, lambda _: Wire())


def without_quirk(scenario: Scenario, quirk: str) -> Scenario:
    """The scenario without one of its quirks."""
    return _rewired(
        scenario,
        lambda wire: replace(wire, quirks=tuple(name for name in wire.quirks if name != quirk)),
    )


def _rewired(scenario: Scenario, change: Callable[[Wire], Wire]) -> Scenario:
    def turn(spec: TurnSpec) -> TurnSpec:
        wire = change(spec.wire or Wire())
        return replace(
            spec,
            wire=None if wire == Wire() else wire,
            variants=tuple((api, turn(variant)) for api, variant in spec.variants),
        )

    return replace(scenario, turns=tuple(map(turn, scenario.turns)))


def answer_size(parts: Iterable[AnyPart]) -> int:
    """About how many characters an answer has; a call counts for 100."""
    size = 0
    for part in members(parts):
        match part:
            case ToolPart(arguments=arguments):
                size += 100 + len(arguments or "")
            case TextPart(text=text) | ReasoningPart(text=text) | RefusalPart(text=text):
                size += len(text)
    return size
