"""Shared state of processes on any machines, in Valkey or Redis (the extra `redis`).

Keys, after the prefix of the URL: `sessions` and `evicted` (sorted by last use), `sizes` (the bytes
of each session), `total` (of all of them, or more), `once/...` (what a script returned), those of
`redis_processes`, and for each session `NAME/journal`, `/played`, `/attempts`, `/answers`, `/kept`
(the ids of the answers in order), `/conversations`, `/forgotten`, `/about`, `/setup`. The keys of a
session expire when it was not used for `ttl` seconds.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from mockllm.replay.sessions.entry_packing import Stored
from mockllm.replay.sessions.shared_session import (
    Attempt,
    Claim,
    FindAnswer,
    FindConversation,
    Number,
    StateOperation,
    Turn,
)
from mockllm.server.state.redis_connection import RedisConnection
from mockllm.server.state.redis_processes import RedisProcesses
from mockllm.server.state.redis_scripts import APPEND, ATTEMPT, CLAIM, CREATE, NUMBER, PARTS
from mockllm.server.state.store import (
    BOUNDS,
    Batch,
    Bounds,
    Names,
    Setup,
    ended_gap,
)

__all__ = ["RedisStore"]


def _turn_key(turn: Turn) -> str:
    return f"{turn[1]} {turn[0]}"


def _turn_of(key: bytes) -> Turn:
    index, _, name = key.decode().partition(" ")
    return name, int(index)


class RedisStore:
    """State in Valkey or Redis.

    Args:
        url: see `RedisConnection`.

    Raises:
        UsageError: the client is not installed, or the URL is wrong.
    """

    def __init__(self, url: str, bounds: Bounds = BOUNDS) -> None:
        self._bounds = bounds
        self._connection = RedisConnection(url)
        self._processes = RedisProcesses(self._connection)
        self._redis = self._connection.redis
        self._append = self._redis.register_script(APPEND)
        self._attempt = self._redis.register_script(ATTEMPT)
        self._claim = self._redis.register_script(CLAIM)
        self._create = self._redis.register_script(CREATE)
        self._number = self._redis.register_script(NUMBER)

    @property
    def ahead(self) -> float:
        return self._connection.ahead

    def _key(self, *parts: str) -> str:
        return self._connection.key(*parts)

    async def open(self, process: str, answers: Mapping[str, Callable[[], Awaitable[str]]]) -> None:
        await self._processes.join(process, answers["flush"])

    async def close(self) -> None:
        try:
            await self._processes.leave()
        finally:
            await self._connection.close()

    async def flush_others(self) -> tuple[str, ...]:
        return await self._processes.flush_others()

    async def figures_of_others(self) -> tuple[str, ...]:
        return ()

    def taken(self, number: int) -> None:
        return  # what a process had not written is not known when it has ended

    async def check(self) -> None:
        await self._connection.run(self._redis.ping)

    # Operations

    async def perform(self, session: str, operation: StateOperation) -> Any:
        run, run_once = self._connection.run, self._connection.run_once
        match operation:
            case FindAnswer(id):
                return await run(lambda: self._redis.hget(self._key(session, "answers"), id))
            case FindConversation(id):
                key = self._key(session, "conversations")
                found = await run(lambda: self._redis.hget(key, id))
                return None if found is None else found.decode()
            case Attempt(turn, failures):
                return int(await run_once(self._attempt, session, _turn_key(turn), failures))
            case Claim(turns):
                keys = map(_turn_key, turns)
                place = int(await run_once(self._claim, session, self._connection.now, *keys))
                return None if place < 0 else place
            case Number():
                return int(await run_once(self._number, session))

    async def note(
        self,
        session: str,
        tokens: Mapping[str, str],
        deleted: Sequence[str],
        unused: Sequence[Turn],
    ) -> None:
        def fill(pipe: Any) -> None:
            if tokens:
                pipe.hset(self._key(session, "conversations"), mapping=dict(tokens))
                pipe.expire(self._key(session, "conversations"), self._connection.ttl)
            if deleted:
                pipe.hdel(self._key(session, "answers"), *deleted)
            if unused:
                pipe.zrem(self._key(session, "played"), *map(_turn_key, unused))

        await self._connection.transact(fill)

    # The journal

    async def append(
        self, batches: Sequence[Batch], lost: Mapping[str, Mapping[str, int]], written: int = 0
    ) -> None:
        values: list[str | float | bytes] = [len(batches)]
        for batch in batches:
            outcomes = json.dumps(batch.outcomes)
            values += [batch.session, batch.at, outcomes, batch.entries]
            values += [len(batch.played), *map(_turn_key, batch.played)]
            values.append(len(batch.answers))
            for answer in batch.answers.items():
                values += answer
        values.append(len(lost))
        for session, counts in lost.items():
            values += [session, self._connection.now, len(counts)]
            for count in counts.items():
                values += count
        await self._write(*values)

    async def _write(self, *values: str | float | bytes) -> None:
        """Runs `APPEND`; the bounds hold afterwards."""
        bounds = self._bounds
        limits = (bounds.sessions, bounds.session_bytes, bounds.answers, bounds.all_bytes)
        await self._connection.run_once(self._append, self._connection.ttl, *limits, *values)

    async def names(self) -> Names:
        old = self._connection.now - self._connection.ttl

        def fill(pipe: Any) -> None:
            for key in ("sessions", "evicted"):
                pipe.zremrangebyscore(self._key(key), "-inf", old)
                pipe.zrange(self._key(key), 0, -1)

        _, known, _, evicted = await self._connection.transact(fill)
        living = {name.decode() for name in known}
        return Names(
            tuple(name.decode() for name in known),
            tuple(name.decode() for name in evicted if name.decode() not in living),
        )

    async def load(self, session: str) -> Stored | None:
        def fill(pipe: Any) -> None:
            pipe.zscore(self._key("sessions"), session)
            pipe.zscore(self._key("evicted"), session)
            pipe.lrange(self._key(session, "journal"), 0, -1)
            pipe.zrange(self._key(session, "played"), 0, -1)
            pipe.hgetall(self._key(session, "forgotten"))
            pipe.hget(self._key(session, "about"), "begun")
            pipe.zrange(self._key("ended"), 0, -1, withscores=True)

        found = await self._connection.transact(fill)
        used, evicted, journal, played, forgotten, begun, ended = found
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
        now = self._connection.now
        if not await self._connection.run_once(self._create, session, now):
            return False

        def fill(pipe: Any) -> None:
            if setup is not None:
                self._forget(pipe, session, "setup")
                fields = {"version": setup.version, "body": setup.body, "gone": ""}
                pipe.hset(self._key(session, "setup"), mapping=fields)
                pipe.expire(self._key(session, "setup"), self._connection.ttl)
            pipe.hsetnx(self._key(session, "about"), "begun", now)
            pipe.expire(self._key(session, "about"), self._connection.ttl)

        await self._connection.transact(fill)
        await self._write(0, 0)
        return True

    async def delete(self, session: str) -> None:
        def fill(pipe: Any) -> None:
            self._forget(pipe, session, "setup")
            pipe.zrem(self._key("sessions"), session)

        await self._connection.transact(fill)

    async def reset(self, session: str) -> None:
        now = self._connection.now

        def fill(pipe: Any) -> None:
            self._forget(pipe, session)
            pipe.zadd(self._key("sessions"), {session: now})
            pipe.hset(self._key(session, "about"), "begun", now)
            pipe.expire(self._key(session, "about"), self._connection.ttl)

        await self._connection.transact(fill)

    def _forget(self, pipe: Any, session: str, *more: str) -> None:
        """Deletes what is known of a session. `total` stays as it is: it may be too high."""
        pipe.delete(*(self._key(session, part) for part in (*PARTS, *more)))
        pipe.zrem(self._key("evicted"), session)
        pipe.zrem(self._key("sizes"), session)

    async def setup(self, session: str, known: str | None) -> Setup | None:
        key, run = self._key(session, "setup"), self._connection.run
        version, gone = await run(lambda: self._redis.hmget(key, "version", "gone"))
        if version is None:
            return None
        if gone or version.decode() == known:
            return Setup(version.decode(), b"", bool(gone))
        body = await run(lambda: self._redis.hget(key, "body"))
        return Setup(version.decode(), body or b"")
