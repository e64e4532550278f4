"""Where an exchange comes from, and what became of it: a line of the report. Only data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Outcome = Literal["neutral", "partial", "skipped"]


@dataclass(frozen=True, slots=True)
class Line:
    """The result for one exchange: a line of the report.

    Args:
        source: where the exchange was read from.
        outcome: `neutral` (the turn in the YAML is all of the answer), `partial` (only the tape has
            all of it), `skipped` (nothing is written).
        description: which scenario and turn it became, or why it was skipped.
        scenario: the name of its scenario; "" where it has none.
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
    """Where an exchange comes from.

    Exchanges are joined to a conversation, or to the tries of one turn, only within a group.

    Args:
        group: the file; "" for live traffic, which is one group with what was recorded before.
        stem: the name of the file without its ending, from which those of the scenario and of its
            files are made; "" if the text of the user gives them.
        description: for people, such as `tests/cassettes/test_trip.yaml, exchange 3`; "" if there
            is none.
    """

    group: str = ""
    stem: str = ""
    description: str = ""


LIVE = Origin()
"""The origin of live traffic."""
