"""Queries of the tables of shared state in a database (SQLite). All of them block."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.resources import files
from typing import Any

from mockllm.core.quotas import FULL, Charge, Fill, Taken, full_at, take
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
    Turn,
)
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

_USE = """
INSERT INTO sessions (name, used, begun) VALUES (?1, ?2, ?2)
ON CONFLICT DO UPDATE SET used = max(used, excluded.used)
"""
_COUNT = """
INSERT INTO facts (session, kind, key, value) VALUES (?, ?, ?, ?)
ON CONFLICT DO UPDATE SET value = value + excluded.value RETURNING value
"""
_SET = """
INSERT INTO facts (session, kind, key, value) VALUES (?, ?, ?, ?)
ON CONFLICT DO UPDATE SET value = excluded.value
"""
_ADD = "INSERT OR IGNORE INTO facts (session, kind, key) VALUES (?, ?, ?)"
_REMOVE = "DELETE FROM facts WHERE session = ? AND kind = ? AND key = ?"
_FACT = "SELECT value FROM facts WHERE session = ? AND kind = ? AND key = ?"
_FACTS = "SELECT key, value FROM facts WHERE session = ? AND kind = ? ORDER BY id"
_ANSWER = """
SELECT entries FROM batches WHERE id =
(SELECT value FROM facts WHERE session = ? AND kind = 'answer' AND key = ?)
"""
_OLDEST = """
DELETE FROM batches WHERE id =
(SELECT min(id) FROM batches WHERE session = ? GROUP BY session HAVING count(*) > 1)
RETURNING id, length(entries), outcomes
"""
_EVICT = """
INSERT OR REPLACE INTO evicted SELECT name, used,
    EXISTS (SELECT 1 FROM setups WHERE session = name)
    OR EXISTS (SELECT 1 FROM evicted AS before WHERE before.name = sessions.name AND had_setup)
