"""Shared state of processes on any machines, in Valkey or Redis (the extra `redis`).

Keys, after the prefix of the URL: `sessions` and `evicted` (sorted by last use), `sizes` (the bytes
of each session), `once/...` (what a script returned), `buckets/...` (those of quotas), those of
`RedisProcesses`, and for each session `NAME/journal` (a stream of batches), `/played`, `/attempts`,
`/answers` (ids, sorted by their batches), `/conversations`, `/forgotten`, `/facts`, `/setup`,
`/marks`. The keys of a session expire when it was not used for `ttl` seconds.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from importlib.resources import files
from operator import methodcaller as command
from typing import Any

from mockllm.core.quotas import Charge, Taken
from mockllm.play.replay.sessions.shared_session import (
    Attempt,
    Claim,
    Count,
    FindAnswer,
    FindConversation,
    Number,
    SharedSession,
    StateOperation,
    Stored,
)
from mockllm.serve.server.state.redis_connection import Command, RedisConnection, RedisProcesses
from mockllm.serve.server.state.store import (
    MOST_NAMES,
    Batch,
    Names,
    Setup,
    Totals,
    ended_gap,
    process_of,
    read_turn_key,
    turn_key,
)

_PARTS = ("journal", "played", "attempts", "answers", "conversations", "forgotten", "facts")
"""The keys of a session, without its setup."""

_SCRIPTS = ("append", "attempt", "claim", "count", "create", "forget", "take")
"""What the server does in one step: files in `lua`."""


def _script(name: str) -> str:
    folder = files("mockllm.serve.server.state") / "lua"
    return "".join((folder / f"{part}.lua").read_text("utf-8") for part in ("common", name))


class RedisStore:
    """State in Valkey or Redis."""

    def __init__(self, url: str) -> None:
        self._connection = RedisConnection(url)
        self._processes = RedisProcesses(self._connection)
        self.flush_others = self._processes.flush_others
        self._key = self._connection.key
        register = self._connection.redis.register_script
        self._scripts = {name: register(_script(name)) for name in _SCRIPTS}

    @property
    def clock_offset(self) -> float:
        return self._connection.clock_offset

    async def _run(self, script: str, session: str, *args: str | float | bytes) -> Any:
        return await self._connection.run_once(self._scripts[script], session, *args)

    async def open(self, process: str, answers: Mapping[str, Callable[[], Awaitable[str]]]) -> None:
        await self._processes.join(process, answers["flush"])

    async def close(self) -> None:
        try:
            await self._processes.leave()
        finally:
            await self._connection.close()

    async def figures_of_others(self) -> tuple[str, ...]:
        return ()

    async def check(self) -> None:
        await self._connection.call("ping")

    # Operations

    async def perform(self, session: str, operation: StateOperation) -> Any:
        match operation:
            case FindAnswer():
                return (await self.look_up(session, [operation]))[0]
            case FindConversation(id):
                key = self._key(session, "conversations")
                token = await self._connection.call("hget", key, id)
                return None if token is None else token.decode()
            case Attempt(turn, period):
                return int(await self._run("attempt", session, turn_key(turn), period))
            case Claim(turns):
                keys = map(turn_key, turns)
                place = int(await self._run("claim", session, self._connection.now, *keys))
                return None if place < 0 else place
            case Number():
                return int(await self._run("count", session, "number", 1))
            case Count(key, by):
                return int(await self._run("count", session, f"count {key}", by))

    async def look_up(self, session: str, operations: Sequence[StateOperation]) -> list[Any]:
        transact, facts = self._connection.transact, self._key(session, "facts")
        answers, journal = self._key(session, "answers"), self._key(session, "journal")
        found = await transact(
            *(
                command("zscore", answers, operation.id)
                if isinstance(operation, FindAnswer)
                else command("hget", facts, f"count {operation.key}")
                for operation in operations
                if isinstance(operation, FindAnswer | Count)
            )
        )
        outcomes: list[Any] = [None] * len(operations)
        places, reads = [], []
        for place, (operation, value) in enumerate(zip(operations, found, strict=True)):
            if isinstance(operation, Count):
                outcomes[place] = int(value or 0)
            elif value is not None:
                places.append(place)
                reads.append(command("xrange", journal, int(value), int(value)))
        for place, batches in zip(places, await transact(*reads), strict=True):
            outcomes[place] = batches[0][1][b"entries"] if batches else None
        return outcomes

    async def keep(self, session: SharedSession) -> None:
        commands: list[Command] = []
        if session.tokens:
            key = self._key(session.name, "conversations")
            commands += self._connection.lasting("hset", key, mapping=session.tokens)
        if session.deleted:
            commands.append(command("zrem", self._key(session.name, "answers"), *session.deleted))
        if session.unused:
            keys = map(turn_key, session.unused)
            commands.append(command("zrem", self._key(session.name, "played"), *keys))
        await self._connection.transact(*commands)

    async def take(self, charges: Sequence[Charge], now: float, force: bool) -> Taken:
        asked = [
            value
            for charge in charges
            for value in (charge.bucket, charge.limit.amount, charge.limit.seconds, charge.amount)
        ]
        # Lua would round a time.
        granted, *used = json.loads(await self._run("take", "", repr(now), int(force), *asked))
        return Taken(bool(granted), tuple(map(float, used)))

    # The journal

    async def mark(self, session: str, mark: str) -> None:
        now, lasting = self._connection.now, self._connection.lasting
        await self._connection.transact(
            command("zadd", self._key("sessions"), {session: now}, gt=True),  # never back
            *lasting("hsetnx", self._key(session, "facts"), "begun", now),
            *lasting("sadd", self._key(session, "marks"), mark),
        )

    async def append(self, batches: Sequence[Batch]) -> Totals:
        described = [
            {
                "session": batch.session,
                "at": repr(batch.at),  # Lua would round a number
                "outcomes": batch.outcomes,
                "played": list(map(turn_key, batch.played)),
                "answers": batch.answers,
                "lost": batch.lost,
                "cleared": batch.cleared,
            }
            for batch in batches
        ]
        entries = [batch.entries for batch in batches]
        parts, ttl = json.dumps([*_PARTS, "setup", "marks"]), self._connection.ttl
        totals = await self._run("append", "", ttl, parts, json.dumps(described), *entries)
        return Totals(*json.loads(totals))

    def _drop_expired(self) -> tuple[Command, ...]:
        """Removes the names of the sessions whose keys have expired, from all lists."""
        expired = self._connection.now - self._connection.ttl
        sessions, sizes = self._key("sessions"), self._key("sizes")
        return (
            command("zremrangebyscore", sessions, "-inf", expired),
            command("zremrangebyscore", self._key("evicted"), "-inf", expired),
            command("zinterstore", sizes, {sizes: 1, sessions: 0}),
        )

    async def sizes(self) -> dict[str, int]:
        *_, names, sizes = await self._connection.transact(
            *self._drop_expired(),
            command("zrange", self._key("sessions"), 0, -1),
            command("zrange", self._key("sizes"), 0, -1, withscores=True),
        )
        known = dict(sizes)
        return {name.decode(): int(known.get(name, 0)) for name in names}

    async def forget_oldest(self, session: str) -> int:
        return int(await self._run("forget", session))

    async def evict(self, session: str) -> None:
        evicted = self._key("evicted")
        await self._connection.transact(
            *self._remove(session),
            *await self._clear_ended(session),
            command("hdel", self._key(session, "setup"), "body"),
            *self._connection.lasting("zadd", evicted, {session: self._connection.now}),
            command("zremrangebyrank", evicted, 0, -MOST_NAMES - 1),
        )

    # Sessions

    async def names(self) -> Names:
        *_, known, evicted = await self._connection.transact(
            *self._drop_expired(),
            command("zrange", self._key("sessions"), 0, -1),
            command("zrange", self._key("evicted"), 0, -1),
        )
        living = {name.decode(): None for name in known}
        gone = tuple(name.decode() for name in evicted)
        return Names(tuple(living), tuple(name for name in gone if name not in living))

    async def load(self, session: str, after: int = 0) -> Stored | None:
        stream = self._key(session, "journal")
        outcomes = await self._connection.transact(
            command("zscore", self._key("sessions"), session),
            command("zscore", self._key("evicted"), session),
            command("xrange", stream, f"{after + 1}-0"),
            command("xrange", stream, count=1),
            command("xrevrange", stream, count=1),
            command("zrange", self._key(session, "played"), 0, -1),
            command("hgetall", self._key(session, "forgotten")),
            command("hget", self._key(session, "facts"), "begun"),
            command("zrange", self._key("ended"), 0, -1, withscores=True),
            command("smembers", self._key(session, "marks")),
            command("zrange", self._key("ended-unseen"), 0, -1),
        )
        used, evicted, journal, oldest, latest, played, forgotten, begun, ended, marks, unseen = (
            outcomes
        )
        if used is None and evicted is None:
            return None
        ends = [(name.decode(), at) for name, at in ended]
        marked = {process_of(mark.decode()) for mark in marks}
        # These may have answered in any session while they could not reach the store.
        anywhere = {name.decode() for name in unseen} if begun else set()
        since = float(begun or 0)
        return Stored(
            [batch[b"entries"] for _, batch in journal],
            [read_turn_key(key.decode()) for key in played],
            {outcome.decode(): int(count) for outcome, count in forgotten.items()},
            evicted is not None,
            tuple(
                ended_gap(name, at)
                for name, at in ends
                if name in marked or (name in anywhere and at >= since)
            ),
            {name for name, _ in ends},
            since,
            *(int(batch[0][0].split(b"-")[0]) if batch else 0 for batch in (oldest, latest)),
        )

    async def create(self, session: str, setup: Setup | None) -> bool:
        version, body = ("", b"") if setup is None else (setup.version, setup.body)
        ttl, now = self._connection.ttl, self._connection.now
        return bool(int(await self._run("create", session, now, ttl, version, body)))

    async def delete(self, session: str) -> None:
        await self._connection.transact(
            *self._remove(session),
            *await self._clear_ended(session),
            command("zrem", self._key("evicted"), session),
            command("delete", self._key(session, "setup")),
        )

    async def reset(self, session: str) -> None:
        now = self._connection.now
        await self._connection.transact(
            *self._remove(session),
            *await self._clear_ended(session),
            command("zrem", self._key("evicted"), session),
            command("zadd", self._key("sessions"), {session: now}),
            *self._connection.lasting("hset", self._key(session, "facts"), "begun", now),
        )

    async def _clear_ended(self, session: str) -> tuple[Command, ...]:
        """Removes the marks of processes that have ended; they make none any more."""
        marks, ended = await self._connection.transact(
            command("smembers", self._key(session, "marks")),
            command("zrange", self._key("ended"), 0, -1),
        )
        gone = {name.decode() for name in ended}
        old = [mark for mark in marks if process_of(mark.decode()) in gone]
        return (command("srem", self._key(session, "marks"), *old),) if old else ()

    def _remove(self, session: str) -> tuple[Command, ...]:
        """Deletes what is known of a session, but not its setup."""
        return (
            command("delete", *(self._key(session, part) for part in _PARTS)),
            *(command("zrem", self._key(names), session) for names in ("sessions", "sizes")),
        )

    async def setup(self, session: str, known: str | None) -> Setup | None:
        key = self._key(session, "setup")
        version, has_body = await self._connection.transact(
            command("hget", key, "version"), command("hexists", key, "body")
        )
        if version is None:
            return None
        if not has_body or version.decode() == known:
            return Setup(version.decode(), gone=not has_body)
        return Setup(version.decode(), await self._connection.call("hget", key, "body") or b"")
