"""A server in a thread of its own, for callers without an event loop or with one of their own."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Iterable
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar

from mockllm.play.replay.sessions.exchange import Exchange
from mockllm.scenario.model import Scenario
from mockllm.serve.interception.ownership import exempt_thread
from mockllm.serve.server.app import MockServer
from mockllm.serve.server.options import ServerOptions

_P = ParamSpec("_P")
_R = TypeVar("_R")

_LOOK = 0.02
"""Seconds between two looks at what is not over."""


class ServerThread:
    """Runs a `MockServer` while the `with` block lasts.

    The server listens when the block begins, and everything is freed when it ends.
    """

    def __init__(self, scenarios: Iterable[Scenario], options: ServerOptions | None = None) -> None:
        self.server = MockServer(scenarios, options)
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._stopping: asyncio.Event | None = None
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="mockllm-server", daemon=True)

    @property
    def url(self) -> str:
        """`http://HOST:PORT`."""
        return self.server.url

    def call(self, function: Callable[_P, object], *args: _P.args, **kwargs: _P.kwargs) -> None:
        """Has the server's thread call a function soon, before it looks at any later request."""
        self._loop.call_soon_threadsafe(lambda: function(*args, **kwargs))

    def ask(self, function: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> _R:
        """Calls a function in the server's thread, between requests; returns or raises what it
        does."""

        async def result() -> _R:
            return function(*args, **kwargs)

        return asyncio.run_coroutine_threadsafe(result(), self._loop).result()

    def wait(
        self, function: Callable[_P, Coroutine[Any, Any, _R]], *args: _P.args, **kwargs: _P.kwargs
    ) -> _R:
        """Runs a coroutine function in the server's loop; returns or raises what it does."""
        return asyncio.run_coroutine_threadsafe(function(*args, **kwargs), self._loop).result()

    def play(
        self,
        session: str,
        scenario: Scenario,
        faults: Iterable[str] = (),
        speed: float | None = None,
    ) -> None:
        """Answers every request of a session with one scenario from now on.

        Args:
            faults, speed: as `MockServer.assign` has them.
        """
        how: dict[str, Any] = {"named": scenario.name, "faults": faults, "speed": speed}
        self.ask(self.server.assign, session, (scenario,), **how)

    def exchanges(self, session: str) -> tuple[Exchange, ...]:
        """The exchanges of a session so far, as they are now, not as they become."""
        return self.ask(self._exchanges, session)

    def _exchanges(self, session: str) -> tuple[Exchange, ...]:
        found = self.server.sessions.find(session)
        return () if found is None else tuple(exchange.copy() for exchange in found.journal)

    def settled_exchanges(self, session: str, seconds: float) -> tuple[Exchange, ...]:
        """The exchanges of a session, once every answer is over, or after some seconds."""
        until = time.monotonic() + seconds
        while True:
            exchanges = self.exchanges(session)
            if not any(exchange.in_use for exchange in exchanges) or time.monotonic() > until:
                return exchanges
            time.sleep(_LOOK)

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait()
        if self._failure is not None:
            raise self._failure
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._stopping is not None:
            self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join()

    def _run(self) -> None:
        exempt_thread()
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        try:
            await self.server.start()
        except Exception as error:  # noqa: BLE001 - it is raised where the `with` block begins
            await self.server.stop()  # it may listen, and its proxy not
            self._failure = error
            self._ready.set()
            return
        self._stopping = asyncio.Event()
        self._ready.set()
        await self._stopping.wait()
        await self.server.stop()
