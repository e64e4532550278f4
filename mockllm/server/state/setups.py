"""The setups of sessions that any of several server processes made."""

from __future__ import annotations

import asyncio
from collections import OrderedDict

from mockllm.replay.player import Player
from mockllm.server.session_requests import read_session_request
from mockllm.server.session_setup import SessionSetups
from mockllm.server.state.shared import SharedState

__all__ = ["SharedSetups"]

_MOST = 256
"""So many sessions are set up in a process at the same time."""


class SharedSetups:
    """Keeps the setups of this process as the store has them.

    Args:
        setups: of this process.
    """

    def __init__(self, state: SharedState, setups: SessionSetups) -> None:
        self._state, self._setups = state, setups
        self._versions: OrderedDict[str, str] = OrderedDict()
        self._lock = asyncio.Lock()

    async def refresh(self, session: str, served: Player) -> None:
        """Sets a session up as it was requested, in whichever process.

        Args:
            served: the player of the server.

        Raises:
            StateAwayError: the store is away.
            RequestError: its scenarios need the server's, which are different here.
        """
        known = self._versions.get(session)
        found = await self._state.setup(session, known)
        if found is None:
            if known is not None:
                self.drop(session)
            return
        if found.gone:
            self.drop(session)
            self._setups.note_evicted(session)
            return
        if found.version == known:
            self._versions.move_to_end(session)
            return
        async with self._lock:
            if self._versions.get(session) == found.version:
                return
            await self._set_up(session, found.version, found.body, served)

    async def _set_up(self, session: str, version: str, body: bytes, served: Player) -> None:
        request = await asyncio.to_thread(read_session_request, body, lambda: served.served.by_name)
        player = await asyncio.to_thread(self._setups.make_player, request, served)
        self.drop(session)
        while len(self._versions) >= _MOST:
            self.drop(next(iter(self._versions)))
        self._setups.add(session, request, player, served)
        self._versions[session] = version

    def note(self, session: str, version: str) -> None:
        """Notes the version of a setup that this process made itself."""
        self._versions[session] = version

    def drop(self, session: str) -> None:
        """Forgets the setup of a session in this process."""
        self._versions.pop(session, None)
        self._setups.release(session)
