"""Gateways that run in a thread of this process."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from aiohttp import web

from tests.timeouts import GIVE_UP


class Gateways:
    """Starts gateways, each on a port of its own, while `running` lasts."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._runners: list[web.AppRunner] = []

    def start(self, app: web.Application) -> str:
        """The URL of a gateway."""
        return self._done(self._start(app))

    async def _start(self, app: web.Application) -> str:
        runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0)
        self._runners.append(runner)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        return f"http://127.0.0.1:{runner.addresses[0][1]}"

    def stop(self) -> None:
        """Ends all of them."""
        self._done(self._stop())

    async def _stop(self) -> None:
        await asyncio.gather(*(runner.cleanup() for runner in self._runners))
        self._runners.clear()

    def _done(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(GIVE_UP)


@contextmanager
def running() -> Iterator[Gateways]:
    """Gateways until the block ends."""
    loop = asyncio.new_event_loop()
    with ThreadPoolExecutor(1) as thread:
        thread.submit(loop.run_forever)
        gateways = Gateways(loop)
        try:
            yield gateways
        finally:
            gateways.stop()
            loop.call_soon_threadsafe(loop.stop)
    loop.close()
