"""Shared state of processes on one machine, in a database file (SQLite)."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from mockllm.serve.server.state.sqlite_tables import SqliteTables
from mockllm.serve.server.state.store import StoreError

_WAIT = 5.0
"""For so many seconds a process waits for the others."""

_FAILED = "failed"
_MOST = 1024 * 1024
"""The longest line, in bytes."""


async def _reply(
    answers: Mapping[str, Callable[[], Awaitable[str]]],
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
) -> None:
    """Answers another process, with one line of text."""
    try:
        async with asyncio.timeout(_WAIT):
            question = (await reader.readline()).decode("ascii", "replace").strip()
            if question in answers:
                try:
                    text = await answers[question]()
                except StoreError:
                    text = _FAILED
                writer.write(text.encode() + b"\n")
                await writer.drain()
    except (TimeoutError, OSError, ValueError):
        return  # the other one has left, or is no process of ours
    finally:
        writer.close()


async def _ask(port: int, question: str) -> str | None:
    """The answer of a process; None where it does not answer, or cannot."""
    try:
        async with asyncio.timeout(_WAIT):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=_MOST)
            try:
                writer.write(question.encode() + b"\n")
                line = (await reader.readline()).decode()
            finally:
                writer.close()
    except (TimeoutError, OSError, ValueError):
        return None
    answer = line.removesuffix("\n")
    return None if answer in (line, _FAILED) else answer


_BUSY = 10.0
"""For so many seconds a process waits for another one that writes."""

_TRY_AGAIN = 0.02


def opened_tables(database: sqlite3.Connection) -> SqliteTables:
    """The tables of a database, which are made where there are none.

    SQLite does not wait for other processes where it sets the journal mode, as it does elsewhere:
    of several that start at the same time, one would fail.
    """
    give_up = time.monotonic() + _BUSY
    while True:
        try:
            return SqliteTables(database)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > give_up:
                raise
            time.sleep(_TRY_AGAIN)


_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def _in_thread(
    work: Callable[Concatenate[SqliteTables, _Arguments], _Result],
) -> Callable[Concatenate[SqliteStore, _Arguments], Coroutine[Any, Any, _Result]]:
    """The method of a store that does some work with its tables."""

    async def method(
        self: SqliteStore, /, *args: _Arguments.args, **kwargs: _Arguments.kwargs
    ) -> _Result:
        tables = self.tables
        return await self.run(lambda: work(tables, *args, **kwargs))

    return method


class SqliteStore:
    """State in a database file; one thread of each process works with it."""

    clock_offset = 0.0

    def __init__(self, path: Path) -> None:
        self._path = path
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="mockllm-state")
        self._database: sqlite3.Connection | None = None
        self._tables: SqliteTables | None = None
        self._process = ""
        self._listener: asyncio.Server | None = None

    async def open(self, process: str, answers: Mapping[str, Callable[[], Awaitable[str]]]) -> None:
        self._process = process
        self._listener = await asyncio.start_server(partial(_reply, answers), "127.0.0.1", 0)
        port = self._listener.sockets[0].getsockname()[1]
        try:
            await self.run(lambda: self._open(port))
        except BaseException:
            self._listener.close()
            self._thread.shutdown()
            raise

    def _open(self, port: int) -> None:
        self._database = sqlite3.connect(
            self._path, timeout=_BUSY, isolation_level=None, check_same_thread=False
        )
        self._tables = opened_tables(self._database)
        self._tables.join(self._process, os.getpid(), port)

    async def close(self) -> None:
        if self._database is not None:
            await self.run(self._close)
        if self._listener is not None:
            self._listener.close()
        self._thread.shutdown()

    def _close(self) -> None:
        self.tables.leave(self._process)
        if self._database is not None:
            self._database.close()
        self._database = self._tables = None

    @property
    def tables(self) -> SqliteTables:
        """The tables, for the thread."""
        if self._tables is None:
            raise StoreError(f"{self._path}: it is not open")
        return self._tables

    async def run(self, work: Callable[[], _Result]) -> _Result:
        """Does some work in the thread and returns its result."""

        def run() -> _Result:
            try:
                return work()
            except sqlite3.Error as error:
                if self._database is not None and self._database.in_transaction:
                    self._database.rollback()
                raise StoreError(f"{self._path}: {error}") from None

        return await asyncio.get_running_loop().run_in_executor(self._thread, run)

    look_up = _in_thread(SqliteTables.look_up)
    mark = _in_thread(SqliteTables.mark)
    append = _in_thread(SqliteTables.append)
    check = _in_thread(SqliteTables.check)
    perform = _in_thread(SqliteTables.perform)
    keep = _in_thread(SqliteTables.keep)
    take = _in_thread(SqliteTables.take)
    sizes = _in_thread(SqliteTables.sizes)
    forget_oldest = _in_thread(SqliteTables.forget_oldest)
    evict = _in_thread(SqliteTables.evict)
    names = _in_thread(SqliteTables.names)
    load = _in_thread(SqliteTables.load)
    create = _in_thread(SqliteTables.create)
    delete = _in_thread(SqliteTables.delete)
    reset = _in_thread(SqliteTables.reset)
    setup = _in_thread(SqliteTables.setup)

    # Processes

    async def flush_others(self) -> tuple[str, ...]:
        silent = [other for other, answer in await self._ask_others("flush") if answer is None]
        gone = [name for name, pid, _ in silent if not _is_running(pid)]
        if gone:
            await self.run(lambda: self.tables.note_ended(gone))
        return tuple(name for name, *_ in silent if name not in gone)

    async def figures_of_others(self) -> tuple[str, ...]:
        return tuple(answer for _, answer in await self._ask_others("figures") if answer)

    async def _ask_others(self, question: str) -> list[tuple[tuple[str, int, int], str | None]]:
        """The other processes, as `SqliteTables.others` has them, each with its answer."""
        others = await self.run(lambda: self.tables.others(self._process))
        answers = await asyncio.gather(*(_ask(port, question) for *_, port in others))
        return list(zip(others, answers, strict=True))


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
