"""The shared state of a server: sessions for its requests, and what its control routes read."""

from __future__ import annotations

import asyncio
import json
import os
import platform
import secrets
from collections.abc import Callable, Iterable
from contextlib import suppress

from mockllm.errors import RequestError
from mockllm.protocols import PROTOCOLS
from mockllm.replay.sessions.entry_packing import restore, unpack
from mockllm.replay.sessions.exchange import Exchange
from mockllm.replay.sessions.session import Session, Sessions
from mockllm.replay.sessions.shared_session import (
    FindAnswer,
    FindConversation,
    SharedSession,
    StateAwayError,
    StateOperation,
)
from mockllm.server.metrics import Snapshot as Figures
from mockllm.server.state.store import Names, Setup, StateStore, StoreError
from mockllm.server.state.writer import JournalWriter

__all__ = ["SharedState", "Snapshot"]


class Snapshot(Sessions):
    """Sessions as they were when they were read, and the changes that a control route makes.

    Args:
        names: of all sessions; only some of them are read.
        deleted, made: the names of sessions that are to be deleted, and to be made.
    """

    def __init__(self, names: Names) -> None:
        super().__init__()
        self._names = names
        self._evicted.update(dict.fromkeys(names.evicted))
        self.deleted: list[str] = []
        self.made: list[str] = []

    def __len__(self) -> int:
        return len(self._names.known)

    @property
    def names(self) -> tuple[str, ...]:
        return self._names.known

    def load(self, name: str) -> Session:
        """A session, made without noting that."""
        return super().get(name)

    def find(self, name: str) -> Session | None:
        """As `Sessions.find`; of a session that was not read, only its name is known."""
        found = super().find(name)
        if found is None and name in self._names.known:
            return Session(name)
        return found

    def get(self, name: str) -> Session:
        if self.find(name) is None or name in self.deleted:
            self.made.append(name)
        return super().get(name)

    def delete(self, name: str) -> bool:
        self.deleted.append(name)
        return super().delete(name)


class SharedState:
    """State that other server processes share.

    Args:
        report: called with a line whenever the store goes away or is back.
    """

    def __init__(self, store: StateStore, report: Callable[[str], None]) -> None:
        self.store = store
        self.process = f"{platform.node()}-{os.getpid()}-{secrets.token_hex(3)}"
        self.journal = JournalWriter(store, self.process, report)
        self._report = report
        self.figures: Callable[[], Figures] = Figures
        """The metrics of this process."""

    async def open(self) -> None:
        """Joins the processes that share the state.

        Raises:
            StoreError: the store refuses.
        """

        async def flush() -> str:
            await self.journal.flush()
            return "done"

        async def figures() -> str:
            return json.dumps(self.figures().as_json())

        await self.store.open(self.process, {"flush": flush, "figures": figures})

    async def all_figures(self) -> Figures:
        """The metrics of all processes that listen on this port."""
        total = self.figures()
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

    async def carry_out(self, session: SharedSession, operation: StateOperation) -> None:
        """Carries out an operation that a session needs; its outcome is there afterwards.

        Raises:
            StateAwayError: the store is away.
        """
        try:
            outcome = await self.store.perform(session.name, operation)
            if outcome is None and isinstance(operation, FindAnswer | FindConversation):
                # Another process may have it, and not have written it yet.
                await self.journal.flush()
                await self.store.flush_others()
                outcome = await self.store.perform(session.name, operation)
        except StoreError as error:
            raise StateAwayError(operation, str(error)) from None
        if isinstance(operation, FindAnswer) and outcome is not None:
            ((_, outcome),) = unpack(outcome)
        session.known[operation] = outcome

    async def keep(self, session: SharedSession) -> None:
        """Keeps what the next request may need, before this one is answered.

        Raises:
            StateAwayError: the store is away.
        """
        unused = session.unused
        if not (session.tokens or session.deleted or unused):
            return
        try:
            await self.store.note(session.name, session.tokens, session.deleted, unused)
        except StoreError as error:
            raise StateAwayError(None, str(error)) from None

    def record(self, session: SharedSession, exchange: Exchange) -> None:
        """Takes an exchange into the journal."""
        exchange.session = session.name
        protocol = PROTOCOLS.get(exchange.api or "")
        kept = session.kept is not None and protocol is not None and protocol.stored is not None
        self.journal.add(session.name, exchange, tuple(session.noted), kept=kept)

    # Control routes

    async def snapshot(self, wanted: Iterable[str] | None) -> Snapshot:
        """The sessions of these names, with everything that was answered before, or all sessions.

        Args:
            wanted: None: all.

        Raises:
            StateAwayError: the store is away.
        """
        try:
            await self.journal.flush()
            silent = await self.store.flush_others()
            names = await self.store.names()
            snapshot = Snapshot(names)
            for name in names.known if wanted is None else wanted:
                stored = await self.store.load(name)
                if stored is None or (stored.evicted and name not in names.known):
                    continue
                session = await asyncio.to_thread(
                    restore, name, stored, snapshot.load, snapshot.record
                )
                session.gaps += tuple(map(_silence, silent))
        except StoreError as error:
            raise StateAwayError(None, str(error)) from None
        return snapshot

    async def make(self, session: str, body: bytes | None, *, anew: bool) -> str | None:
        """Makes a session for all processes; the version of its setup, None without one.

        Args:
            body: of the request that made it; None: it has no setup.
            anew: whether what is known of one of this name is deleted.

        Raises:
            RequestError: another process made a session of this name with a setup.
            StateAwayError: the store is away.
        """
        setup = None if body is None else Setup(secrets.token_hex(8), body)
        try:
            if setup is None and anew:
                await self.store.reset(session)
            elif not await self.store.create(session, setup) and setup is not None:
                raise RequestError(
                    f"The session was not made: there is a session {session!r} now. Choose "
                    "another name.",
                    status=409,
                )
        except StoreError as error:
            raise StateAwayError(None, str(error)) from None
        return None if setup is None else setup.version

    async def delete(self, session: str) -> None:
        """Deletes a session for all processes.

        Raises:
            StateAwayError: the store is away.
        """
        try:
            await self.store.delete(session)
        except StoreError as error:
            raise StateAwayError(None, str(error)) from None

    async def setup(self, session: str, known: str | None) -> Setup | None:
        """The setup of a session; None where it has none.

        Args:
            known: the version that is known here.

        Raises:
            StateAwayError: the store is away.
        """
        try:
            return await self.store.setup(session, known)
        except StoreError as error:
            what = "the setup of its session, which this process has not seen yet,"
            raise StateAwayError(what, str(error)) from None


def _silence(process: str) -> str:
    return f"the server process {process} did not write its journal in time"
