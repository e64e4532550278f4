"""Requests and control routes over shared state."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import parse_qs, urlsplit

from mockllm.errors import RequestError
from mockllm.replay.player import Player
from mockllm.replay.sessions.exchange import Exchange
from mockllm.replay.sessions.shared_session import SharedSession, StateAwayError, StateNotReadError
from mockllm.server.session_setup import SessionSetups
from mockllm.server.state.setups import SharedSetups
from mockllm.server.state.shared import SharedState, Snapshot

if TYPE_CHECKING:
    from mockllm.replay.compilation.http_answer import HttpAnswer

__all__ = ["DEFAULT", "SharedAnswers"]

DEFAULT = "default"
"""The session of requests that name none. It has no setup of its own."""

_Answer = TypeVar("_Answer")


class SharedAnswers:
    """Answers the requests of one process with state that others share.

    Args:
        setups: of this process.
        served: the player of the server, at any time.
        refuse: the error answer to a request for a path.
        failed: called when a request is refused because the store is away.
    """

    def __init__(
        self,
        state: SharedState,
        setups: SessionSetups,
        served: Callable[[], Player],
        refuse: Callable[[str, RequestError, Exchange], HttpAnswer],
        failed: Callable[[], None],
    ) -> None:
        self.state = state
        self._local = setups
        self._setups = SharedSetups(state, setups)
        self._served = served
        self._refuse = refuse
        self._failed = failed

    async def answer(
        self,
        session: SharedSession,
        exchange: Exchange,
        path: str,
        answering: Callable[[], Awaitable[tuple[_Answer, bool]]],
    ) -> tuple[_Answer | HttpAnswer, bool]:
        """What `answering` returns once everything that it needs of the store is there.

        Args:
            path: of the request, also with its query, for the shape of an error.
        """
        try:
            if session.name != DEFAULT:
                await self._setups.refresh(session.name, self._served())
            while True:
                session.begin()
                exchange.problems = ()
                try:
                    answer = await answering()
                except StateNotReadError as missing:
                    await self.state.carry_out(session, missing.operation)
                else:
                    break
            await self.state.keep(session)
        except RequestError as error:
            session.begin()
            refusal = self._refuse(path, error, exchange)
            if isinstance(error, StateAwayError):
                exchange.outcome = "error"
                self._failed()
            return refusal, False
        return answer

    def record(self, session: SharedSession, exchange: Exchange) -> None:
        """Takes an exchange into the journal."""
        self.state.record(session, exchange)

    def end(self, exchange: Exchange) -> None:
        """The answer of an exchange is over."""
        self.state.journal.end(exchange)

    # Control routes

    async def snapshot(self, steps: tuple[str, ...], target: str, session: str | None) -> Snapshot:
        """The sessions that a control route needs.

        Args:
            steps: the method and the steps of the path after the prefix.
            target: path and query.
            session: that a prefix or a header of the request names.

        Raises:
            StateAwayError: the store is away.
        """
        wanted = _wanted(steps, target, session)
        snapshot = await self.state.snapshot(wanted)
        for name in snapshot.names if wanted is None else wanted:
            if name != DEFAULT:
                await self._setups.refresh(name, self._served())
        return snapshot

    async def apply(self, steps: tuple[str, ...], snapshot: Snapshot, body: bytes) -> None:
        """Makes the changes of a control route for all processes.

        Raises:
            RequestError: another process made a session of that name; the store is away.
        """
        for name in snapshot.deleted:
            if name not in snapshot.made:
                self._setups.drop(name)
        creates = steps == ("POST", "sessions")
        for name in snapshot.made:
            setup = self._local.find(name) if creates else None
            if setup is not None and name == DEFAULT:
                self._setups.drop(name)
                raise RequestError(
                    "The session was not made: with shared state, the session 'default' has the "
                    "scenarios of the server. Choose another name.",
                )
            try:
                version = await self.state.make(
                    name,
                    body if setup is not None else None,
                    anew=name in snapshot.deleted,
                )
            except RequestError:
                if creates:
                    self._setups.drop(name)
                raise
            if version is not None:
                self._setups.note(name, version)
        for name in snapshot.deleted:
            if name not in snapshot.made:
                await self.state.delete(name)


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
