"""Requests over shared state."""

from __future__ import annotations

from collections.abc import Callable

from mockllm.protocols import PROTOCOLS
from mockllm.replay.player import Player
from mockllm.replay.sessions.entry_packing import unpack
from mockllm.replay.sessions.exchange import Exchange
from mockllm.replay.sessions.shared_session import (
    FindAnswer,
    FindConversation,
    SharedSession,
    StateOperation,
)
from mockllm.server.control.session_setup import SessionSetups
from mockllm.server.state.shared_setups import SharedSetups
from mockllm.server.state.shared_state import SharedState, needing

DEFAULT = "default"
"""The session of requests that name none. It has no setup of its own."""


class SharedAnswers:
    """Answers the requests of one process with state that others share.

    Args:
        failed: called when a request is refused because the store is away.
    """

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
        protocol = PROTOCOLS.get(exchange.api or "")
        has_answer = exchange.answer_id is not None and bool(protocol and protocol.stored)
        self.state.journal.add(session.name, exchange, tuple(session.noted), has_answer=has_answer)

    def end(self, exchange: Exchange) -> None:
        self.state.journal.end(exchange)


def _answer_of(entries: bytes, id: str) -> Exchange | None:
    """The exchange among packed entries whose answer has an id; the latest of several."""
    exchanges = [exchange for _, exchange in unpack(entries) if exchange.answer_id == id]
    return exchanges[-1] if exchanges else None
