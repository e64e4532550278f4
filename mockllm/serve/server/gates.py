"""The gates of one server: which are open in which session, and the answers that wait.

A gate is open from its release on, until its session is reset or deleted: for the answers that wait
there, and for all that come later. So a test may open it before the request comes, and twice. That
it is open is a counter of the session, which processes share where they share state; of a gate that
another process opens, one task of this process learns, as long as something waits here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from time import monotonic, perf_counter
from typing import TYPE_CHECKING, Literal

from mockllm.play.replay.sessions.exchange import Sent
from mockllm.play.replay.sessions.session import Session, Sessions
from mockllm.play.replay.sessions.shared_session import Count
from mockllm.scenario.part_model import Gate

if TYPE_CHECKING:
    from mockllm.serve.server.state.shared_state import SharedState

_LOOK = 0.05
"""Seconds between two looks into the shared state."""

_Place = tuple[str, str]
"""The names of a session and of a gate."""


class Gates:
    """The gates of one server.

    Args:
        state: what other processes share, in place of `sessions`; None: there is none.
    """

    def __init__(self, sessions: Sessions, state: SharedState | None) -> None:
        self._sessions, self._state = sessions, state
        self._waiting: dict[_Place, list[asyncio.Event]] = {}
        self._arrival: asyncio.Event | None = None
        self._looking: asyncio.Task[None] | None = None

    async def release(self, session: str, gate: str) -> None:
        """Opens a gate.

        Raises:
            StateAwayError: the store is away.
        """
        if self._state is None:
            self._sessions.get(session).add_to(_counter(gate))
        else:
            await self._state.count(session, _counter(gate), 1)
        self._open((session, gate))

    async def is_open(self, session: str, gate: str) -> bool:
        """Whether a gate was released.

        Raises:
            StateAwayError: the store is away.
        """
        if self._state is not None:
            return await self._state.count(session, _counter(gate), 0) > 0
        known = self._sessions.find(session)
        return known is not None and known.add_to(_counter(gate), 0) > 0

    async def pass_through(self, session: str, sent: Sent, gate: Gate) -> float:
        """Waits until a gate is open, or its limit is over; how long that took, in seconds.

        Args:
            sent: of the answer; notes the wait.
        """
        place = session, gate.name
        # The state that processes share is looked at while it waits.
        is_open = self._state is None and await self.is_open(*place)
        began, opened = perf_counter(), asyncio.Event()
        sent.wait_at(gate.name, began)
        if is_open:
            sent.go_on(began, "released")
            return 0.0
        ended: Literal["released", "expired", "left"] = "left"
        self._begin(place, opened)
        try:
            async with asyncio.timeout(gate.limit / 1_000_000):
                await opened.wait()
            ended = "released"
        except TimeoutError:
            ended = "expired"
        finally:
            self._end(place, opened)
            sent.go_on(perf_counter(), ended)
        return perf_counter() - began

    async def find_waiting(
        self, find: Callable[[], Awaitable[Session | None]], gate: str, seconds: float
    ) -> tuple[int, ...]:
        """The numbers of the requests of a session whose answers wait at a gate; () where none came
        there in some seconds.

        Args:
            find: the session as it is.
        """
        until = monotonic() + seconds
        while True:
            if self._arrival is None:
                self._arrival = asyncio.Event()
            arrival, session = self._arrival, await find()
            entries = () if session is None else session.entries
            numbers = tuple(entry.number for entry in entries if entry.sent.waits_at == gate)
            left = until - monotonic()
            if numbers or left <= 0:
                return numbers
            with suppress(TimeoutError):
                async with asyncio.timeout(left if self._state is None else min(left, _LOOK)):
                    await arrival.wait()

    def _begin(self, place: _Place, opened: asyncio.Event) -> None:
        self._waiting.setdefault(place, []).append(opened)
        if self._arrival is not None:
            self._arrival.set()
            self._arrival = None
        if self._state is not None and self._looking is None:
            self._looking = asyncio.create_task(self._look(self._state))

    def _end(self, place: _Place, opened: asyncio.Event) -> None:
        self._waiting[place].remove(opened)
        if not self._waiting[place]:
            del self._waiting[place]
        if not self._waiting and self._looking is not None:
            self._looking.cancel()
            self._looking = None

    def _open(self, place: _Place) -> None:
        for opened in self._waiting.get(place, ()):
            opened.set()

    async def _look(self, state: SharedState) -> None:
        """Opens the gates that another process has opened, until nothing waits."""
        from mockllm.serve.server.state.store import StoreError  # few servers share state

        while True:
            for session, gate in tuple(self._waiting):
                with suppress(StoreError):  # it may come back before the limit
                    if await state.store.perform(session, Count(_counter(gate), 0)):
                        self._open((session, gate))
            await asyncio.sleep(_LOOK)


def _counter(gate: str) -> str:
    return f"gate {gate}"
