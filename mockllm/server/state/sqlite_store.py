"""Shared state of processes on one machine, in a database file (SQLite)."""

from __future__ import annotations

import asyncio
import json
import mmap
import os
import sqlite3
import struct
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

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
from mockllm.server.state.peers import PeerListener, ask_peers
from mockllm.server.state.store import (
    BOUNDS,
    Batch,
    Bounds,
    Names,
    Setup,
    StoreError,
    ended_gap,
)

__all__ = ["SqliteStore"]

_SCHEMA = """
CREATE TABLE IF NOT EXISTS sessions (
    name TEXT PRIMARY KEY, used REAL, begun REAL, bytes INTEGER DEFAULT 0, number INTEGER DEFAULT 0,
    evicted INTEGER DEFAULT 0, again INTEGER DEFAULT 0);
CREATE TABLE IF NOT EXISTS batches (
    id INTEGER PRIMARY KEY, session TEXT, entries BLOB, outcomes TEXT);
CREATE INDEX IF NOT EXISTS batches_of ON batches (session, id);
CREATE TABLE IF NOT EXISTS played (
    id INTEGER PRIMARY KEY, session TEXT, scenario TEXT, turn INTEGER,
    UNIQUE (session, scenario, turn));
CREATE TABLE IF NOT EXISTS attempts (
    session TEXT, scenario TEXT, position INTEGER, tried INTEGER,
    PRIMARY KEY (session, scenario, position));
CREATE TABLE IF NOT EXISTS answers (
    number INTEGER PRIMARY KEY, session TEXT, id TEXT, entry BLOB, UNIQUE (session, id));
CREATE TABLE IF NOT EXISTS conversations (
    session TEXT, id TEXT, token TEXT, PRIMARY KEY (session, id));
CREATE TABLE IF NOT EXISTS forgotten (
    session TEXT, outcome TEXT, count INTEGER, PRIMARY KEY (session, outcome));
CREATE TABLE IF NOT EXISTS setups (session TEXT PRIMARY KEY, version TEXT, body BLOB, gone INTEGER);
CREATE TABLE IF NOT EXISTS processes (name TEXT PRIMARY KEY, pid INTEGER, port INTEGER, ended REAL,
    written INTEGER DEFAULT 0);
"""
_CLEAR = (
    "DELETE FROM batches WHERE session = ?",
    "DELETE FROM played WHERE session = ?",
    "DELETE FROM attempts WHERE session = ?",
    "DELETE FROM answers WHERE session = ?",
    "DELETE FROM conversations WHERE session = ?",
    "DELETE FROM forgotten WHERE session = ?",
)
_COUNT = struct.Struct("<Q")
_BUSY = 10.0
"""For so many seconds a process waits for another one that writes."""

_Result = TypeVar("_Result")


