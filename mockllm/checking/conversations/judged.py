"""A session while it is judged, and its violations. Only data may live here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from mockllm.checking.conversations.call_results import Mistake
from mockllm.checking.conversations.session_history import SessionHistory
from mockllm.replay.sessions.session import Exchange


@dataclass(frozen=True, slots=True)
class Violation:
    """One invariant that was broken."""

    invariant: str
    exchange: int | None
    message: str

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
    mistakes: list[Mistake]
    reported: set[int] = field(default_factory=set)


LocatedViolations = Iterator[tuple[int, Violation]]
"""Violations, each with its location in a conversation. Every later request repeats the history, so
equal violations at one location are reported once."""
