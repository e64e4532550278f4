"""Shared state of processes on any machines, in Valkey or Redis (the extra `redis`).

Keys, after the prefix of the URL: `sessions` and `evicted` (sorted by last use), `processes`
(each with the time of its last sign of life), `ended` (those that ended without a word), and for
each session `NAME/journal`, `/finished`, `/played`, `/attempts`, `/answers`, `/conversations`,
`/forgotten`, `/about`, `/setup`. The keys of a session expire when it was not used for `ttl`
seconds.
"""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qs, urlsplit, urlunsplit

from mockllm.errors import UsageError
from mockllm.replay.journal_entries import Stored
from mockllm.replay.shared_session import (
    Attempt,
    Claim,
    FindAnswer,
    FindConversation,
    Number,
    StateOperation,
    Turn,
)
from mockllm.server.state.store import (
    BOUNDS,
    Batch,
    Bounds,
    Names,
    Setup,
    StoreError,
    ended_gap,
)

__all__ = ["RedisStore"]

_PARTS = (
    "journal",
    "played",
    "attempts",
    "answers",
    "kept",
    "conversations",
    "forgotten",
    "about",
)
_COMPARISONS = 5
"""So often a process compares its clock with the server's before it answers requests."""

_HEARTBEAT = 1.0
_ALIVE = 5.0
"""A process without a sign of life for so many seconds has ended."""

_WAIT = 5.0
"""For so many seconds a process waits for the others, and for the server."""

_ATTEMPT = """
local tried = tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or '0')
if tried < tonumber(ARGV[2]) then redis.call('HSET', KEYS[1], ARGV[1], tried + 1)
else redis.call('HDEL', KEYS[1], ARGV[1]) end
return tried
"""
_CLAIM = """
for place, turn in ipairs(ARGV) do
  if place > 1 and redis.call('ZADD', KEYS[1], 'NX', ARGV[1], turn) == 1 then return place - 2 end
end
return -1
"""
_CREATE = """
if redis.call('ZSCORE', KEYS[1], ARGV[1]) then return 0 end
redis.call('ZADD', KEYS[1], ARGV[2], ARGV[1])
return 1
"""


def _turn_key(turn: Turn) -> str:
    return f"{turn[1]} {turn[0]}"


def _turn_of(key: bytes) -> Turn:
    index, _, name = key.decode().partition(" ")
    return name, int(index)


