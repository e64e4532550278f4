"""The interface of stores of shared state: `sqlite_store` and `redis_store` have it. Only types."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, Protocol

from mockllm.core.record import record
from mockllm.play.replay.sessions.shared_session import SharedSession, StateOperation, Stored, Turn

if TYPE_CHECKING:
    from mockllm.core.quotas import Charge, Taken

MOST_NAMES = 65_536
"""How many names of evicted sessions a store remembers."""


class StoreError(Exception):
    """A store cannot be reached, or refuses; the message says why.

    Args:
        maybe_done: whether it may have carried out what it was asked for.
    """

    def __init__(self, message: str, *, maybe_done: bool = False) -> None:
        super().__init__(message)
        self.maybe_done = maybe_done


@record
class Batch:
    """Journal entries of a session on their way to the store.

    Args:
        at: when the last of the requests arrived, in seconds of the clock of all processes.
        entries: as `mockllm.play.replay.sessions.shared_session.pack` makes them; empty for none.
        outcomes: of those whose answer is over; the others will be written again.
        answers: the ids of the answers among the entries that can be looked up.
        lost: requests of which only the outcomes are known.
        cleared: the marks of the session (see `StateStore.mark`) that are to be removed.
    """

    session: str
    at: float
    entries: bytes = b""
    outcomes: Mapping[str, int] = field(default_factory=dict)
    played: tuple[Turn, ...] = ()
    answers: tuple[str, ...] = ()
    lost: Mapping[str, int] = field(default_factory=dict)
    cleared: tuple[str, ...] = ()


@record
class Totals:
    """The size of a store: the number of its sessions, the bytes of their journals, and those of
    the largest one."""

    sessions: int
    all_bytes: int
    session_bytes: int


@record
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


@record
class Names:
    """The names of the sessions of a store, and of those that were evicted, the oldest first."""

    known: tuple[str, ...] = ()
    evicted: tuple[str, ...] = ()


class StateStore(Protocol):
    """Shared state. Every method is one atomic step, and may raise `StoreError`."""

    @property
    def clock_offset(self) -> float:
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

    async def check(self) -> None:
        """Returns if the store can be reached now."""

    async def perform(self, session: str, operation: StateOperation) -> Any:
        """Carries out an operation; of `FindAnswer` the outcome is the entries of the batch that
        has the answer, as bytes."""

    async def look_up(self, session: str, operations: Sequence[StateOperation]) -> list[Any]:
        """The outcomes of operations that only read, `FindAnswer` and `Count` by 0, in one step."""

    async def keep(self, session: SharedSession) -> None:
        """Keeps the tokens of conversations, deletes answers, gives back turns that were claimed
        and not played."""

    async def take(self, charges: Sequence[Charge], now: float, force: bool) -> Taken:
        """Takes from the buckets of quotas, as `mockllm.core.quotas.take`.

        Args:
            now: by the clock of all processes.
        """

    async def mark(self, session: str, mark: str) -> None:
        """Notes that a process is about to answer requests of a session, whose entries it writes
        later; `append` removes the mark in the step that writes the last of them. So the sessions
        that lose something with a process are those that have a mark of it.

        Args:
            mark: as `mark_name` makes it.
        """

    async def append(self, batches: Sequence[Batch]) -> Totals:
        """Writes entries; how much the store has then."""

    async def flush_others(self) -> tuple[str, ...]:
        """Makes all other processes write what they have; the names of those that do not answer."""

    async def figures_of_others(self) -> tuple[str, ...]:
        """The metrics of the other processes that listen on the same port. Those of other machines
        are read by themselves."""

    # What the bounds need

    async def sizes(self) -> dict[str, int]:
        """The bytes of the journal of each session, the least recently used session first."""

    async def forget_oldest(self, session: str) -> int:
        """Forgets the oldest batch of a session but the outcomes of its entries; how many bytes
        that were. The last batch stays."""

    async def evict(self, session: str) -> None:
        """Deletes what is known of a session, and the body of its setup; its name stays."""

    # Sessions; `evict`, `reset` and `delete` also remove the marks of processes that have ended

    async def names(self) -> Names:
        """The names of all sessions."""

    async def load(self, session: str, after: int = 0) -> Stored | None:
        """The stored session; None where there is none of that name.

        Args:
            after: the number of packed entries; only later ones are read.
        """

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


def ended_gap(process: str, at: float) -> str:
    """The text for a process that ended without a word.

    Args:
        at: when that was found, as `time.time` has it.
    """
    when = time.strftime("%H:%M:%S", time.localtime(at))
    return (
        f"the server process {process} was found ended at {when} without a word: requests of its "
        "last moments may be missing, or how their answers ended"
    )


def mark_name(process: str, number: int) -> str:
    """A mark as one text; no other one of the process has the number."""
    return f"{number} {process}"


def process_of(mark: str) -> str:
    """The process that made a mark."""
    return mark.partition(" ")[2]


def turn_key(turn: Turn) -> str:
    """A turn as one text."""
    scenario, index = turn
    return f"{index} {scenario}"


def read_turn_key(key: str) -> Turn:
    """The turn that `turn_key` wrote."""
    index, _, scenario = key.partition(" ")
    return scenario, int(index)
