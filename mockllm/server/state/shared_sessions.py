"""The sessions that several processes share, as control routes and pages read and change them."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterable
from functools import partial

from mockllm.errors import RequestError
from mockllm.replay.sessions.entry_packing import restore
from mockllm.replay.sessions.session import Session, Sessions
from mockllm.server.state.journal_writer import BOUNDS, hold_bounds
from mockllm.server.state.shared_answers import DEFAULT, SharedAnswers
from mockllm.server.state.shared_state import needing
from mockllm.server.state.store import Names, Setup


class SharedSessions:
    """What control routes and pages do with shared sessions; the methods are those of
    `LocalSessions`. What was answered before is written before it is read.

    Each raises `StateAwayError` while the store is away.
    """

    shared = True

    def __init__(self, answers: SharedAnswers) -> None:
        self._answers, self._state, self._store = answers, answers.state, answers.state.store

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
        sessions, found = Sessions(), []
        with needing():
            silent = await self._state.flush()
            for name in (await self._store.names()).known if names is None else names:
                stored = await self._store.load(name)
                if stored is not None:
                    make = partial(restore, name, stored, sessions.get, sessions.record)
                    found.append(await asyncio.to_thread(make))
        for session in found:
            session.gaps += tuple(
                f"the server process {process} did not write its journal in time"
                for process in silent
            )
        return found

    async def refresh(self, name: str) -> None:
        """Sets a session up as it was requested last, in whichever process."""
        await self._answers.refresh(name)

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
                await self._set_up(name, setup)
            await hold_bounds(self._store, BOUNDS)
        return Session(name, evicted=evicted)

    async def _set_up(self, name: str, body: bytes) -> None:
        setup = Setup(secrets.token_hex(8), body)
        try:
            if name == DEFAULT:
                raise RequestError(
                    "The session was not made: with shared state, the session 'default' has the "
                    "scenarios of the server. Choose another name.",
                )
            if not await self._store.create(name, setup):
                raise RequestError(
                    f"The session was not made: there is a session {name!r} now. Choose another "
                    "name.",
                    status=409,
                )
        except BaseException:
            self._answers.setups.drop(name)
            raise
        self._answers.setups.note(name, setup.version)

    async def reset(self, name: str) -> Session:
        """The session without what is known of it, but with its setup."""
        with needing():
            await self._store.reset(name)
        return Session(name)

    async def delete(self, name: str) -> None:
        """Deletes a session with its setup."""
        self._answers.setups.drop(name)
        with needing():
            await self._store.delete(name)
