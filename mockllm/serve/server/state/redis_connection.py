"""The connection to Valkey or Redis, with its errors, keys and clock, and who shares it."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from operator import methodcaller as command
from typing import Any
from urllib.parse import parse_qs, urlsplit, urlunsplit

from mockllm.core.errors import UsageError
from mockllm.serve.server.state.store import StoreError

Command = Callable[[Any], object]
"""Calls a method of the client, such as `methodcaller("zrange", key, 0, -1, withscores=True)`."""

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
            from redis.asyncio.retry import Retry
            from redis.backoff import NoBackoff
        except ImportError:
            raise UsageError(
                "--state redis://... needs the client of Redis: "
                "pip install 'mockllm-harness[redis]'"
            ) from None
        self.errors = (exceptions.RedisError, OSError, TimeoutError)
        broken = exceptions.ConnectionError
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
                # The server may have been started anew since a connection was last used.
                retry=Retry(NoBackoff(), 1, (broken,)),
                retry_on_error=[broken],
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

    def lasting(self, name: str, key: str, *args: Any, **options: Any) -> tuple[Command, Command]:
        """A command that writes to a key, and the one by which the key expires."""
        return command(name, key, *args, **options), command("expire", key, self.ttl)

    async def run(self, work: Callable[[], Awaitable[Any]]) -> Any:
        """Does `work` and returns its result.

        The client sends a command once more, on a new connection, where the connection breaks. So
        it must do no harm to do it twice.
        """
        try:
            async with asyncio.timeout(WAIT):
                return await work()
        except self.errors as error:
            what = str(error) or type(error).__name__
            # Where only the answer is lost, it was carried out.
            raise StoreError(f"{self._shown}: {what}", maybe_done=True) from None

    async def call(self, command: str, *args: Any, **options: Any) -> Any:
        """Calls one command of the client and returns its result."""
        return await self.run(lambda: getattr(self.redis, command)(*args, **options))

    async def run_once(self, script: Any, *args: str | float | bytes) -> Any:
        """Runs a script that must not be carried out twice, and returns its result."""
        token = self.key("once", uuid.uuid4().hex)
        return await self.run(lambda: script(keys=[token], args=[self.prefix, *args]))

    async def transact(self, *commands: Command) -> list[Any]:
        """The outcomes of some commands, which are carried out together."""

        async def work() -> list[Any]:
            pipe = self.redis.pipeline()
            for queue in commands:
                queue(pipe)
            outcomes: list[Any] = await pipe.execute() if commands else []
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


_COMPARISONS = 5
"""So often a process compares its clock with the server's before it answers requests."""

_HEARTBEAT = 1.0
_AGAIN = 0.05
_ALIVE = 5.0
"""A process without a sign of life for so many seconds has ended."""


class RedisProcesses:
    """This process among the others: signs of life, and requests to write what they have.

    Keys, after the prefix: `processes` (each with the time of its last sign of life), `runs`
    (of the server, when that was), `ended` (those that ended without a word), `ended-unseen` (see
    `_note_ended`), and `flushed/...` (answers). `flush` is a channel.
    """

    def __init__(self, connection: RedisConnection) -> None:
        self._connection = connection
        self._process = self._run = ""
        self._flush: Callable[[], Awaitable[str]] | None = None
        self._tasks: list[asyncio.Task[None]] = []

    async def join(self, process: str, flush: Callable[[], Awaitable[str]]) -> None:
        self._process, self._flush = process, flush
        with suppress(StoreError):  # it may come later
            for _ in range(_COMPARISONS):
                await self._connection.compare_clocks()
            await self._beat()
        self._tasks = [asyncio.create_task(self._live()), asyncio.create_task(self._listen())]

    async def leave(self) -> None:
        """Ends what `join` began."""
        running = set(self._tasks)
        while running:
            for task in running:
                task.cancel()
            # Again: the client loses a cancellation that meets it while it connects.
            _, running = await asyncio.wait(running, timeout=_AGAIN)
        connection = self._connection
        await connection.transact(
            command("zrem", connection.key("processes"), self._process),
            command("hdel", connection.key("runs"), self._process),
        )

    async def _beat(self) -> None:
        """Gives a sign of life, and compares the clocks.

        In a server that was started anew, only once everything is written that was answered while
        it was away, for which there are no marks.
        """
        connection = self._connection
        await connection.compare_clocks()
        run = await self._server_run()
        if run != self._run and self._flush is not None:
            await self._flush()
        self._run = run
        await connection.transact(
            command("zadd", connection.key("processes"), {self._process: connection.now}),
            *connection.lasting("hset", connection.key("runs"), self._process, run),
        )

    async def _server_run(self) -> str:
        """Another text whenever the server is started."""
        return str((await self._connection.call("info", "server"))["run_id"])

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
        call = self._connection.call
        await call("publish", self._connection.key("flush"), f"{self._process} {answer}")
        done = await call("blpop", [answer], timeout=0.2)
        answered: set[str] = set()
        while done is not None:
            answered.add(done.decode() if isinstance(done, bytes) else done[1].decode())
            done = await call("lpop", answer)
        return answered

    async def _seen(self) -> dict[str, float]:
        connection = self._connection
        key = connection.key("processes")
        known = await connection.call("zrange", key, 0, -1, withscores=True)
        return {name.decode(): at for name, at in known}

    async def _note_ended(self, names: Sequence[str], at: float) -> None:
        """Notes processes that have ended.

        One without a sign of life since the store was started may have answered while the store
        was away, and could leave no marks then: `ended-unseen`.
        """
        key, connection = self._connection.key, self._connection
        run = await self._server_run()
        runs = await connection.call("hmget", key("runs"), names)
        unseen = [name for name, last in zip(names, runs, strict=True) if last != run.encode()]
        commands: list[Command] = [
            command("zrem", key("processes"), *names),
            command("hdel", key("runs"), *names),
            *connection.lasting("zadd", key("ended"), dict.fromkeys(names, at)),
        ]
        if unseen:
            commands += connection.lasting("zadd", key("ended-unseen"), dict.fromkeys(unseen, at))
        await connection.transact(*commands)
