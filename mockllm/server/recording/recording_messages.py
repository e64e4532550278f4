"""The messages between a recorder and its job. Only data; all of it can be pickled."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mockllm.recording.drafting.drafts import Line, MatchRule
from mockllm.redaction.redact import Rules
from mockllm.scenario.model import Scenario
from mockllm.tapes.captured import Captured

__all__ = [
    "Add",
    "Begin",
    "Consumed",
    "Drop",
    "End",
    "Reported",
    "Saved",
    "ScenariosWritten",
    "Setup",
    "Waiting",
]


@dataclass(frozen=True, slots=True)
class Setup:
    """What a job records into, and how.

    Args:
        folder: of the scenarios.
        rules: what is secret.
        match: the conditions of the scenarios.
        overwrite: new conversations replace earlier ones with the same opening.
        reserved: names of scenarios that are elsewhere.
        sends_scenarios: whether `ScenariosWritten` is of use.
    """

    folder: Path
    rules: Rules
    match: MatchRule
    overwrite: bool
    reserved: frozenset[str]
    sends_scenarios: bool = True


# Messages to the job. `key` is the number of an exchange.


@dataclass(frozen=True, slots=True)
class Begin:
    """An answer begins; `head` has no chunks."""

    key: int
    head: Captured


@dataclass(frozen=True, slots=True)
class Add:
    """Chunks of answers, each with the key of its exchange."""

    chunks: tuple[tuple[int, int, bytes], ...]
    """Key, microseconds after the request, data."""


@dataclass(frozen=True, slots=True)
class End:
    """An answer is over; `whole` has all of the exchange but its chunks."""

    key: int
    whole: Captured


@dataclass(frozen=True, slots=True)
class Drop:
    """An exchange is not recorded."""

    key: int


# Messages of the job


@dataclass(frozen=True, slots=True)
class Consumed:
    """Chunks have been searched.

    Args:
        sizes: in bytes, by the key of the exchange.
        seconds: that it took.
    """

    sizes: dict[int, int]
    seconds: float


@dataclass(frozen=True, slots=True)
class Saved:
    """An exchange cannot be lost any more, or will not be recorded."""

    key: int


@dataclass(frozen=True, slots=True)
class Reported:
    """Lines about exchanges."""

    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class ScenariosWritten:
    """Scenarios have been written."""

    scenarios: tuple[Scenario, ...]


@dataclass(frozen=True, slots=True)
class Waiting:
    """So many exchanges are on the disk and not scenarios yet: more than a second's work, or, while
    the job is being closed, any number."""

    count: int
    closing: bool