FROM sessions WHERE name = ?
"""
_FILL = """
INSERT INTO buckets (name, used, at, full_at) VALUES (?, ?, ?, ?)
ON CONFLICT DO UPDATE SET used = excluded.used, at = excluded.at, full_at = excluded.full_at
"""
_CLEAR_ENDED = """
DELETE FROM marks WHERE session = ?
AND process IN (SELECT name FROM processes WHERE ended IS NOT NULL)
"""
_OLD_NAMES = """
DELETE FROM evicted WHERE name IN
(SELECT name FROM evicted ORDER BY at DESC LIMIT -1 OFFSET ?)
"""


class SqliteTables:
    """The tables of a database that is open; the methods are those of `StateStore`."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._db = database
        schema = files("mockllm.serve.server.state") / "schema.sql"
        database.executescript(schema.read_text("utf-8"))

    def _all(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        return self._db.execute(query, values).fetchall()

    def _one(self, query: str, *values: object) -> Any:
        """The first column of the first row; None where there is none."""
        row = self._db.execute(query, values).fetchone()
        return None if row is None else row[0]

    def check(self) -> None:
        self._one("SELECT 1")

    @contextmanager
    def _transaction(self, begin: str = "BEGIN IMMEDIATE") -> Iterator[None]:
        """Everything that is done inside is done in one step. After an error, the caller rolls
        back."""
        self._db.execute(begin)
        yield
        self._db.execute("COMMIT")

    # Operations

    def perform(self, session: str, operation: StateOperation) -> Any:
        match operation:
            case FindAnswer(id, _):
                return self._one(_ANSWER, session, id)
            case FindConversation(id):
                return self._one(_FACT, session, "conversation", id)
            case Count(key, 0):
                return self._one(_FACT, session, "count", key) or 0
        with self._transaction():
            self._use(session, time.time())
            match operation:
                case Attempt(turn, period):
                    return self._attempt(session, turn_key(turn), period)
                case Claim(turns):
                    places = (at for at, turn in enumerate(turns) if self._play(session, turn))
                    return next(places, None)
                case Number():
                    return self._one(_COUNT, session, "requests", "", 1) - 1
                case Count(key, by):
                    return self._one(_COUNT, session, "count", key, by) - by

    def look_up(self, session: str, operations: Sequence[StateOperation]) -> list[Any]:
        return [self.perform(session, operation) for operation in operations]

    def _attempt(self, session: str, turn: str, period: int) -> int:
        tried: int = self._one(_COUNT, session, "attempt", turn, 1) - 1
        if tried + 1 == period:
            self._db.execute(_REMOVE, (session, "attempt", turn))
        return tried

    def _play(self, session: str, turn: Turn) -> bool:
        """Notes that a turn was played; whether it was not played before."""
        return self._db.execute(_ADD, (session, "played", turn_key(turn))).rowcount > 0

    def keep(self, session: SharedSession) -> None:
        name = session.name
        with self._transaction():
            self._use(name, time.time())
            for id, token in session.tokens.items():
                self._db.execute(_SET, (name, "conversation", id, token))
            for id in session.deleted:
                self._db.execute(_REMOVE, (name, "answer", id))
            for turn in session.unused:
                self._db.execute(_REMOVE, (name, "played", turn_key(turn)))

    def take(self, charges: Sequence[Charge], now: float, force: bool) -> Taken:
        with self._transaction():
            # Clocks may be a little behind that of the process which wrote one.
            self._db.execute("DELETE FROM buckets WHERE full_at < ?", (now - 60,))
            find = "SELECT used, at FROM buckets WHERE name = ?"
            rows = [self._all(find, charge.bucket) for charge in charges]
            fills = [Fill(*found[0]) if found else FULL for found in rows]
            taken = take(fills, charges, now, force=force)
            if taken.granted:
                for fill, charge, used in zip(fills, charges, taken.used, strict=True):
                    full = full_at(used, now, charge.limit)
                    self._db.execute(_FILL, (charge.bucket, used, max(now, fill.at), full))
        return taken

    # The journal

    def mark(self, session: str, mark: str) -> None:
        with self._transaction():
            self._use(session, time.time())
            add = "INSERT OR IGNORE INTO marks VALUES (?, ?, ?)"
            self._db.execute(add, (session, mark, process_of(mark)))

    def append(self, batches: Sequence[Batch]) -> Totals:
        with self._transaction():
            for batch in batches:
                for mark in batch.cleared:
                    clear = "DELETE FROM marks WHERE session = ? AND mark = ?"
                    self._db.execute(clear, (batch.session, mark))
                if not (batch.entries or batch.lost):
                    continue
                self._use(batch.session, batch.at)
                self._forget(batch.session, batch.lost)
                for turn in batch.played:
                    self._play(batch.session, turn)
                if batch.entries:
                    self._add(batch)
            totals = "SELECT count(*), sum(bytes), max(bytes) FROM sessions"
            return Totals(*self._all(totals)[0])

    def _add(self, batch: Batch) -> None:
        add = "INSERT INTO batches (session, entries, outcomes) VALUES (?, ?, ?) RETURNING id"
        id = self._one(add, batch.session, batch.entries, json.dumps(batch.outcomes))
        for answer in batch.answers:
            self._db.execute(_SET, (batch.session, "answer", answer, id))
        self._grow(batch.session, len(batch.entries))

    def _use(self, session: str, at: float) -> None:
        self._db.execute(_USE, (session, at))

    def _grow(self, session: str, by: int) -> None:
        self._db.execute("UPDATE sessions SET bytes = bytes + ? WHERE name = ?", (by, session))

    def _forget(self, session: str, outcomes: Mapping[str, int]) -> None:
        for outcome, count in outcomes.items():
            self._all(_COUNT, session, "forgotten", outcome, count)

    def sizes(self) -> dict[str, int]:
        return dict(self._all("SELECT name, bytes FROM sessions ORDER BY used"))

    def forget_oldest(self, session: str) -> int:
        with self._transaction():
            for id, size, outcomes in self._all(_OLDEST, session):
                self._forget(session, json.loads(outcomes))
                drop = "DELETE FROM facts WHERE session = ? AND kind = 'answer' AND value <= ?"
                self._db.execute(drop, (session, id))
                self._grow(session, -size)
                return int(size)
        return 0

    def evict(self, session: str) -> None:
        with self._transaction():
            self._db.execute(_EVICT, (session,))
            self._db.execute("DELETE FROM sessions WHERE name = ?", (session,))
            self._db.execute(_OLD_NAMES, (MOST_NAMES,))
            self._db.execute(_CLEAR_ENDED, (session,))

    # Processes

    def join(self, process: str, pid: int, port: int) -> None:
        """Adds a process that listens for the others."""
        add = "INSERT OR REPLACE INTO processes (name, pid, port) VALUES (?, ?, ?)"
        self._db.execute(add, (process, pid, port))

    def leave(self, process: str) -> None:
        self._db.execute("DELETE FROM processes WHERE name = ?", (process,))

    def others(self, process: str) -> list[tuple[str, int, int]]:
        """The names of the other processes that run, with their process ids and ports."""
        find = "SELECT name, pid, port FROM processes WHERE ended IS NULL AND name <> ?"
        return self._all(find, process)

    def note_ended(self, processes: Iterable[str]) -> None:
        note = "UPDATE processes SET ended = ? WHERE name = ? AND ended IS NULL"
        self._db.executemany(note, [(time.time(), name) for name in processes])

    # Sessions

    def names(self) -> Names:
        with self._transaction("BEGIN"):
            known = self._all("SELECT name FROM sessions ORDER BY used")
            find = "SELECT name FROM evicted WHERE name NOT IN (SELECT name FROM sessions)"
            evicted = self._all(f"{find} ORDER BY at")
        return Names(tuple(name for (name,) in known), tuple(name for (name,) in evicted))

    def load(self, session: str, after: int = 0) -> Stored | None:
        with self._transaction("BEGIN"):
            begun = self._one("SELECT begun FROM sessions WHERE name = ?", session)
            evicted = self._one("SELECT 1 FROM evicted WHERE name = ?", session) is not None
            find = "SELECT entries FROM batches WHERE session = ? AND id > ? ORDER BY id"
            entries = self._all(find, session, after)
            (ids,) = self._all("SELECT min(id), max(id) FROM batches WHERE session = ?", session)
            played = self._all(_FACTS, session, "played")
            forgotten = self._all(_FACTS, session, "forgotten")
            ended = self._all("SELECT name, ended FROM processes WHERE ended IS NOT NULL")
            marks = self._all("SELECT process FROM marks WHERE session = ?", session)
        if begun is None and not evicted:
            return None
        marked = {process for (process,) in marks}
        return Stored(
            tuple(entry for (entry,) in entries),
            [read_turn_key(key) for key, _ in played],
            dict(forgotten),
            evicted,
            tuple(ended_gap(*end) for end in ended if end[0] in marked),
            {name for name, _ in ended},
            begun or 0.0,
            *(number or 0 for number in ids),
        )

    def create(self, session: str, setup: Setup | None) -> bool:
        with self._transaction():
            is_new = self._one("SELECT 1 FROM sessions WHERE name = ?", session) is None
            self._use(session, time.time())
            if is_new and setup is not None:
                row = (session, setup.version, setup.body)
                self._db.execute("INSERT INTO setups VALUES (?, ?, ?)", row)
                self._db.execute("DELETE FROM evicted WHERE name = ?", (session,))
        return is_new

    def delete(self, session: str) -> None:
        with self._transaction():
            self._db.execute("DELETE FROM sessions WHERE name = ?", (session,))
            self._db.execute("DELETE FROM evicted WHERE name = ?", (session,))
            self._db.execute(_CLEAR_ENDED, (session,))

    def reset(self, session: str) -> None:
        with self._transaction():
            self._use(session, time.time())
            self._db.execute("DELETE FROM batches WHERE session = ?", (session,))
            self._db.execute("DELETE FROM facts WHERE session = ?", (session,))
            restart = "UPDATE sessions SET bytes = 0, begun = used WHERE name = ?"
            self._db.execute(restart, (session,))
            remove = "DELETE FROM evicted WHERE name = ? AND NOT had_setup"
            self._db.execute(remove, (session,))
            self._db.execute(_CLEAR_ENDED, (session,))

    def setup(self, session: str, known: str | None) -> Setup | None:
        version = self._one("SELECT version FROM setups WHERE session = ?", session)
        if version is None:
            gone = self._one("SELECT had_setup FROM evicted WHERE name = ?", session)
            return Setup("", gone=True) if gone else None
        if version == known:
            return Setup(version)
        return Setup(version, self._one("SELECT body FROM setups WHERE session = ?", session))
