"""The state that the requests of one process share with other processes."""

from __future__ import annotations

import json
import os
import platform
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mockllm.core.errors import UsageError
from mockllm.play.replay.sessions.exchange import Exchange
from mockllm.play.replay.sessions.shared_session import (
    Count,
    FindAnswer,
    FindConversation,
    SharedSession,
    StateAwayError,
    StateOperation,
    unpack,
)
from mockllm.serve.server.metrics.figures import Figures
from mockllm.serve.server.state.journal_writer import JournalWriter
from mockllm.serve.server.state.store import StateStore, StoreError
from mockllm.wire.protocols import PROTOCOLS

if TYPE_CHECKING:
    from mockllm.core.quotas import Charge, Taken

_REDIS = ("redis://", "rediss://", "valkey://", "valkeys://", "unix://")


def store_of(name: str) -> StateStore:
    """A store that is not open yet.

    Args:
        name: `redis://HOST:PORT/DATABASE`, `valkey://...`, or `sqlite:FILE`.

    Raises:
        UsageError: there is no such store, or its client is not installed.
    """
    if name.startswith("sqlite:") and name != "sqlite:":
        from mockllm.serve.server.state.sqlite_store import SqliteStore

        return SqliteStore(Path(name.removeprefix("sqlite:")))
    if name.startswith(_REDIS):
        from mockllm.serve.server.state.redis_store import RedisStore

        is_valkey = name.startswith("valkey")
        return RedisStore(name.replace("valkey", "redis", 1) if is_valkey else name)
    raise UsageError(
        f"--state {name.partition('://')[0]}: there is no such store; use "
        "redis://HOST:PORT/DATABASE (Valkey or Redis), or sqlite:FILE for processes of one machine"
    )


@contextmanager
def needing(purpose: StateOperation | str | None = None) -> Iterator[None]:
    """For requests that cannot be answered without the store."""
    try:
        yield
    except StoreError as error:
        raise StateAwayError(purpose, str(error), maybe_done=error.maybe_done) from None


class SharedState:
    """State that other server processes share.

    Args:
        figures: the metrics of this process.
        failed: called where a request is not answered because the store is away.
    """

    def __init__(
        self,
        store: StateStore,
        report: Callable[[str], None],
        figures: Callable[[], Figures],
        failed: Callable[[], None],
    ) -> None:
        self.store = store
        self.process = f"{platform.node()}-{os.getpid()}-{secrets.token_hex(3)}"
        self.journal = JournalWriter(store, self.process, report)
        self._figures, self._report, self.failed = figures, report, failed

    async def open(self) -> None:
        """Joins the processes that share the state."""

        async def flush() -> str:
            await self.journal.flush()
            return "done"

        async def figures() -> str:
            return json.dumps(self._figures().as_json())

        await self.store.open(self.process, {"flush": flush, "figures": figures})

    async def flush(self) -> tuple[str, ...]:
        """Makes all processes write what they have; the names of those that do not answer."""
        await self.journal.flush()
        return await self.store.flush_others()

    async def all_figures(self) -> Figures:
        """The metrics of all processes that listen on this port."""
        total = self._figures()
        with suppress(StoreError):  # its errors are among the metrics
            for other in await self.store.figures_of_others():
                total.add(Figures.from_json(json.loads(other)))
        return total

    async def close(self) -> int:
        """Writes what is left, and leaves; how many entries are lost because the store is away."""
        try:
            await self.journal.close()
            await self.store.close()
        except StoreError as error:
            if self.journal.waiting:
                self._report(
                    f"the state store cannot be reached ({error}): the last "
                    f"{self.journal.waiting} journal entries of this process are lost"
                )
        return self.journal.waiting

    async def problem(self) -> str | None:
        """Why this process is not ready to answer; None where it is."""
        try:
            await self.store.check()
        except StoreError:
            return "the state store cannot be reached"
        return None

    # Requests

    async def hold(self, session: SharedSession) -> None:
        """Marks a session in the store, before a request of it is answered; see
        `JournalWriter.hold`."""
        session.hold = await self.journal.hold(session.name)

    def release(self, session: SharedSession) -> None:
        """A request is over; it may have come to nothing that stands in a journal."""
        if session.hold is not None:
            self.journal.release(session.hold)
            session.hold = None

    async def carry_out(self, session: SharedSession, operations: Sequence[StateOperation]) -> None:
        """Carries out the operations that a session needs; their outcomes are there afterwards.
        Several are those that `look_up` of a store takes."""
        with needing(operations[0]):
            if any(isinstance(each, FindAnswer) and each.latest for each in operations):
                await self.flush()
            outcomes = await self._perform(session.name, operations)
            found = zip(operations, outcomes, strict=True)
            missing = [
                operation
                for operation, outcome in found
                if outcome is None and isinstance(operation, FindAnswer | FindConversation)
            ]
            if missing:
                # Another process may have it, and not have written it yet.
                await self.flush()
                again = await self._perform(session.name, missing)
                session.known.update(_read_outcomes(missing, again))
        known = _read_outcomes(operations, outcomes)
        session.known.update({key: value for key, value in known.items() if key not in missing})

    async def _perform(self, name: str, operations: Sequence[StateOperation]) -> list[Any]:
        if len(operations) == 1:
            return [await self.store.perform(name, operations[0])]
        return await self.store.look_up(name, operations)

    async def count(self, session: str, key: str, by: int) -> int:
        """Adds to a counter of a session, outside of its requests; what it was before."""
        with needing():
            before: int = await self.store.perform(session, Count(key, by))
        return before

    def now(self) -> float:
        """The time of all processes, in seconds since 1970."""
        return time.time() + self.store.clock_offset

    async def take(self, charges: Sequence[Charge], now: float, force: bool) -> Taken:
        """Takes from the buckets of quotas."""
        with needing("what is left of the quotas"):
            return await self.store.take(charges, now, force)

    async def keep(self, session: SharedSession) -> None:
        """Keeps what the next request may need, before this one is answered."""
        if session.tokens or session.deleted or session.unused:
            with needing():
                await self.store.keep(session)

    def record(self, session: SharedSession, exchange: Exchange) -> None:
        """Takes an exchange into the journal; its number is known when the session is restored."""
        exchange.enter(session.name, 0)
        protocol = PROTOCOLS.get(exchange.played.api or "")
        played = exchange.played
        # Of the answers of a model only those that the service keeps can be looked up.
        is_kept = played.scenario is None or protocol is None or protocol.stored is not None
        is_kept = is_kept or played.answer_id in session.tokens.values()
        has_answer = played.answer_id is not None and is_kept
        mark, session.hold = session.hold, None
        noted = tuple(session.noted)
        self.journal.add(session.name, exchange, noted, has_answer=has_answer, mark=mark)

    def end(self, exchange: Exchange) -> None:
        self.journal.end(exchange)


def _read_outcomes(
    operations: Sequence[StateOperation], outcomes: Sequence[Any]
) -> dict[StateOperation, Any]:
    return {
        operation: _answer_of(outcome, operation.id)
        if isinstance(operation, FindAnswer) and outcome is not None
        else outcome
        for operation, outcome in zip(operations, outcomes, strict=True)
    }


def _answer_of(entries: bytes, id: str) -> Exchange | None:
    """The exchange among packed entries whose answer has an id; the latest of several."""
    exchanges = [exchange for _, exchange in unpack(entries) if exchange.played.answer_id == id]
    return exchanges[-1] if exchanges else None
