"""The processes that share a Valkey or Redis: signs of life, and requests to write what they have.

Keys, after the prefix: `processes` (each with the time of its last sign of life), `ended` (those
that ended without a word), and `flushed/...` (answers). `flush` is a channel.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any

from mockllm.server.state.redis_connection import WAIT, RedisConnection
from mockllm.server.state.store import StoreError

_COMPARISONS = 5
"""So often a process compares its clock with the server's before it answers requests."""

_HEARTBEAT = 1.0
_AGAIN = 0.05
_ALIVE = 5.0
"""A process without a sign of life for so many seconds has ended."""


class RedisProcesses:
    """This process among the others."""

    def __init__(self, connection: RedisConnection) -> None:
        self._connection = connection
        self._process = ""
        self._flush: Callable[[], Awaitable[str]] | None = None
        self._tasks: list[asyncio.Task[None]] = []

    async def join(self, process: str, flush: Callable[[], Awaitable[str]]) -> None:
        self._process, self._flush = process, flush
        with suppress(StoreError):  # it may come later
            for _ in range(_COMPARISONS):
                await self._connection.compare_clocks()
            await self._beat()
        self._tasks = [
            asyncio.create_task(self._live()),
            asyncio.create_task(self._listen()),
        ]

    async def leave(self) -> None:
        """Ends what `join` began."""
        running = set(self._tasks)
        while running:
            for task in running:
                task.cancel()
            # Again: the client loses a cancellation that meets it while it connects.
            _, running = await asyncio.wait(running, timeout=_AGAIN)
        connection = self._connection
        await connection.run(
            lambda: connection.redis.zrem(connection.key("processes"), self._process)
        )

    async def _beat(self) -> None:
        """Gives a sign of life, and compares the clocks."""
        connection = self._connection
        await connection.compare_clocks()
        alive = {self._process: connection.now}
        await connection.run(lambda: connection.redis.zadd(connection.key("processes"), alive))

    async def _live(self) -> None:
        while True:
            await asyncio.sleep(_HEARTBEAT)
            with suppress(StoreError):  # the next request says it
                await self._beat()

    async def _listen(self) -> None:
        """Flushes for each request of another process."""
        while True:
            listening = self._connection.redis.pubsub()
            try:
                await listening.subscribe(self._connection.key("flush"))
                while True:
                    message = await listening.get_message(
                        ignore_subscribe_messages=True, timeout=_HEARTBEAT
                    )
                    if message is not None:
                        await self._flush_for(message["data"].decode())
            except self._connection.errors:
                await asyncio.sleep(0.1)
            finally:
                with suppress(*self._connection.errors):
                    await listening.aclose()

    async def _flush_for(self, token: str) -> None:
        other, _, answer = token.partition(" ")
        if other == self._process or self._flush is None:
            return
        try:
            await self._flush()
        except StoreError:
            return  # the other one sees that no answer comes
        redis = self._connection.redis
        await redis.rpush(answer, self._process)
        await redis.expire(answer, 60)

    async def flush_others(self) -> tuple[str, ...]:
        others, now = await self._seen(), self._connection.now
        others.pop(self._process, None)
        answer = self._connection.key("flushed", uuid.uuid4().hex)
        deadline = time.monotonic() + WAIT
        while others and time.monotonic() < deadline:
            for name in await self._request_flush(answer):
                others.pop(name, None)
            seen, now = await self._seen(), self._connection.now
            others = {name: seen[name] for name in others if name in seen}
            if all(now - at > _ALIVE for at in others.values()):
                break
        gone = [name for name, at in others.items() if now - at > _ALIVE]
        if gone:
            await self._note_ended(gone, now)
        return tuple(name for name in others if name not in gone)

    async def _request_flush(self, answer: str) -> set[str]:
        """The processes that have answered, after at most 0.2 s. To be called again and again: one
        that has just lost its connection does not hear it at first."""
        run, redis = self._connection.run, self._connection.redis
        text = f"{self._process} {answer}"
        await run(lambda: redis.publish(self._connection.key("flush"), text))
        done = await run(lambda: redis.blpop([answer], timeout=0.2))
        answered: set[str] = set()
        while done is not None:
            answered.add(done.decode() if isinstance(done, bytes) else done[1].decode())
            done = await run(lambda: redis.lpop(answer))
        return answered

    async def _seen(self) -> dict[str, float]:
        connection = self._connection
        key = connection.key("processes")
        known = await connection.run(lambda: connection.redis.zrange(key, 0, -1, withscores=True))
        return {name.decode(): at for name, at in known}

    async def _note_ended(self, names: Sequence[str], at: float) -> None:
        key, ended = self._connection.key, dict.fromkeys(names, at)

        def fill(pipe: Any) -> None:
            pipe.zrem(key("processes"), *names)
            pipe.zadd(key("ended"), ended)
            pipe.expire(key("ended"), self._connection.ttl)

        await self._connection.transact(fill)
