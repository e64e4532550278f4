"""The connection to Valkey or Redis: the client, its errors, the names of keys, and the clock."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qs, urlsplit, urlunsplit

from mockllm.errors import UsageError
from mockllm.server.state.store import StoreError

WAIT = 5.0
"""For so many seconds a process waits for the others, and for the server."""


class RedisConnection:
    """Connections to one server.

    Args:
        url: `redis://` or `rediss://` with host, port, database; `?ttl=SECONDS` and `?prefix=TEXT`
            are read here, other parameters by the client.

    Raises:
        UsageError: the client is not installed, or the URL is wrong.
    """

    def __init__(self, url: str) -> None:
        try:
            import redis.asyncio as client
            from redis import exceptions
        except ImportError:
            raise UsageError(
                "--state redis://... needs the client of Redis: "
                "pip install 'mockllm-harness[redis]'"
            ) from None
        self.errors = (exceptions.RedisError, OSError, TimeoutError)
        self._slow = (exceptions.TimeoutError, TimeoutError)
        self._broken = (exceptions.ConnectionError, OSError)
        parts = urlsplit(url)
        query = parse_qs(parts.query)
        self.prefix = query.pop("prefix", ["mockllm:"])[-1]
        ttl = query.pop("ttl", ["3600"])[-1]
        if not ttl.isascii() or not ttl.isdecimal() or not 0 < int(ttl) < 10**9:
            raise UsageError(f"--state: ttl must be a number of seconds, got {ttl!r}")
        self.ttl = int(ttl)
        rest = "&".join(f"{name}={value}" for name, values in query.items() for value in values)
        self._shown = f"{parts.hostname}:{parts.port or 6379}"
        try:
            self.redis: Any = client.Redis.from_url(
                urlunsplit((parts.scheme, parts.netloc, parts.path, rest, "")),
                socket_timeout=WAIT,
                socket_connect_timeout=WAIT,
                max_connections=64,
            )
        except (ValueError, TypeError) as error:
            raise UsageError(f"--state {parts.scheme}://{self._shown}: {error}") from None
        self._clocks: deque[tuple[float, float]] = deque(maxlen=60)
        self.clock_offset = 0.0
        """By how many seconds the clock of the server is ahead of this process's."""

    def key(self, *parts: str) -> str:
        return self.prefix + "/".join(parts)

    @property
    def now(self) -> float:
        """The time of the server, in seconds."""
        return time.time() + self.clock_offset

    async def run(self, work: Callable[[], Awaitable[Any]]) -> Any:
        """What `work` returns.

        It is done again, on a new connection, where the connection breaks: the server may have
        been started anew since it was last used. So it must do no harm to do it twice.

        Raises:
            StoreError: the server cannot be reached, or refuses.
        """
        try:
            async with asyncio.timeout(WAIT):
                try:
                    return await work()
                except self._broken as error:
                    if isinstance(error, self._slow):
                        raise
                    await self._drop_connections()
                    return await work()
        except self.errors as error:
            await self._drop_connections()
            what = str(error) or type(error).__name__
            raise StoreError(f"{self._shown}: {what}") from None

    async def _drop_connections(self) -> None:
        """Closes those that are not in use. The client takes those that the server closed for good
        ones: each would fail."""
        with suppress(*self.errors):
            await self.redis.connection_pool.disconnect(inuse_connections=False)

    async def run_once(self, script: Any, *args: str | float | bytes) -> Any:
        """What a script returns that must not be carried out twice."""
        token = self.key("once", uuid.uuid4().hex)
        return await self.run(lambda: script(keys=[token], args=[self.prefix, *args]))

    async def transact(self, fill: Callable[[Any], object]) -> list[Any]:
        """The outcomes of some commands, which are carried out together."""

        async def work() -> list[Any]:
            pipe = self.redis.pipeline()
            fill(pipe)
            outcomes: list[Any] = await pipe.execute() if len(pipe) else []
            return outcomes

        outcomes: list[Any] = await self.run(work)
        return outcomes

    async def compare_clocks(self) -> None:
        """Reads the clock of the server; the answer that came fastest counts. Clocks that differ
        by less than it took are taken for the same, or the requests of one machine would change
        their order."""
        before = time.time()
        seconds, micros = await self.run(self.redis.time)
        took = time.time() - before
        self._clocks.append((took, seconds + micros / 1_000_000 - before - took / 2))
        took, offset = min(self._clocks)
        self.clock_offset = offset if abs(offset) > took else 0.0

    async def close(self) -> None:
        with suppress(*self.errors):
            await self.redis.aclose()
