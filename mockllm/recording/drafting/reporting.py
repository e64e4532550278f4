"""What became of an exchange, for people: lines of the report, descriptions of scenarios. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from mockllm.recording.drafting.answers import DraftedTurn
from mockllm.recording.drafting.conversations import Placement
from mockllm.scenario.model import Scenario
from mockllm.tapes.captured import CUTS, Captured

Outcome = Literal["neutral", "partial", "skipped"]


@dataclass(frozen=True, slots=True)
class Line:
    """The result for one exchange.

    Args:
        outcome: `neutral` (the turn in the YAML is all of the answer), `partial` (only the tape has
            all of it), `skipped` (nothing is written).
        description: which scenario and turn it became, or why it was skipped.
        turn: which of its turns, from 0.
        not_found: why its own request does not get it back from the folder; "" where it does,
            or where that was not looked at.
        lost: whether it was skipped because it could not be written.
        redacted: how many secrets of each kind were replaced, where that was counted.
    """

    source: str
    outcome: Outcome
    description: str
    scenario: str = ""
    turn: int | None = None
    not_found: str = ""
    lost: bool = False
    redacted: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an exchange comes from; only those of a group become one conversation.

    Args:
        group: the file; "" for live traffic, which is one group with what was recorded before.
        stem: what names begin with; "" if the text of the user gives them.
        description: for people, such as `tests/cassettes/test_trip.yaml, exchange 3`.
    """

    group: str = ""
    stem: str = ""
    description: str = ""


LIVE = Origin()
"""The origin of live traffic."""


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
    """The line of the report for an exchange that is the last turn of a scenario."""
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