class RedisStore:
    """State in Valkey or Redis.

    Args:
        url: `redis://` or `rediss://` with host, port, database; `?ttl=SECONDS` and `?prefix=TEXT`
            are read here, other parameters by the client.

    Raises:
        UsageError: the client is not installed, or the URL is wrong.
    """

    def __init__(self, url: str, bounds: Bounds = BOUNDS) -> None:
        try:
            import redis.asyncio as client
            from redis.exceptions import RedisError
        except ImportError:
            raise UsageError(
                "--state redis://... needs the client of Redis: "
                "pip install 'mockllm-harness[redis]'"
            ) from None
        self._errors = (RedisError, OSError, TimeoutError)
        parts = urlsplit(url)
        query = parse_qs(parts.query)
        self._prefix = query.pop("prefix", ["mockllm:"])[-1]
        ttl = query.pop("ttl", ["3600"])[-1]
        if not ttl.isascii() or not ttl.isdecimal() or not 0 < int(ttl) < 10**9:
            raise UsageError(f"--state: ttl must be a number of seconds, got {ttl!r}")
        self._ttl = int(ttl)
        rest = "&".join(f"{name}={value}" for name, values in query.items() for value in values)
        self._shown = f"{parts.hostname}:{parts.port or 6379}"
        try:
            self._redis: Any = client.Redis.from_url(
                urlunsplit((parts.scheme, parts.netloc, parts.path, rest, "")),
                socket_timeout=_WAIT,
                socket_connect_timeout=_WAIT,
                max_connections=64,
            )
        except (ValueError, TypeError) as error:
            raise UsageError(f"--state {parts.scheme}://{self._shown}: {error}") from None
        self._bounds = bounds
        self._process = ""
        self._flush: Callable[[], Awaitable[str]] | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._attempt = self._redis.register_script(_ATTEMPT)
        self._claim = self._redis.register_script(_CLAIM)
        self._create = self._redis.register_script(_CREATE)
        self._clocks: deque[tuple[float, float]] = deque(maxlen=60)
        self.ahead = 0.0

    async def _do(self, work: Awaitable[Any]) -> Any:
        try:
            async with asyncio.timeout(_WAIT):
                return await work
        except self._errors as error:
            with suppress(*self._errors):
                # The client takes those that the server closed for good ones: each would fail.
                await self._redis.connection_pool.disconnect(inuse_connections=False)
            what = str(error) or type(error).__name__
            raise StoreError(f"{self._shown}: {what}") from None

    def _key(self, *parts: str) -> str:
        return self._prefix + "/".join(parts)

    async def open(self, process: str, answers: Mapping[str, Callable[[], Awaitable[str]]]) -> None:
        self._process, self._flush = process, answers["flush"]
        with suppress(StoreError):  # it may come later
            for _ in range(_COMPARISONS):
                await self._compare_clocks()
            await self._beat()
        self._tasks = [
            asyncio.create_task(self._live()),
            asyncio.create_task(self._listen()),
        ]

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        try:
            await self._do(self._redis.zrem(self._key("processes"), self._process))
        finally:
            with suppress(*self._errors):
                await self._redis.aclose()

    async def _beat(self) -> None:
        """Gives a sign of life, and compares the clocks."""
        await self._compare_clocks()
        now = time.time() + self.ahead
        await self._do(self._redis.zadd(self._key("processes"), {self._process: now}))

    async def _compare_clocks(self) -> None:
        """Reads the clock of the server; the answer that came fastest counts. Clocks that differ
        by less than it took are taken for the same, or the requests of one machine would change
        their order."""
        before = time.time()
        seconds, micros = await self._do(self._redis.time())
        took = time.time() - before
        self._clocks.append((took, seconds + micros / 1_000_000 - before - took / 2))
        took, ahead = min(self._clocks)
        self.ahead = ahead if abs(ahead) > took else 0.0

    async def _live(self) -> None:
        while True:
            await asyncio.sleep(_HEARTBEAT)
            with suppress(StoreError):  # the next request says it
                await self._beat()

    async def _listen(self) -> None:
        """Flushes for each request of another process."""
        while True:
            listening = self._redis.pubsub()
            try:
                await listening.subscribe(self._key("flush"))
                while True:
                    message = await listening.get_message(
                        ignore_subscribe_messages=True, timeout=_HEARTBEAT
                    )
                    if message is not None:
                        await self._flush_for(message["data"].decode())
            except self._errors:
                await asyncio.sleep(0.1)
            finally:
                with suppress(*self._errors):
                    await listening.aclose()

    async def _flush_for(self, token: str) -> None:
        """Flushes, and answers the process that requested it."""
        other, _, answer = token.partition(" ")
        if other == self._process or self._flush is None:
            return
        try:
            await self._flush()
        except StoreError:
            return  # the other one sees that no answer comes
        await self._redis.rpush(answer, self._process)
        await self._redis.expire(answer, 60)

    async def flush_others(self) -> tuple[str, ...]:
        now = time.time() + self.ahead
        processes = self._key("processes")
        known = await self._do(self._redis.zrange(processes, 0, -1, withscores=True))
        others = {name.decode(): seen for name, seen in known if name.decode() != self._process}
        answer = self._key("flushed", uuid.uuid4().hex)
        deadline = time.monotonic() + _WAIT
        while others and time.monotonic() < deadline:
            # Again and again: one that has just lost its connection does not hear it at first.
            publish = self._redis.publish(self._key("flush"), f"{self._process} {answer}")
            await self._do(publish)
            done = await self._do(self._redis.blpop([answer], timeout=0.2))
            while done is not None:
                others.pop(done.decode() if isinstance(done, bytes) else done[1].decode(), None)
                done = await self._do(self._redis.lpop(answer))
            others, now = await self._still_there(others)
            if all(now - at > _ALIVE for at in others.values()):
                break
        gone = [name for name, at in others.items() if now - at > _ALIVE]
        if gone:
            await self._note_ended(gone, now)
        return tuple(name for name in others if name not in gone)

    async def figures_of_others(self) -> tuple[str, ...]:
        return ()

    async def _still_there(self, others: Mapping[str, float]) -> tuple[dict[str, float], float]:
        """Those processes that have not left, with their last sign of life; and the time."""
        fresh = await self._do(self._redis.zrange(self._key("processes"), 0, -1, withscores=True))
        seen = {name.decode(): at for name, at in fresh}
        there = {name: seen[name] for name in others if name in seen}
        return there, time.time() + self.ahead

    async def _note_ended(self, names: Sequence[str], at: float) -> None:
        pipe = self._redis.pipeline()
        pipe.zrem(self._key("processes"), *names)
        pipe.zadd(self._key("ended"), dict.fromkeys(names, at))
        pipe.expire(self._key("ended"), self._ttl)
        await self._do(pipe.execute())

    def taken(self, number: int) -> None:
        return  # what a process had not written is not known when it has ended

    async def check(self) -> None:
        await self._do(self._redis.ping())

    # Operations

    async def perform(self, session: str, operation: StateOperation) -> Any:
        match operation:
            case FindAnswer(id):
                return await self._do(self._redis.hget(self._key(session, "answers"), id))
            case FindConversation(id):
                found = await self._do(self._redis.hget(self._key(session, "conversations"), id))
                return None if found is None else found.decode()
            case Attempt(turn, failures):
                keys = [self._key(session, "attempts")]
                work = self._attempt(keys=keys, args=[_turn_key(turn), failures])
                return int(await self._do(work))
            case Claim(turns):
                keys = [self._key(session, "played")]
                args: list[float | str] = [time.time() + self.ahead, *map(_turn_key, turns)]
                place = int(await self._do(self._claim(keys=keys, args=args)))
                return None if place < 0 else place
            case Number():
                add = self._redis.hincrby(self._key(session, "about"), "number", 1)
                return int(await self._do(add)) - 1

    async def note(
        self,
        session: str,
        tokens: Mapping[str, str],
        deleted: Sequence[str],
        unused: Sequence[Turn],
    ) -> None:
        pipe = self._redis.pipeline()
        if tokens:
            pipe.hset(self._key(session, "conversations"), mapping=dict(tokens))
            pipe.expire(self._key(session, "conversations"), self._ttl)
        if deleted:
            pipe.hdel(self._key(session, "answers"), *deleted)
        if unused:
            pipe.zrem(self._key(session, "played"), *map(_turn_key, unused))
        await self._do(pipe.execute())

    # The journal

    async def append(
        self, batches: Sequence[Batch], lost: Mapping[str, Mapping[str, int]], written: int = 0
    ) -> None:
        sessions = {batch.session: batch.at for batch in batches}
        pipe = self._redis.pipeline()
        for batch in batches:
            self._add(pipe, batch)
        now = time.time() + self.ahead
        for session, outcomes in lost.items():
            sessions.setdefault(session, now)
            for outcome, count in outcomes.items():
                pipe.hincrby(self._key(session, "forgotten"), outcome, count)
        for session, at in sessions.items():
            pipe.zadd(self._key("sessions"), {session: at}, gt=True)
            pipe.hsetnx(self._key(session, "about"), "begun", at)
            for part in (*_PARTS, "setup"):
                pipe.expire(self._key(session, part), self._ttl)
            pipe.hget(self._key(session, "about"), "bytes")
        pipe.zcard(self._key("sessions"))
        *results, count = await self._do(pipe.execute())
        each = len(_PARTS) + 4  # commands for a session; the last one returns its bytes
        sizes = results[len(results) - each * len(sessions) :][each - 1 :: each]
        for session, size in zip(sessions, sizes, strict=True):
            await self._trim(session, int(size or 0))
        if count > self._bounds.sessions:
            await self._evict()

    def _add(self, pipe: Any, batch: Batch) -> None:
        session = batch.session
        outcomes = json.dumps(batch.outcomes).encode()
        pipe.rpush(self._key(session, "journal"), outcomes + b"\n" + batch.entries)
        pipe.hincrby(self._key(session, "about"), "bytes", len(batch.entries))
        for turn in batch.played:
            pipe.zadd(self._key(session, "played"), {_turn_key(turn): batch.at}, nx=True)
        if batch.answers:
            pipe.hset(self._key(session, "answers"), mapping=dict(batch.answers))
            kept = dict.fromkeys(batch.answers, batch.at)
            pipe.zadd(self._key(session, "kept"), kept)

    async def _trim(self, session: str, size: int) -> None:
        """Forgets the oldest entries and answers of a session that has too many.

        Args:
            size: of its entries, in bytes.
        """
        old = await self._do(
            self._redis.zrange(self._key(session, "kept"), 0, -self._bounds.answers - 1)
        )
        pipe = self._redis.pipeline()
        excess = size - self._bounds.session_bytes
        journal = self._key(session, "journal")
        while excess > 0:
            # Taken out in one step: of two processes that trim, each forgets what it took.
            taken = await self._do(self._redis.lpop(journal))
            if taken is None:
                break
            outcomes, _, entries = taken.partition(b"\n")
            excess -= len(entries)
            pipe.hincrby(self._key(session, "about"), "bytes", -len(entries))
            for outcome, count in json.loads(outcomes).items():
                pipe.hincrby(self._key(session, "forgotten"), outcome, count)
        if old:
            pipe.hdel(self._key(session, "answers"), *old)
            pipe.zrem(self._key(session, "kept"), *old)
        if len(pipe):
            await self._do(pipe.execute())

    async def _evict(self) -> None:
        """Evicts the sessions that were used least recently."""
        excess = await self._do(self._redis.zcard(self._key("sessions"))) - self._bounds.sessions
        if excess <= 0:
            return
        for name, at in await self._do(self._redis.zpopmin(self._key("sessions"), excess)):
            session = name.decode()
            pipe = self._redis.pipeline()
            pipe.delete(*(self._key(session, part) for part in _PARTS))
            pipe.zadd(self._key("evicted"), {session: at})
            pipe.expire(self._key("evicted"), self._ttl)
            pipe.exists(self._key(session, "setup"))
            *_, has_setup = await self._do(pipe.execute())
            if has_setup:
                gone = {"gone": "1", "body": b""}
                await self._do(self._redis.hset(self._key(session, "setup"), mapping=gone))

    async def names(self) -> Names:
        old = time.time() + self.ahead - self._ttl
        pipe = self._redis.pipeline()
        for key in ("sessions", "evicted"):
            pipe.zremrangebyscore(self._key(key), "-inf", old)
            pipe.zrange(self._key(key), 0, -1)
        _, known, _, evicted = await self._do(pipe.execute())
        living = {name.decode() for name in known}
        return Names(
            tuple(name.decode() for name in known),
            tuple(name.decode() for name in evicted if name.decode() not in living),
        )

    async def load(self, session: str) -> Stored | None:
        pipe = self._redis.pipeline()
        pipe.zscore(self._key("sessions"), session)
        pipe.zscore(self._key("evicted"), session)
        pipe.lrange(self._key(session, "journal"), 0, -1)
        pipe.zrange(self._key(session, "played"), 0, -1)
        pipe.hgetall(self._key(session, "forgotten"))
        pipe.hget(self._key(session, "about"), "begun")
        pipe.zrange(self._key("ended"), 0, -1, withscores=True)
        used, evicted, journal, played, forgotten, begun, ended = await self._do(pipe.execute())
        if used is None and evicted is None:
            return None
        since = float(begun or 0)
        gaps = [ended_gap(name.decode(), at) for name, at in ended if begun and at >= since]
        return Stored(
            [batch.partition(b"\n")[2] for batch in journal],
            [_turn_of(key) for key in played],
            {outcome.decode(): int(count) for outcome, count in forgotten.items()},
            evicted is not None,
            tuple(gaps),
            {name.decode() for name, _ in ended},
        )

    # Sessions made over HTTP

    async def create(self, session: str, setup: Setup | None) -> bool:
        now = time.time() + self.ahead
        sessions = [self._key("sessions")]
        created = bool(await self._do(self._create(keys=sessions, args=[session, now])))
        if not created:
            return False
        pipe = self._redis.pipeline()
        if setup is not None:
            pipe.delete(*(self._key(session, part) for part in (*_PARTS, "setup")))
            pipe.zrem(self._key("evicted"), session)
            fields = {"version": setup.version, "body": setup.body, "gone": ""}
            pipe.hset(self._key(session, "setup"), mapping=fields)
            pipe.expire(self._key(session, "setup"), self._ttl)
        pipe.hsetnx(self._key(session, "about"), "begun", now)
        pipe.expire(self._key(session, "about"), self._ttl)
        await self._do(pipe.execute())
        await self._evict()
        return True

    async def delete(self, session: str) -> None:
        pipe = self._redis.pipeline()
        pipe.delete(*(self._key(session, part) for part in (*_PARTS, "setup")))
        pipe.zrem(self._key("sessions"), session)
        pipe.zrem(self._key("evicted"), session)
        await self._do(pipe.execute())

    async def reset(self, session: str) -> None:
        now = time.time() + self.ahead
        pipe = self._redis.pipeline()
        pipe.delete(*(self._key(session, part) for part in _PARTS))
        pipe.zadd(self._key("sessions"), {session: now})
        pipe.zrem(self._key("evicted"), session)
        pipe.hset(self._key(session, "about"), "begun", now)
        pipe.expire(self._key(session, "about"), self._ttl)
        await self._do(pipe.execute())

    async def setup(self, session: str, known: str | None) -> Setup | None:
        key = self._key(session, "setup")
        version, gone = await self._do(self._redis.hmget(key, "version", "gone"))
        if version is None:
            return None
        if gone or version.decode() == known:
            return Setup(version.decode(), b"", bool(gone))
        body = await self._do(self._redis.hget(key, "body"))
        return Setup(version.decode(), body or b"")
