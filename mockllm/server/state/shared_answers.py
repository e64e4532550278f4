"""Requests over shared state."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable

from cachetools import LRUCache

from mockllm.protocols import PROTOCOLS
from mockllm.replay.player import Player
from mockllm.replay.sessions.entry_packing import unpack
from mockllm.replay.sessions.exchange import Exchange
from mockllm.replay.sessions.shared_session import (
    FindAnswer,
    FindConversation,
    SharedSession,
    StateAwayError,
    StateOperation,
)
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


DEFAULT = "default"
"""The session of requests that name none. It has no setup of its own."""


class SharedAnswers:
    """Answers the requests of one process with state that others share."""

    def __init__(
        self,
        state: SharedState,
        setups: SessionSetups,
        served: Callable[[], Player],
        failed: Callable[[], None],
    ) -> None:
        self.state = state
        self.setups = SharedSetups(state, setups)
        self._served = served
        self.failed = failed

    async def refresh(self, session: str) -> None:
        if session != DEFAULT:
            await self.setups.refresh(session, self._served())

    async def carry_out(self, session: SharedSession, operation: StateOperation) -> None:
        """Carries out an operation that a session needs; its outcome is there afterwards."""
        with needing(operation):
            outcome = await self.state.store.perform(session.name, operation)
            if outcome is None and isinstance(operation, FindAnswer | FindConversation):
                # Another process may have it, and not have written it yet.
                await self.state.flush()
                outcome = await self.state.store.perform(session.name, operation)
        if isinstance(operation, FindAnswer) and outcome is not None:
            outcome = _answer_of(outcome, operation.id)
        session.known[operation] = outcome

    async def keep(self, session: SharedSession) -> None:
        """Keeps what the next request may need, before this one is answered."""
        unused = session.unused
        if session.tokens or session.deleted or unused:
            with needing():
                await self.state.store.keep(session.name, session.tokens, session.deleted, unused)

    def record(self, session: SharedSession, exchange: Exchange) -> None:
        """Takes an exchange into the journal; its number is known when the session is restored."""
        exchange.enter(session.name, 0)
        protocol = PROTOCOLS.get(exchange.played.api or "")
        has_answer = exchange.played.answer_id is not None and bool(protocol and protocol.stored)
        self.state.journal.add(session.name, exchange, tuple(session.noted), has_answer=has_answer)

    def end(self, exchange: Exchange) -> None:
        self.state.journal.end(exchange)


def _answer_of(entries: bytes, id: str) -> Exchange | None:
    """The exchange among packed entries whose answer has an id; the latest of several."""
    exchanges = [exchange for _, exchange in unpack(entries) if exchange.played.answer_id == id]
    return exchanges[-1] if exchanges else None
