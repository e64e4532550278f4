"""Plays what cannot be answered at once: what a pure core says it needs is done, and then it is
played again.

Files are read, and long searches made, in threads: a slow disk holds up the requests that need it,
and no other. Operations on shared state are carried out by its store.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from functools import partial
from typing import Any, TypeVar

from mockllm.core.later import NotDoneError, deferring
from mockllm.replay.sessions.session import Session
from mockllm.replay.sessions.shared_session import SharedSession, StateNotReadError, StateOperation

_Result = TypeVar("_Result")

CarryOut = Callable[[SharedSession, StateOperation], Awaitable[None]]
"""Carries out an operation on shared state; its outcome is known to the session afterwards."""


class DeferredWork:
    """Plays requests until everything that they need is there. However many wait for the same
    work, it is done once."""

    def __init__(
        self, waiting: set[asyncio.Task[object]], carry_out: CarryOut | None = None
    ) -> None:
        self._waiting = waiting
        self._carry_out = carry_out
        self._running: dict[tuple[object, Hashable], asyncio.Task[object]] = {}

    async def play(
        self, owner: object, session: Session, function: Callable[[], _Result]
    ) -> _Result:
        """What a function returns; it is called again whenever something that it needs is there."""
        outcomes: dict[Hashable, Callable[[], Any]] = {}
        while True:
            if isinstance(session, SharedSession):
                session.begin()
            try:
                with deferring(outcomes):
                    return function()
            except NotDoneError as missing:
                outcomes[missing.key] = await self._done(owner, missing)
            except StateNotReadError as missing:
                assert self._carry_out is not None
                assert isinstance(session, SharedSession)
                await self._carry_out(session, missing.operation)

    async def _done(self, owner: object, missing: NotDoneError) -> Callable[[], Any]:
        key = (owner, missing.key)
        work = self._running.get(key)
        if work is None:
            work = self._running[key] = asyncio.create_task(asyncio.to_thread(missing.read))
            work.add_done_callback(partial(self._end, key))
        task = asyncio.current_task()
        assert task is not None
        self._waiting.add(task)
        try:
            # A client that leaves ends its own request; others may wait for the same work.
            await asyncio.wait([work])
        finally:
            self._waiting.discard(task)
        return work.result

    def _end(self, key: tuple[object, Hashable], task: asyncio.Task[object]) -> None:
        del self._running[key]
        if not task.cancelled():
            task.exception()  # or asyncio logs it where every client has left
