"""A session while it is judged, and its violations. Only data may live here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from mockllm.checking.conversations.round_trips import RoundTrip
from mockllm.checking.conversations.session_history import SessionHistory
from mockllm.replay.sessions.session import Exchange


@dataclass(frozen=True, slots=True)
class Violation:
    """One invariant that was broken.

    Args:
        exchange: the number of the request that shows it.
        location: in its conversation. Every later request repeats the history, so equal violations
            at one location are reported once.
    """

    invariant: str
    exchange: int
    message: str
    location: int = field(default=0, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.invariant}, request {self.exchange}: {self.message}"


def violation(invariant: str, trip: RoundTrip, message: str) -> Violation:
    """A violation in a round trip."""
    return Violation(invariant, trip.step.number, message, trip.location)


@dataclass(slots=True)
class JudgedSession:
    """A session while it is judged.

    Args:
        depth: how many requests in a row a client may make for a model that never stops.
        reported: the numbers of the requests with a violation.
    """

    journal: tuple[Exchange, ...]
    history: SessionHistory
    depth: int
    reported: set[int] = field(default_factory=set)


Violations = Iterator[Violation]
Judge = Callable[[JudgedSession], Violations]
