"""A session while it is judged, and its violations. Only data may live here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from mockllm.checking.conversations.session_history import SessionHistory
from mockllm.replay.sessions.session import Exchange


@dataclass(frozen=True, slots=True)
class Violation:
    """One invariant that was broken.

    Args:
        exchange: the number of the request that shows it.
        location: in a conversation. Every later request repeats the history, so equal violations at
            one location are reported once.
    """

    invariant: str
    exchange: int | None
    message: str
    location: int = field(default=0, compare=False, repr=False)

    def __str__(self) -> str:
        where = "" if self.exchange is None else f", request {self.exchange}"
        return f"{self.invariant}{where}: {self.message}"


@dataclass(slots=True)
class JudgedSession:
    """A session while it is judged.

    Args:
        depth: how many requests in a row a client may make for a model that never stops.
    """

    journal: tuple[Exchange, ...]
    history: SessionHistory
    depth: int
    mistakes: list[Violation]
    reported: set[int] = field(default_factory=set)


Violations = Iterator[Violation]
