"""What is done with the tables of shared state in a database (SQLite). All of it blocks."""

from __future__ import annotations

import json
import sqlite3
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from mockllm.replay.sessions.shared_session import (
    Attempt,
    Claim,
    FindAnswer,
    FindConversation,
    Number,
    StateOperation,
    Turn,
)
from mockllm.server.state.sqlite_schema import CLEAR, SCHEMA
from mockllm.server.state.store import MOST_NAMES, Batch, Bounds, Names, Setup

__all__ = ["SqliteTables"]

_ANSWER = "DELETE FROM answers WHERE session = ? AND id = ? RETURNING length(entry)"
_ANSWERS_UP_TO = "DELETE FROM answers WHERE session = ? AND batch <= ? RETURNING length(entry)"
_ANSWERS_BEYOND = """
DELETE FROM answers WHERE session = ?1 AND number <= (SELECT number FROM answers
WHERE session = ?1 ORDER BY number DESC LIMIT 1 OFFSET ?2) RETURNING length(entry)
"""
_OLD_NAMES = """
SELECT name FROM sessions WHERE evicted = 1 ORDER BY used DESC LIMIT -1 OFFSET ?
"""
_FEW = 1000
"""After so many evictions, the oldest names of evicted sessions are forgotten."""


class SqliteTables:
    """The tables of a database that is open.

    Args:
        database: in autocommit mode.
    """

    def __init__(self, database: sqlite3.Connection, bounds: Bounds) -> None:
        self._db, self._bounds = database, bounds
        self._evicted = 0
        database.executescript(SCHEMA)

    def all(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """All rows."""
        return self._db.execute(query, values).fetchall()

    def one(self, query: str, *values: object) -> Any:
        """The first column of the first row; None where there is none."""
        row = self._db.execute(query, values).fetchone()
        return None if row is None else row[0]

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Everything that is done inside is done in one step. After an error, the caller rolls
        back."""
        self._db.execute("BEGIN IMMEDIATE")
        yield
        self._db.execute("COMMIT")

    @contextmanager
    def reading(self) -> Iterator[None]:
        """All tables are read as they are at one moment."""
        self._db.execute("BEGIN")
        yield
        self._db.execute("COMMIT")

    # Operations

    def perform(self, session: str, operation: StateOperation) -> Any:
        """See `StateStore.perform`."""
        match operation:
            case FindAnswer(id):
                find = "SELECT entry FROM answers WHERE session = ? AND id = ?"
                return self.one(find, session, id)
            case FindConversation(id):
                find = "SELECT token FROM conversations WHERE session = ? AND id = ?"
                return self.one(find, session, id)
        with self.changing():
            match operation:
                case Attempt(turn, failures):
                    return self._attempt(session, turn, failures)
                case Claim(turns):
                    return self._claim(session, turns)
                case Number():
                    return self._number(session)

    def _attempt(self, session: str, turn: Turn, failures: int) -> int:
        key = (session, *turn)
        find = "SELECT tried FROM attempts WHERE session = ? AND scenario = ? AND position = ?"
        tried = self.one(find, *key) or 0
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

    def _number(self, session: str) -> int:
        self._use(session, time.time())
        count = "UPDATE sessions SET number = number + 1 WHERE name = ? RETURNING number"
        return int(self.one(count, session)) - 1

    def _note_played(self, session: str, turn: Turn) -> bool:
        """Whether it was not played before."""
        add = "INSERT OR IGNORE INTO played (session, scenario, turn) VALUES (?, ?, ?)"
        return self._db.execute(add, (session, *turn)).rowcount > 0

    def note(
        self,
        session: str,
        tokens: Mapping[str, str],
        deleted: Sequence[str],
        unused: Sequence[Turn],
    ) -> None:
        """See `StateStore.note`."""
        with self.changing():
            for id, token in tokens.items():
                row = (session, id, token)
                self._db.execute("INSERT OR REPLACE INTO conversations VALUES (?, ?, ?)", row)
            for id in deleted:
                self._forget_answers(_ANSWER, session, id)
            for turn in unused:
                delete = "DELETE FROM played WHERE session = ? AND scenario = ? AND turn = ?"
                self._db.execute(delete, (session, *turn))

    # The journal

    def append(
        self,
        batches: Sequence[Batch],
        lost: Mapping[str, Mapping[str, int]],
        process: str,
        written: int,
    ) -> None:
        """See `StateStore.append`.

        Args:
            process: the name of the one that writes.
        """
        with self.changing():
            for batch in batches:
                self._add(batch)
            for session, outcomes in lost.items():
                self._use(session, time.time())
                self._forget(session, outcomes)
            self._bound_all()
            note = "UPDATE processes SET written = max(written, ?) WHERE name = ?"
            self._db.execute(note, (written, process))

    def _add(self, batch: Batch) -> None:
        session = batch.session
        self._use(session, batch.at)
        for turn in batch.played:
            self._note_played(session, turn)
        add = "INSERT INTO batches (session, entries, outcomes) VALUES (?, ?, ?) RETURNING id"
        id = self.one(add, session, batch.entries, json.dumps(batch.outcomes))
        size = len(batch.entries)
        for answer, entry in batch.answers.items():
            self._forget_answers(_ANSWER, session, answer)
            row = (session, answer, entry, id)
            insert = "INSERT INTO answers (session, id, entry, batch) VALUES (?, ?, ?, ?)"
            self._db.execute(insert, row)
            size += len(entry)
        self._grow(session, size)
        self._bound_one(session)

    def _use(self, session: str, at: float) -> None:
        """Notes that a session is in use; one that was evicted begins anew."""
        self._db.execute(
            "INSERT INTO sessions (name, used, begun) VALUES (?, ?, ?) "
            "ON CONFLICT (name) DO UPDATE SET used = max(used, excluded.used), "
            "again = max(again, evicted), evicted = 0",
            (session, at, at),
        )

    def _grow(self, session: str, by: int) -> None:
        self._db.execute("UPDATE sessions SET bytes = bytes + ? WHERE name = ?", (by, session))

    def _forget_answers(self, delete: str, session: str, value: object) -> None:
        freed = sum(size for (size,) in self.all(delete, session, value))
        if freed:
            self._grow(session, -freed)

    def _bound_one(self, session: str) -> None:
        """Forgets the oldest entries and answers of a session that has too many."""
        self._forget_answers(_ANSWERS_BEYOND, session, self._bounds.answers)
        size = "SELECT bytes FROM sessions WHERE name = ?"
        while self.one(size, session) > self._bounds.session_bytes and self._forget_oldest(session):
            pass

    def _forget_oldest(self, session: str) -> bool:
        """Forgets the oldest entries of a session, with their answers; whether there were any."""
        delete = (
            "DELETE FROM batches WHERE id = (SELECT min(id) FROM batches WHERE session = ?) "
            "RETURNING id, length(entries), outcomes"
        )
        for id, size, outcomes in self.all(delete, session):
            self._grow(session, -size)
            self._forget(session, Counter(json.loads(outcomes)))
            self._forget_answers(_ANSWERS_UP_TO, session, id)
            return True
        return False

    def _forget(self, session: str, outcomes: Mapping[str, int]) -> None:
        for outcome, count in outcomes.items():
            self._db.execute(
                "INSERT INTO forgotten VALUES (?, ?, ?) ON CONFLICT DO UPDATE "
                "SET count = count + excluded.count",
                (session, outcome, count),
            )

    def _bound_all(self) -> None:
        """Holds the bounds of all sessions, as one process does it; a twentieth of the bytes is
        freed at once."""
        find = "SELECT name FROM sessions WHERE evicted = 0 ORDER BY used DESC LIMIT -1 OFFSET ?"
        for (name,) in self.all(find, self._bounds.sessions):
            self._evict(name)
        most, total = self._bounds.all_bytes, "SELECT sum(bytes) FROM sessions WHERE evicted = 0"
        if (self.one(total) or 0) > most:
            while (self.one(total) or 0) > most - most // 20 and self._free_some():
                pass

    def _free_some(self) -> bool:
        """Lets the largest session forget its oldest entries, or evicts the least recently used one
        where it has only its last ones; whether there was any."""
        largest = "SELECT name FROM sessions WHERE evicted = 0 ORDER BY bytes DESC LIMIT 1"
        name = self.one(largest)
        last = "SELECT max(id) FROM batches WHERE session = ?"
        first = "SELECT min(id) FROM batches WHERE session = ?"
        if self.one(first, name) != self.one(last, name):
            return self._forget_oldest(name)
        oldest = self.all("SELECT name FROM sessions WHERE evicted = 0 ORDER BY used LIMIT 2")
        if len(oldest) > 1:
            self._evict(oldest[0][0])
        return len(oldest) > 1

    def _evict(self, session: str) -> None:
        self._clear(session)
        note = "UPDATE sessions SET evicted = 1, bytes = 0, number = 0 WHERE name = ?"
        self._db.execute(note, (session,))
        self._db.execute("UPDATE setups SET gone = 1, body = '' WHERE session = ?", (session,))
        self._evicted += 1
        if self._evicted >= _FEW:
            self._evicted = 0
            for (name,) in self.all(_OLD_NAMES, MOST_NAMES):
                self._remove(name)

    def _clear(self, session: str) -> None:
        for query in CLEAR:
            self._db.execute(query, (session,))

    def names(self) -> Names:
        """See `StateStore.names`."""
        find = "SELECT name FROM sessions WHERE evicted = ? ORDER BY used"
        with self.reading():
            known, evicted = self.all(find, 0), self.all(find, 1)
        return Names(tuple(one for (one,) in known), tuple(one for (one,) in evicted))

    # Processes

    def join(self, process: str, pid: int, port: int) -> None:
        """Adds a process that listens for the others."""
        add = "INSERT OR REPLACE INTO processes (name, pid, port) VALUES (?, ?, ?)"
        self._db.execute(add, (process, pid, port))

    def leave(self, process: str) -> None:
        """Removes a process."""
        self._db.execute("DELETE FROM processes WHERE name = ?", (process,))

    def note_ended(self, processes: Iterable[str]) -> None:
        """Notes that processes ended without a word."""
        note = "UPDATE processes SET ended = ? WHERE name = ? AND ended IS NULL"
        self._db.executemany(note, [(time.time(), name) for name in processes])

    # Sessions made over HTTP

    def create(self, session: str, setup: Setup | None) -> bool:
        """See `StateStore.create`."""
        with self.changing():
            known = self.one("SELECT 1 FROM sessions WHERE name = ? AND evicted = 0", session)
            if known is None and setup is not None:
                self._remove(session)
                row = (session, setup.version, setup.body, 0)
                self._db.execute("INSERT OR REPLACE INTO setups VALUES (?, ?, ?, ?)", row)
            self._use(session, time.time())
            self._bound_all()
        return known is None

    def _remove(self, session: str) -> None:
        self._clear(session)
        self._db.execute("DELETE FROM sessions WHERE name = ?", (session,))
        self._db.execute("DELETE FROM setups WHERE session = ?", (session,))

    def delete(self, session: str) -> None:
        """See `StateStore.delete`."""
        with self.changing():
            self._remove(session)

    def reset(self, session: str) -> None:
        """See `StateStore.reset`."""
        with self.changing():
            self._clear(session)
            self._db.execute("DELETE FROM sessions WHERE name = ?", (session,))
            self._use(session, time.time())

    def setup(self, session: str, known: str | None) -> Setup | None:
        """See `StateStore.setup`."""
        found = self.all("SELECT version, gone FROM setups WHERE session = ?", session)
        if not found:
            return None
        version, gone = found[0]
        if gone or version == known:
            return Setup(version, b"", bool(gone))
        body = self.one("SELECT body FROM setups WHERE session = ?", session)
        return Setup(version, body)
