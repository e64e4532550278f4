"""Shared state of processes on one machine, in a database file (SQLite)."""

from __future__ import annotations

import asyncio
import mmap
import os
import sqlite3
import struct
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from mockllm.replay.sessions.entry_packing import Stored
from mockllm.replay.sessions.shared_session import StateOperation, Turn
from mockllm.server.state.peers import PeerListener, ask_peers
from mockllm.server.state.sqlite_tables import SqliteTables
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
        self._opened: SqliteTables | None = None
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
        self._opened = SqliteTables(database, self._bounds)
        self._opened.join(self._process, os.getpid(), port)

    async def close(self) -> None:
        if self._database is not None:
            await self._run(self._close)
        if self._listener is not None:
            await self._listener.close()
        self._thread.shutdown()

    def _close(self) -> None:
        if self._taken is not None:
            self._taken.close()
            self._count_of(self._process).unlink(missing_ok=True)
        if self._opened is not None:
            self._opened.leave(self._process)
        if self._database is not None:
            self._database.close()
        self._database = self._opened = None

    def _count_of(self, process: str) -> Path:
        """The file with the number of entries that a process has taken."""
        return self._path.with_name(f"{self._path.name}.{process}")

    def taken(self, number: int) -> None:
        if self._taken is not None:
            _COUNT.pack_into(self._taken, 0, number)

    @property
    def _tables(self) -> SqliteTables:
        if self._opened is None:
            raise StoreError(f"{self._path}: it is not open")
        return self._opened

    async def _run(self, work: Callable[..., _Result], *args: Any) -> _Result:
        def run() -> _Result:
            try:
                return work(*args)
            except sqlite3.Error as error:
                if self._database is not None and self._database.in_transaction:
                    self._database.rollback()
                raise StoreError(f"{self._path}: {error}") from None

        return await asyncio.get_running_loop().run_in_executor(self._thread, run)

    async def check(self) -> None:
        await self._run(self._tables.one, "SELECT 1")

    async def perform(self, session: str, operation: StateOperation) -> Any:
        return await self._run(self._tables.perform, session, operation)

    async def note(
        self,
        session: str,
        tokens: Mapping[str, str],
        deleted: Sequence[str],
        unused: Sequence[Turn],
    ) -> None:
        await self._run(self._tables.note, session, tokens, deleted, unused)

    async def append(
        self, batches: Sequence[Batch], lost: Mapping[str, Mapping[str, int]], written: int = 0
    ) -> None:
        await self._run(self._tables.append, batches, lost, self._process, written)

    # Processes

    async def flush_others(self) -> tuple[str, ...]:
        answers, pids = await self._ask("flush")
        silent = [name for name, answer in answers.items() if answer is None]
        gone = [name for name in silent if not _is_running(pids[name])]
        if gone:
            await self._run(self._tables.note_ended, gone)
        return tuple(name for name in silent if name not in gone)

    async def figures_of_others(self) -> tuple[str, ...]:
        answers, _ = await self._ask("figures")
        return tuple(filter(None, answers.values()))

    async def _ask(self, question: str) -> tuple[dict[str, str | None], dict[str, int]]:
        """What the other processes answer, and their process ids."""
        find = "SELECT name, pid, port FROM processes WHERE ended IS NULL AND name <> ?"
        others = await self._run(self._tables.all, find, self._process)
        answers = await ask_peers({name: port for name, _, port in others}, question)
        return answers, {name: pid for name, pid, _ in others}

    # Sessions

    async def names(self) -> Names:
        return await self._run(self._tables.names)

    async def load(self, session: str) -> Stored | None:
        return await self._run(self._load, session)

    def _load(self, session: str) -> Stored | None:
        read = self._tables.all
        with self._tables.reading():
            found = read("SELECT begun, evicted, again FROM sessions WHERE name = ?", session)
            if found:
                find = "SELECT entries FROM batches WHERE session = ? ORDER BY id"
                entries = read(find, session)
                find = "SELECT scenario, turn FROM played WHERE session = ? ORDER BY id"
                played = read(find, session)
                lost = read("SELECT outcome, count FROM forgotten WHERE session = ?", session)
                find = "SELECT name, ended, written FROM processes WHERE ended IS NOT NULL"
                gone = read(find)
        if not found:
            return None
        ((begun, evicted, again),) = found
        return Stored(
            tuple(entry for (entry,) in entries),
            played,
            dict(lost),
            bool(evicted or again),
            tuple(self._gaps(one for one in gone if one[1] >= begun)),
            {name for name, *_ in gone},
        )

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

    async def create(self, session: str, setup: Setup | None) -> bool:
        return await self._run(self._tables.create, session, setup)

    async def delete(self, session: str) -> None:
        await self._run(self._tables.delete, session)

    async def reset(self, session: str) -> None:
        await self._run(self._tables.reset, session)

    async def setup(self, session: str, known: str | None) -> Setup | None:
        return await self._run(self._tables.setup, session, known)


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
