"""Control routes over shared state: they read sessions from the store, and change them there."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterable
from urllib.parse import parse_qs, urlsplit

from mockllm.errors import RequestError
from mockllm.replay.sessions.entry_packing import restore
from mockllm.replay.sessions.session import Session, Sessions
from mockllm.server.control.session_setup import SessionSetups
from mockllm.server.state.journal_writer import BOUNDS, hold_bounds
from mockllm.server.state.shared_answers import DEFAULT, SharedAnswers
from mockllm.server.state.shared_state import needing
from mockllm.server.state.store import Names, Setup


class SharedSessions(Sessions):
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
        session = super().find(name)
        if session is None and name in self._names.known:
            return Session(name)
        return session

    def get(self, name: str) -> Session:
        if self.find(name) is None or name in self.deleted:
            self.made.append(name)
        return super().get(name)

    def delete(self, name: str) -> bool:
        self.deleted.append(name)
        return super().delete(name)


class SharedControl:
    """What control routes need of shared state."""

    def __init__(self, answers: SharedAnswers, setups: SessionSetups) -> None:
        self._answers, self._state, self._store = answers, answers.state, answers.state.store
        self._local = setups

    async def read(
        self, steps: tuple[str, ...], target: str, session: str | None
    ) -> SharedSessions:
        """The sessions that a control route needs, with everything that was answered before."""
        wanted = _wanted(steps, target, session)
        sessions = await self.load(wanted)
        for name in sessions.names if wanted is None else wanted:
            await self._answers.refresh(name)
        return sessions

    async def load(self, wanted: Iterable[str] | None = None) -> SharedSessions:
        """The sessions of these names, with everything that was answered before; None: all."""
        with needing():
            return await self._load(wanted)

    async def _load(self, wanted: Iterable[str] | None) -> SharedSessions:
        silent = await self._state.flush()
        names = await self._store.names()
        sessions = SharedSessions(names)
        for name in names.known if wanted is None else wanted:
            stored = await self._store.load(name)
            if stored is None or (stored.evicted and name not in names.known):
                continue
            session = await asyncio.to_thread(restore, name, stored, sessions.load, sessions.record)
            session.gaps += tuple(
                f"the server process {process} did not write its journal in time"
                for process in silent
            )
        return sessions

    async def apply(self, steps: tuple[str, ...], sessions: SharedSessions, body: bytes) -> None:
        """Makes the changes of a control route for all processes.

        Raises:
            RequestError: another process made a session of that name; the store is away.
        """
        deleted = [name for name in sessions.deleted if name not in sessions.made]
        for name in deleted:
            self._answers.setups.drop(name)
        with needing():
            for name in sessions.made:
                if steps == ("POST", "sessions") and self._local.find(name) is not None:
                    await self._set_up(name, body)
                elif name in sessions.deleted:
                    await self._store.reset(name)
                else:
                    await self._store.create(name, None)
                    await hold_bounds(self._store, BOUNDS)
            for name in deleted:
                await self._store.delete(name)

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
        await hold_bounds(self._store, BOUNDS)


def _wanted(steps: tuple[str, ...], target: str, session: str | None) -> list[str] | None:
    """The names of the sessions that a control route reads; None: all."""
    query = parse_qs(urlsplit(target).query)
    named = query.get("session", [session] if session is not None else [])[-1:]
    match steps:
        case (_, "sessions", name, *_):
            return [name]
        case ("GET", "verify"):
            return named or [DEFAULT]
        case ("GET", "journal"):
            return named or None
        case ("GET", "scenarios"):
            return named
        case ("GET", "sessions"):
            return None
    return []
