"""What a store of shared state can do; `sqlite_store` and `redis_store` do it. Only types."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from mockllm.replay.sessions.entry_packing import Stored
from mockllm.replay.sessions.shared_session import StateOperation, Turn

__all__ = [
    "BOUNDS",
    "MOST_NAMES",
    "Batch",
    "Bounds",
    "Names",
    "Setup",
    "StateStore",
    "StoreError",
    "ended_gap",
]

MOST_NAMES = 65_536
"""How many names of evicted sessions a store remembers at least."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much a store keeps.

    Args:
        sessions: beyond this number, the least recently used session is evicted.
        session_bytes: of a session's journal and answers; the oldest entries are forgotten.
        answers: how many answers of a session can be looked up.
        all_bytes: of all sessions; the largest one forgets its oldest entries. If it has only its
            last ones, the least recently used session is evicted.
    """

    sessions: int = 1000
    session_bytes: int = 48 * 1024 * 1024
    answers: int = 1000
    all_bytes: int = 256 * 1024 * 1024


BOUNDS = Bounds()
"""As large as those of a process that keeps its state itself."""


class StoreError(Exception):
    """A store cannot be reached, or refuses; the message says why."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Journal entries of a session on their way to the store.

    Args:
        entries: as `mockllm.replay.sessions.entry_packing.pack` makes them.
        outcomes: of those whose answer is over; the others will be written again.
        at: when the last of the requests arrived, in seconds of the clock of all processes.
        played: the turns that were played.
        answers: the answers that can be looked up, by id: each is packed by itself.
    """

    session: str
    entries: bytes
    outcomes: Mapping[str, int]
    at: float
    played: tuple[Turn, ...] = ()
    answers: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Setup:
    """A session that was made over HTTP.

    Args:
        version: another one whenever the session is made again.
        body: of the request that made it; empty where the version is known to the reader, or the
            session was evicted.
        gone: whether the session was evicted.
    """

    version: str
    body: bytes = b""
    gone: bool = False


@dataclass(frozen=True, slots=True)
class Names:
    """The names of the sessions of a store, and of those that were evicted, the oldest first."""

    known: tuple[str, ...] = ()
    evicted: tuple[str, ...] = field(default=())


class StateStore(Protocol):
    """Shared state. Every method may raise `StoreError`."""

    @property
    def ahead(self) -> float:
        """By how many seconds the clock of all processes is ahead of this one's."""

    async def open(self, process: str, answers: Mapping[str, Callable[[], Awaitable[str]]]) -> None:
        """Joins the processes that share the state.

        Args:
            process: a name that no other process has.
            answers: what answers the questions of other processes: "flush" writes what this one
                has not written yet, "figures" has its metrics.
        """

    async def close(self) -> None:
        """Leaves the processes; everything was written before."""

    def taken(self, number: int) -> None:
        """Notes that this process has taken an entry, which it will write; it must be fast.

        Args:
            number: of the exchange in this process.
        """

    async def check(self) -> None:
        """Returns if the store can be reached now."""

    async def perform(self, session: str, operation: StateOperation) -> Any:
        """Carries out an operation; of `FindAnswer` the outcome is a packed entry, as bytes."""

    async def note(
        self,
        session: str,
        tokens: Mapping[str, str],
        deleted: Sequence[str],
        unused: Sequence[Turn],
    ) -> None:
        """Keeps the tokens of conversations, deletes answers, gives back turns that were claimed
        and not played."""

    async def append(
        self, batches: Sequence[Batch], lost: Mapping[str, Mapping[str, int]], written: int = 0
    ) -> None:
        """Writes entries.

        Args:
            lost: by session, requests of which only the outcomes are known.
            written: the number of the last exchange of this process that is written then.
        """

    async def flush_others(self) -> tuple[str, ...]:
        """Makes all other processes write what they have; the names of those that do not answer."""

    async def figures_of_others(self) -> tuple[str, ...]:
        """The metrics of the other processes that listen on the same port. Those of other machines
        are read by themselves."""

    async def names(self) -> Names:
        """The names of all sessions."""

    async def load(self, session: str) -> Stored | None:
        """What is known of a session; None where there is none of that name."""

    async def create(self, session: str, setup: Setup | None) -> bool:
        """Makes a session, with a setup or without; whether there was none that is in use."""

    async def delete(self, session: str) -> None:
        """Deletes a session with its setup."""

    async def reset(self, session: str) -> None:
        """Deletes what is known of a session, but not its setup."""

    async def setup(self, session: str, known: str | None) -> Setup | None:
        """The setup of a session; None where it has none.

        Args:
            known: the version that the reader has.
        """


def ended_gap(process: str, at: float, lost: int | None = None) -> str:
    """The text for a process that ended without writing what it had.

    Args:
        at: when that was found, as `time.time` has it.
        lost: how many requests are missing; None: that is not known.
    """
    when = time.strftime("%H:%M:%S", time.localtime(at))
    if lost is None:
        missing = "requests of its last moments may be missing"
    else:
        missing = f"{lost} of the requests that it answered {'is' if lost == 1 else 'are'} missing"
    return f"the server process {process} was found ended at {when} without a word: {missing}"
