"""The sessions that several processes share, as control routes and pages read and change them, and
as each process sets them up."""

from __future__ import annotations

import asyncio
import secrets
from collections import OrderedDict
from collections.abc import Callable, Iterable
from contextlib import suppress

from cachetools import LRUCache

from mockllm.core.errors import RequestError
from mockllm.play.replay.player import Player
from mockllm.play.replay.sessions.session import Session, Sessions
from mockllm.play.replay.sessions.shared_session import SessionReader, StateAwayError, unpack_all
from mockllm.serve.interception.headers import DEFAULT
from mockllm.serve.server.sessions.session_setup import SessionSetups, read_session_request
from mockllm.serve.server.state.journal_writer import BOUNDS, hold_bounds
from mockllm.serve.server.state.shared_state import SharedState, needing
from mockllm.serve.server.state.store import Names, Setup

_MOST = 256
"""So many sessions are set up in a process at the same time."""

_MOST_BYTES = 32 * 1024 * 1024
"""So much of the sessions that were read stays, in bytes, so that lists read only what is new."""

_MOST_NAMES = 65_536
"""Of so many sessions a process remembers that it has seen their setup."""

_PURPOSE = "the setup of its session, which this process has not seen yet,"


class SharedSessions:
    """Shared sessions, for control routes and pages; the methods are those of
    `LocalSessions`. What was answered before is written before it is read.

    Each raises `StateAwayError` while the store is away.

    Args:
        served: what decides about answers in sessions without a setup.
    """

    shared = True

    def __init__(
        self, state: SharedState, setups: SessionSetups, served: Callable[[], Player]
    ) -> None:
        self.state, self._store = state, state.store
        self._setups, self._served = setups, served
        self._versions: OrderedDict[str, str] = OrderedDict()
        self._seen: LRUCache[str, bool] = LRUCache(_MOST_NAMES)
        self._lock, self._reading = asyncio.Lock(), asyncio.Lock()
        self._readers: LRUCache[str, SessionReader] = LRUCache(
            _MOST_BYTES, getsizeof=lambda reader: reader.size
        )

    async def names(self) -> Names:
        """The names of all sessions."""
        with needing():
            return await self._store.names()

    async def load(self) -> list[Session]:
        """All sessions."""
        return await self._load(None)

    async def find(self, name: str) -> Session | None:
        """A session; of one that was evicted only its name is known."""
        sessions = await self._load([name])
        await self.refresh(name)
        return sessions[0] if sessions else None

    async def _load(self, names: Iterable[str] | None) -> list[Session]:
        """The sessions of these names; None: all. All of them together are bounded."""
        sessions, loaded = Sessions(), []
        with needing():
            silent = await self.state.flush()
            for name in (await self._store.names()).known if names is None else names:
                async with self._reading:
                    session = await self._read(name, sessions)
                if session is not None:
                    loaded.append(session)
        # One that cannot write can leave no marks either, so it may have answered in any session.
        for session in loaded:
            session.gaps += tuple(
                f"the server process {process} did not write its journal in time"
                for process in silent
            )
        return loaded

    async def _read(self, name: str, sessions: Sessions) -> Session | None:
        """A stored session: what was read before is not read again.

        Args:
            sessions: bounds those that are read as a whole.
        """
        reader = self._readers.pop(name, None) or SessionReader(name)
        stored = await self._store.load(name, reader.after)
        if stored is not None and not reader.goes_on(stored):
            reader = SessionReader(name)
            stored = await self._store.load(name)
        if stored is None:
            return None
        fresh = await asyncio.to_thread(unpack_all, stored.entries)
        session = reader.read(stored, fresh, sessions.get, sessions.record)
        with suppress(ValueError):  # it is larger than all that are kept
            self._readers[name] = reader
        return session

    async def make(self, name: str, setup: bytes | None) -> Session:
        """A session, made if need be, or anew with the body that asks for its setup.

        Raises:
            RequestError: another process made a session of that name.
        """
        evicted = setup is None and name in (await self.names()).evicted
        with needing():
            if setup is None:
                await self._store.create(name, None)
            else:
                await self._create(name, Setup(secrets.token_hex(8), setup))
            await hold_bounds(self._store, BOUNDS)
        return Session(name, evicted=evicted)

    async def _create(self, name: str, setup: Setup) -> None:
        """Makes a session whose setup this process has already."""
        try:
            if name == DEFAULT:
                raise RequestError(
                    "The session was not made: with shared state, the session 'default' has the "
                    "scenarios of the server. Choose another name."
                )
            if not await self._store.create(name, setup):
                raise RequestError(
                    f"The session was not made: there is a session {name!r} now. Choose another "
                    "name.",
                    status=409,
                )
        except BaseException:
            self._drop(name)
            raise
        self._versions[name] = setup.version
        self._seen[name] = True

    async def reset(self, name: str) -> Session:
        """The session without what is known of it, but with its setup."""
        with needing():
            await self.state.flush()
            await self._store.reset(name)
        return Session(name)

    async def delete(self, name: str) -> None:
        """Deletes a session with its setup."""
        self._drop(name)
        with needing():
            await self.state.flush()
            await self._store.delete(name)

    # Setups

    async def refresh(self, name: str) -> None:
        """Sets a session up as it was requested last, in whichever process.

        While the store is away, a session stays as this process has seen it last.

        Raises:
            StateAwayError: the store is away, and this process has not seen the session before.
            RequestError: its scenarios need the server's, which are different here.
        """
        if name == DEFAULT:  # it has no setup
            return
        try:
            with needing(_PURPOSE):
                setup = await self._store.setup(name, self._versions.get(name))
        except StateAwayError:
            if name not in self._seen:
                raise
        else:
            await self._follow(name, setup)
            self._seen[name] = True

    async def _follow(self, name: str, setup: Setup | None) -> None:
        if setup is None:
            if name in self._versions:
                self._drop(name)
        elif setup.gone:
            self._drop(name)
            self._setups.note_gone(name)
        else:
            async with self._lock:
                if self._versions.get(name) != setup.version:
                    await self._set_up(name, setup)
                self._versions.move_to_end(name)

    async def _set_up(self, name: str, setup: Setup) -> None:
        served = self._served()
        by_name = served.served.by_name
        request = await asyncio.to_thread(read_session_request, setup.body, lambda: by_name)
        player = await asyncio.to_thread(self._setups.make_player, request, served)
        self._drop(name)
        while len(self._versions) >= _MOST:
            self._drop(next(iter(self._versions)))
        self._setups.add(name, request, player, served)
        self._versions[name] = setup.version

    def _drop(self, name: str) -> None:
        self._versions.pop(name, None)
        self._seen.pop(name, None)
        self._setups.release(name)