class SqliteStore:
    """State in a database file; one thread of each process works with it."""

    ahead = 0.0

    def __init__(self, path: Path, bounds: Bounds = BOUNDS) -> None:
        self._path, self._bounds = path, bounds
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="mockllm-state")
        self._database: sqlite3.Connection | None = None
        self._process = ""
        self._listener: PeerListener | None = None
        self._taken: mmap.mmap | None = None

    async def open(self, process: str, answers: Mapping[str, Callable[[], Awaitable[str]]]) -> None:
        self._process = process
        self._listener = PeerListener(answers)
        port = await self._listener.open()
        try:
            await self._run(self._open, port)
        except BaseException:
            await self._listener.close()
            self._thread.shutdown()
            raise

    def _open(self, port: int) -> None:
        count = self._count_of(self._process)
        count.write_bytes(bytes(_COUNT.size))
        with count.open("r+b") as file:
            self._taken = mmap.mmap(file.fileno(), _COUNT.size)
        database = sqlite3.connect(
            self._path, timeout=_BUSY, isolation_level=None, check_same_thread=False
        )
        self._database = database
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = OFF")  # a machine that fails loses it all anyway
        database.executescript(_SCHEMA)
        database.execute(
            "INSERT OR REPLACE INTO processes (name, pid, port) VALUES (?, ?, ?)",
            (self._process, os.getpid(), port),
        )

    async def close(self) -> None:
        if self._database is not None:
            await self._run(self._close)
        if self._listener is not None:
            await self._listener.close()
        self._thread.shutdown()

    def _count_of(self, process: str) -> Path:
        """The file with the number of entries that a process has taken."""
        return self._path.with_name(f"{self._path.name}.{process}")

    def taken(self, number: int) -> None:
        if self._taken is not None:
            _COUNT.pack_into(self._taken, 0, number)

    def _close(self) -> None:
        if self._taken is not None:
            self._taken.close()
            self._count_of(self._process).unlink(missing_ok=True)
        self._db.execute("DELETE FROM processes WHERE name = ?", (self._process,))
        self._db.close()
        self._database = None

    @property
    def _db(self) -> sqlite3.Connection:
        if self._database is None:
            raise sqlite3.OperationalError("it is not open")
        return self._database

    async def _run(self, work: Callable[..., _Result], *args: Any) -> _Result:
        def run() -> _Result:
            try:
                return work(*args)
            except sqlite3.Error as error:
                if self._database is not None and self._database.in_transaction:
                    self._database.rollback()
                raise StoreError(f"{self._path}: {error}") from None

        return await asyncio.get_running_loop().run_in_executor(self._thread, run)

    def _all(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        return self._db.execute(query, values).fetchall()

    def _one(self, query: str, *values: object) -> Any:
        """The first column of the first row; None where there is none."""
        row = self._db.execute(query, values).fetchone()
        return None if row is None else row[0]

    async def check(self) -> None:
        await self._run(self._one, "SELECT 1")

    # Operations

    async def perform(self, session: str, operation: StateOperation) -> Any:
        return await self._run(self._perform, session, operation)

    def _perform(self, session: str, operation: StateOperation) -> Any:
        match operation:
            case FindAnswer(id):
                find = "SELECT entry FROM answers WHERE session = ? AND id = ?"
                return self._one(find, session, id)
            case FindConversation(id):
                find = "SELECT token FROM conversations WHERE session = ? AND id = ?"
                return self._one(find, session, id)
        self._db.execute("BEGIN IMMEDIATE")
        outcome: int | None
        match operation:
            case Attempt(turn, failures):
                outcome = self._attempt(session, turn, failures)
            case Claim(turns):
                outcome = self._claim(session, turns)
            case Number():
                self._use(session, time.time())
                count = "UPDATE sessions SET number = number + 1 WHERE name = ? RETURNING number"
                outcome = self._one(count, session) - 1
        self._db.execute("COMMIT")
        return outcome

    def _attempt(self, session: str, turn: Turn, failures: int) -> int:
        key = (session, *turn)
        find = "SELECT tried FROM attempts WHERE session = ? AND scenario = ? AND position = ?"
        tried = self._one(find, *key) or 0
        if tried < failures:
            row = (*key, tried + 1)
            self._db.execute("INSERT OR REPLACE INTO attempts VALUES (?, ?, ?, ?)", row)
        else:
            remove = "DELETE FROM attempts WHERE session = ? AND scenario = ? AND position = ?"
            self._db.execute(remove, key)
        return int(tried)

    def _claim(self, session: str, turns: Sequence[Turn]) -> int | None:
        for place, turn in enumerate(turns):
            if self._note_played(session, turn):
                return place
        return None

    def _note_played(self, session: str, turn: Turn) -> bool:
        """Whether it was not played before."""
        add = "INSERT OR IGNORE INTO played (session, scenario, turn) VALUES (?, ?, ?)"
        return self._db.execute(add, (session, *turn)).rowcount > 0

    async def note(
        self,
        session: str,
        tokens: Mapping[str, str],
        deleted: Sequence[str],
        unused: Sequence[Turn],
    ) -> None:
        def work() -> None:
            self._db.execute("BEGIN IMMEDIATE")
            for id, token in tokens.items():
                row = (session, id, token)
                self._db.execute("INSERT OR REPLACE INTO conversations VALUES (?, ?, ?)", row)
            for id in deleted:
                delete = "DELETE FROM answers WHERE session = ? AND id = ?"
                self._db.execute(delete, (session, id))
            for turn in unused:
                delete = "DELETE FROM played WHERE session = ? AND scenario = ? AND turn = ?"
                self._db.execute(delete, (session, *turn))
            self._db.execute("COMMIT")

        await self._run(work)

    # The journal

    async def append(
        self, batches: Sequence[Batch], lost: Mapping[str, Mapping[str, int]], written: int = 0
    ) -> None:
        await self._run(self._append, batches, lost, written)

    def _append(
        self, batches: Sequence[Batch], lost: Mapping[str, Mapping[str, int]], written: int
    ) -> None:
        self._db.execute("BEGIN IMMEDIATE")
        for batch in batches:
            self._add(batch)
        for session, outcomes in lost.items():
            self._use(session, time.time())
            self._forget(session, outcomes)
        self._evict()
        note = "UPDATE processes SET written = max(written, ?) WHERE name = ?"
        self._db.execute(note, (written, self._process))
        self._db.execute("COMMIT")

    def _add(self, batch: Batch) -> None:
        session = batch.session
        self._use(session, batch.at)
        for turn in batch.played:
            self._note_played(session, turn)
        add = "INSERT INTO batches (session, entries, outcomes) VALUES (?, ?, ?)"
        self._db.execute(add, (session, batch.entries, json.dumps(batch.outcomes)))
        self._db.executemany(
            "INSERT OR REPLACE INTO answers (session, id, entry) VALUES (?, ?, ?)",
            [(session, id, entry) for id, entry in batch.answers.items()],
        )
        grow = "UPDATE sessions SET bytes = bytes + ? WHERE name = ?"
        self._db.execute(grow, (len(batch.entries), session))
        self._trim(session)

    def _use(self, session: str, at: float) -> None:
        """Notes that a session is in use; one that was evicted begins anew."""
        self._db.execute(
            "INSERT INTO sessions (name, used, begun) VALUES (?, ?, ?) "
            "ON CONFLICT (name) DO UPDATE SET used = max(used, excluded.used), "
            "again = max(again, evicted), evicted = 0",
            (session, at, at),
        )

    def _trim(self, session: str) -> None:
        """Forgets the oldest entries and answers of a session that has too many."""
        excess = self._one("SELECT bytes FROM sessions WHERE name = ?", session)
        excess -= self._bounds.session_bytes
        find = "SELECT id, length(entries), outcomes FROM batches WHERE session = ? ORDER BY id"
        forgotten: Counter[str] = Counter()
        freed, last = 0, None
        if excess > 0:
            for id, size, outcomes in self._db.execute(find, (session,)):
                if freed >= excess:
                    break
                freed, last = freed + size, id
                forgotten.update(json.loads(outcomes))
        if last is not None:
            remove = "DELETE FROM batches WHERE session = ? AND id <= ?"
            self._db.execute(remove, (session, last))
            shrink = "UPDATE sessions SET bytes = bytes - ? WHERE name = ?"
            self._db.execute(shrink, (freed, session))
            self._forget(session, forgotten)
        self._db.execute(
            "DELETE FROM answers WHERE session = ? AND number <= (SELECT number FROM answers "
            "WHERE session = ? ORDER BY number DESC LIMIT 1 OFFSET ?)",
            (session, session, self._bounds.answers),
        )

    def _forget(self, session: str, outcomes: Mapping[str, int]) -> None:
        for outcome, count in outcomes.items():
            self._db.execute(
                "INSERT INTO forgotten VALUES (?, ?, ?) ON CONFLICT DO UPDATE "
                "SET count = count + excluded.count",
                (session, outcome, count),
            )

    def _evict(self) -> None:
        find = "SELECT name FROM sessions WHERE evicted = 0 ORDER BY used DESC LIMIT -1 OFFSET ?"
        for (name,) in self._all(find, self._bounds.sessions):
            self._clear(name)
            note = "UPDATE sessions SET evicted = 1, bytes = 0, number = 0 WHERE name = ?"
            self._db.execute(note, (name,))
            self._db.execute("UPDATE setups SET gone = 1, body = '' WHERE session = ?", (name,))

    def _clear(self, session: str) -> None:
        for query in _CLEAR:
            self._db.execute(query, (session,))

    async def flush_others(self) -> tuple[str, ...]:
        answers, pids = await self._ask("flush")
        silent = [name for name, answer in answers.items() if answer is None]
        gone = [name for name in silent if not _is_running(pids[name])]
        if gone:
            await self._run(self._note_ended, gone)
        return tuple(name for name in silent if name not in gone)

    async def figures_of_others(self) -> tuple[str, ...]:
        answers, _ = await self._ask("figures")
        return tuple(filter(None, answers.values()))

    async def _ask(self, question: str) -> tuple[dict[str, str | None], dict[str, int]]:
        """What the other processes answer, and their process ids."""
        find = "SELECT name, pid, port FROM processes WHERE ended IS NULL AND name <> ?"
        others = await self._run(self._all, find, self._process)
        answers = await ask_peers({name: port for name, _, port in others}, question)
        return answers, {name: pid for name, pid, _ in others}

    def _note_ended(self, names: Sequence[str]) -> None:
        note = "UPDATE processes SET ended = ? WHERE name = ? AND ended IS NULL"
        self._db.executemany(note, [(time.time(), name) for name in names])

    async def names(self) -> Names:
        def work() -> Names:
            find = "SELECT name FROM sessions WHERE evicted = ? ORDER BY used"
            known = self._all(find, 0)
            evicted = self._all(find, 1)
            return Names(tuple(one for (one,) in known), tuple(one for (one,) in evicted))

        return await self._run(work)

    async def load(self, session: str) -> Stored | None:
        return await self._run(self._load, session)

    def _load(self, session: str) -> Stored | None:
        self._db.execute("BEGIN")  # one view of all tables
        found = self._all("SELECT begun, evicted, again FROM sessions WHERE name = ?", session)
        stored = None
        if found:
            (begun, evicted, again), *_ = found
            find = "SELECT entries FROM batches WHERE session = ? ORDER BY id"
            entries = self._all(find, session)
            find = "SELECT scenario, turn FROM played WHERE session = ? ORDER BY id"
            played = self._all(find, session)
            lost = self._all("SELECT outcome, count FROM forgotten WHERE session = ?", session)
            find = "SELECT name, ended, written FROM processes WHERE ended IS NOT NULL"
            gone = self._all(find)
            stored = Stored(
                tuple(entry for (entry,) in entries),
                played,
                dict(lost),
                bool(evicted or again),
                tuple(self._gaps(one for one in gone if one[1] >= begun)),
                {name for name, *_ in gone},
            )
        self._db.execute("COMMIT")
        return stored

    def _gaps(self, ended: Iterable[tuple[str, float, int]]) -> Iterator[str]:
        """What is missing of processes that ended, each with the number that it has written."""
        for process, at, written in ended:
            try:
                (taken,) = _COUNT.unpack(self._count_of(process).read_bytes())
            except (OSError, struct.error):
                yield ended_gap(process, at)
                continue
            if taken > written:
                yield ended_gap(process, at, taken - written)

    # Sessions made over HTTP

    async def create(self, session: str, setup: Setup | None) -> bool:
        def work() -> bool:
            self._db.execute("BEGIN IMMEDIATE")
            known = self._one("SELECT 1 FROM sessions WHERE name = ? AND evicted = 0", session)
            if known is None and setup is not None:
                self._remove(session)
                row = (session, setup.version, setup.body, 0)
                self._db.execute("INSERT OR REPLACE INTO setups VALUES (?, ?, ?, ?)", row)
            self._use(session, time.time())
            self._evict()
            self._db.execute("COMMIT")
            return known is None

        return await self._run(work)

    def _remove(self, session: str) -> None:
        self._clear(session)
        self._db.execute("DELETE FROM sessions WHERE name = ?", (session,))
        self._db.execute("DELETE FROM setups WHERE session = ?", (session,))

    async def delete(self, session: str) -> None:
        def work() -> None:
            self._db.execute("BEGIN IMMEDIATE")
            self._remove(session)
            self._db.execute("COMMIT")

        await self._run(work)

    async def reset(self, session: str) -> None:
        def work() -> None:
            self._db.execute("BEGIN IMMEDIATE")
            self._clear(session)
            self._db.execute("DELETE FROM sessions WHERE name = ?", (session,))
            self._use(session, time.time())
            self._db.execute("COMMIT")

        await self._run(work)

    async def setup(self, session: str, known: str | None) -> Setup | None:
        def work() -> Setup | None:
            found = self._all("SELECT version, gone FROM setups WHERE session = ?", session)
            if not found:
                return None
            version, gone = found[0]
            if gone or version == known:
                return Setup(version, b"", bool(gone))
            body = self._one("SELECT body FROM setups WHERE session = ?", session)
            return Setup(version, body)

        return await self._run(work)


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
