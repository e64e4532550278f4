"""The setups of sessions that any of several server processes made."""

from __future__ import annotations

import asyncio
from collections import OrderedDict

from cachetools import LRUCache

from mockllm.replay.player import Player
from mockllm.replay.sessions.shared_session import StateAwayError
from mockllm.server.control.session_requests import read_session_request
from mockllm.server.control.session_setup import SessionSetups
from mockllm.server.state.shared_state import SharedState, needing
from mockllm.server.state.store import Setup

_MOST = 256
"""So many sessions are set up in a process at the same time."""

_MOST_NAMES = 65_536
"""Of so many sessions a process remembers that it has seen their setup."""

_PURPOSE = "the setup of its session, which this process has not seen yet,"


class SharedSetups:
    """Keeps the setups of this process as the store has them."""

    def __init__(self, state: SharedState, setups: SessionSetups) -> None:
        self._state, self._setups = state, setups
        self._versions: OrderedDict[str, str] = OrderedDict()
        self._seen: LRUCache[str, bool] = LRUCache(_MOST_NAMES)
        self._lock = asyncio.Lock()

    async def refresh(self, session: str, served: Player) -> None:
        """Sets a session up as it was requested, in whichever process.

        While the store is away, a session stays as this process has seen it last.

        Raises:
            StateAwayError: the store is away, and this process has not seen the session before.
            RequestError: its scenarios need the server's, which are different here.
        """
        try:
            with needing(_PURPOSE):
                setup = await self._state.store.setup(session, self._versions.get(session))
        except StateAwayError:
            if session not in self._seen:
                raise
        else:
            await self._follow(session, setup, served)
            self._seen[session] = True

    async def _follow(self, session: str, setup: Setup | None, served: Player) -> None:
        if setup is None:
            if session in self._versions:
                self.drop(session)
        elif setup.gone:
            self.drop(session)
            self._setups.note_evicted(session)
        else:
            async with self._lock:
                if self._versions.get(session) != setup.version:
                    await self._set_up(session, setup, served)
                self._versions.move_to_end(session)

    async def _set_up(self, session: str, setup: Setup, served: Player) -> None:
        by_name = served.served.by_name
        request = await asyncio.to_thread(read_session_request, setup.body, lambda: by_name)
        player = await asyncio.to_thread(self._setups.make_player, request, served)
        self.drop(session)
        while len(self._versions) >= _MOST:
            self.drop(next(iter(self._versions)))
        self._setups.add(session, request, player, served)
        self._versions[session] = setup.version

    def note(self, session: str, version: str) -> None:
        """Notes the version of a setup that this process made itself."""
        self._versions[session] = version
        self._seen[session] = True

    def drop(self, session: str) -> None:
        self._versions.pop(session, None)
        self._seen.pop(session, None)
        self._setups.release(session)
