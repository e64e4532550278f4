"""The sessions of one process, read and changed as those that several processes share."""

from __future__ import annotations

from mockllm.replay.sessions.session import Session, Sessions
from mockllm.server.state.store import Names


class LocalSessions:
    """What control routes and pages do with the sessions of this process. Nothing here waits."""

    shared = False

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    async def names(self) -> Names:
        """The names of all sessions."""
        return Names(self._sessions.names, self._sessions.evicted)

    async def load(self) -> list[Session]:
        """All sessions."""
        return list(self._sessions)

    async def find(self, name: str) -> Session | None:
        """A session; of one that was evicted only its name is known."""
        return self._sessions.find(name)

    async def refresh(self, name: str) -> None:
        """Sets a session up as it was requested last: it is, in the only process."""

    async def make(self, name: str, setup: bytes | None) -> Session:
        """A session, made if need be, or anew with the body that asks for its setup."""
        if setup is not None:
            self._sessions.delete(name)  # what is known of one that was evicted
        return self._sessions.get(name)

    async def reset(self, name: str) -> Session:
        """The session without what is known of it, but with its setup."""
        self._sessions.delete(name)
        return self._sessions.get(name)

    async def delete(self, name: str) -> None:
        """Deletes a session with its setup."""
        self._sessions.delete(name)
