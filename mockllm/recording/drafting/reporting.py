"""What a person reads of an exchange: the line of the report, the description of the scenario."""

from __future__ import annotations

from collections.abc import Sequence

from mockllm.recording.drafting.answers import DraftedTurn
from mockllm.recording.drafting.lines import Line, Origin, Outcome
from mockllm.recording.drafting.placement import Placement
from mockllm.scenario.model import Scenario
from mockllm.tapes.captured import CUTS, Captured


def described(exchange: Captured, origin: Origin) -> str:
    """The description of a scenario that begins with an exchange."""
    host = f" from {exchange.host}" if exchange.host else ""
    where = f" ({origin.description})" if origin.description else ""
    return f"Recorded{host}{where}."


def line_of(
    exchange: Captured,
    answer: DraftedTurn,
    placement: Placement,
    scenario: Scenario,
    left_out: Sequence[str] = (),
) -> Line:
    """The line of the report for an exchange that is the last turn of a scenario.

    Args:
        left_out: what the written turn lacks of the answer.
    """
    notes = [f"turn {len(scenario.turns)} of {scenario.name}"]
    if answer.problem:
        notes.append(f"only the tape has all of it ({answer.problem})")
    notes += [f"only the tape has {what}" for what in left_out]
    if exchange.status >= 400:
        notes.append(f"HTTP {exchange.status}")
    if exchange.cut:
        notes.append(CUTS[exchange.cut])
    if placement.kind == "retry":
        notes.append("after a try that failed")
    if placement.kind == "branch" and placement.conversation is not None:
        notes.append(f"begins as {placement.conversation.scenario.name} does")
    recorded = scenario.turns[-1].recorded
    if scenario.match is None and recorded is not None and recorded.request:
        notes.append("only its own request finds it")
    elif scenario.match is None:
        notes.append("plays only when it is named")
    if recorded is not None and recorded.order:
        notes.append(f"answers the same request the {_nth(recorded.order + 1)} time")
    index = len(scenario.turns) - 1
    outcome: Outcome = "partial" if left_out or answer.problem else "neutral"
    return Line(exchange.source, outcome, "; ".join(notes), scenario.name, index)


def _nth(number: int) -> str:
    last = (
        "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    )
    return f"{number}{last}"
