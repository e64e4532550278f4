"""What a store gives up is counted, and the verdict says that it does not cover it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from mockllm.core.errors import UsageError
from mockllm.play.replay.sessions.shared_session import (
    Claim,
    FindAnswer,
    SharedSession,
    Stored,
    pack,
    restore,
)
from mockllm.serve.server.app import MockServer
from mockllm.serve.server.options import ServerOptions
from mockllm.serve.server.state import sqlite_tables
from mockllm.serve.server.state.journal_writer import Bounds, hold_bounds
from mockllm.serve.server.state.redis_store import RedisStore
from mockllm.serve.server.state.sqlite_store import SqliteStore
from mockllm.serve.server.state.store import Batch, Names, Setup, StateStore, StoreError
from mockllm.serve.server.thread import ServerThread
from tests.entries import journal_entry
from tests.serve.server.shared_state.replicas import redis_server
from tests.timeouts import GIVE_UP

BOUNDS = Bounds(sessions=3, session_bytes=6000, all_bytes=12_000)
_LATER = 2_000_000_000
"""A time in seconds, later than now: no session has expired then."""


@pytest.fixture(params=["sqlite", pytest.param("redis", marks=pytest.mark.slow)])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], StateStore]]:
    """Makes stores of one place, with small bounds."""
    if request.param == "sqlite":
        yield lambda: SqliteStore(tmp_path / "state.db")
    else:
        with redis_server(tmp_path) as server:
            yield lambda: RedisStore(server.url)


async def nothing() -> str:
    """Writes nothing."""
    return "done"


@asynccontextmanager
async def opened(
    make: Callable[[], StateStore], name: str = "p", flush: Callable[[], Awaitable[str]] = nothing
) -> AsyncIterator[StateStore]:
    """A store that is open."""
    store = make()
    await store.open(name, {"flush": flush})
    try:
        yield store
    finally:
        await store.close()


async def append(store: StateStore, *batches: Batch) -> None:
    """Writes entries, as a process does it."""
    if not BOUNDS.hold(await store.append(batches)):
        await hold_bounds(store, BOUNDS)


def write(session: str, number: int, **fields: Any) -> Batch:
    """An entry of some 1,000 bytes, or of more."""
    body = b"x" * fields.pop("size", 200)
    exchange = journal_entry("POST", "/", {}, body, at=_LATER + number, outcome="played")
    entries = pack([(number, exchange)], "p")
    return Batch(session, _LATER + number, entries, {"played": 1}, **fields)


def test_a_journal_beyond_its_bytes(make: Callable[[], StateStore]) -> None:
    """The oldest entries are forgotten and counted, whoever writes."""

    async def run() -> None:
        async with opened(make, "a") as one, opened(make, "b") as other:
            for number in range(30):
                await append(one if number % 2 else other, write("s", number))
            stored = await one.load("s")
        assert stored is not None
        session = restore("s", stored)
        kept = len(session.journal)
        assert 1 < kept < 10
        assert (session.count, session.forgotten) == (30, 30 - kept)
        assert session.journal[-1].number == 30
        assert session.outcomes() == {"played": 30}

    asyncio.run(run())


def test_sessions_beyond_their_number(make: Callable[[], StateStore]) -> None:
    """The one that was used least recently is evicted, and known as such; its setup is gone."""

    async def run() -> None:
        async with opened(make) as store:
            assert await store.create("made", Setup("1", b"{}"))
            for number in range(4):
                await append(store, write(f"s{number}", number))
            names = await store.names()
            assert names.known == ("s1", "s2", "s3")
            assert set(names.evicted) == {"made", "s0"}
            found = await store.setup("made", None)
            assert found is not None
            assert found.gone
            await append(store, write("s0", 9))
            stored = await store.load("s0")
            assert stored is not None
            assert (stored.evicted, len(stored.entries)) == (True, 1)

    asyncio.run(run())


def test_sessions_beyond_their_bytes(make: Callable[[], StateStore]) -> None:
    """The largest session gives up its oldest entries, whoever writes; the others keep theirs."""

    async def run() -> None:
        async with opened(make, "a") as one, opened(make, "b") as other:
            await append(one, write("small", 1))
            for number in range(2, 20, 2):
                await append(one, write("large", number))
                await append(other, write("later", number + 1))
            stored = {name: await one.load(name) for name in ("small", "large", "later")}
        sessions = {name: restore(name, found) for name, found in stored.items() if found}
        assert len(sessions["small"].journal) == 1
        assert sum(_size(found) for found in stored.values()) <= BOUNDS.all_bytes
        for name in ("large", "later"):
            assert sessions[name].forgotten > 0
            assert sessions[name].outcomes() == {"played": 9}
            assert not sessions[name].evicted

    asyncio.run(run())


def test_sessions_beyond_their_bytes_with_one_entry_each(make: Callable[[], StateStore]) -> None:
    """The least recently used one is evicted, and known as such; its setup is gone."""

    async def run() -> None:
        async with opened(make) as store:
            assert await store.create("first", Setup("1", b"{}"))
            for number, name in enumerate(("first", "second", "third")):
                await append(store, write(name, number, size=4000))
            assert await store.names() == Names(("second", "third"), ("first",))
            setup = await store.setup("first", None)
            assert setup is not None
            assert setup.gone
            stored = await store.load("first")
            assert stored is not None
            assert (stored.evicted, len(stored.entries)) == (True, 0)
            await append(store, write("first", 9))
            stored = await store.load("first")
            assert stored is not None
            assert (stored.evicted, len(stored.entries)) == (True, 1)
            assert len((await store.names()).known) == 3

    asyncio.run(run())


def test_names_of_evicted_sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The latest ones are remembered; the others do not stay in the file for ever."""
    monkeypatch.setattr(sqlite_tables, "MOST_NAMES", 4)

    async def run() -> None:
        async with opened(lambda: SqliteStore(tmp_path / "state.db")) as store:
            assert await store.create("s0", Setup("1", b"{}"))
            for number in range(3, 30):
                await append(store, write(f"s{number}", number))
            names = await store.names()
            assert names.known == ("s27", "s28", "s29")
            assert len(names.evicted) == 4
            assert names.evicted[-1] == "s26"
            assert await store.setup("s0", None) is None

    asyncio.run(run())


def test_deleted_sessions_leave_room(make: Callable[[], StateStore]) -> None:
    """Bytes that are not there any more cost no session its entries."""

    async def run() -> None:
        async with opened(make) as store:
            await append(store, write("kept", 0))
            for number in range(20):
                name = f"s{number}"
                await append(store, write(name, number, size=4000))
                if number % 2:
                    await store.reset(name)
                    await append(store, write(name, number, size=4000))
                await store.delete(name)
            assert await store.names() == Names(("kept",), ())
            stored = await store.load("kept")
            assert stored is not None
            assert (len(stored.entries), stored.forgotten) == (1, {})

    asyncio.run(run())


def test_answers_go_with_their_entries(make: Callable[[], StateStore]) -> None:
    """An answer can be looked up as long as its latest entry is in the journal."""

    async def run() -> None:
        async with opened(make) as store:
            await append(store, write("s", 1, answers=("twice",)), write("s", 2))
            await append(store, write("s", 3, answers=("once",)))
            await append(store, write("s", 4, answers=("twice",)))
            await append(store, write("s", 5, size=4250))
            found = [await store.perform("s", FindAnswer(id)) for id in ("once", "twice")]
            assert [one is not None for one in found] == [False, True]
            stored = await store.load("s")
            assert stored is not None
            assert _size(stored) <= BOUNDS.session_bytes

    asyncio.run(run())


def _size(stored: Stored | None) -> int:
    return 0 if stored is None else sum(map(len, stored.entries))


def test_a_claim_that_was_not_played(make: Callable[[], StateStore]) -> None:
    """Another request may have the turn then."""

    async def run() -> None:
        async with opened(make) as store:
            claim = Claim((("a", 0), ("b", 1)))
            assert [await store.perform("s", claim) for _ in range(3)] == [0, 1, None]
            session = SharedSession("s")
            session.known[claim] = 1
            await store.keep(session)
            assert [await store.perform("s", claim) for _ in range(2)] == [1, None]

    asyncio.run(run())


def test_what_was_lost_on_the_way(make: Callable[[], StateStore]) -> None:
    """Entries that a process gave up are counted in their session."""

    async def run() -> None:
        async with opened(make) as store:
            lost = (
                Batch("s", _LATER, lost={"played": 7}),
                Batch("other", _LATER, lost={"invalid": 2}),
            )
            await append(store, write("s", 1), *lost)
            stored, other = await store.load("s"), await store.load("other")
            assert stored is not None
            assert other is not None
            assert restore("s", stored).forgotten == 7
            assert restore("other", other).outcomes() == {"invalid": 2}

    asyncio.run(run())


def test_a_process_that_answers_and_one_that_does_not(make: Callable[[], StateStore]) -> None:
    """All others are asked to write; one that fails to is named."""

    async def fails() -> str:
        raise StoreError("full")

    async def run() -> None:
        asked = []

        async def flush() -> str:
            asked.append(True)
            return "done"

        async with opened(make, "a") as one, opened(make, "b", flush):
            assert await one.flush_others() == ()
            assert asked
        if isinstance(make(), SqliteStore):
            async with opened(make, "a") as one, opened(make, "b", fails):
                assert await one.flush_others() == ("b",)

    asyncio.run(run())


@pytest.mark.slow
def test_a_process_that_ended_without_a_word(tmp_path: Path) -> None:
    """What it had not written may be missing: the sessions with a mark of it say so, and no others,
    until they are reset."""
    script = f"""
import asyncio, os
from dataclasses import replace
from pathlib import Path
from mockllm.serve.server.state.sqlite_store import SqliteStore
from mockllm.serve.server.state.store import Batch, mark_name
from tests.serve.server.shared_state.test_bounds import nothing, write

async def run():
    store = SqliteStore(Path({str(tmp_path / "state.db")!r}))
    await store.open("victim", {{"flush": nothing}})
    for session in ("s", "whole"):
        await store.mark(session, mark_name("victim", 1))
        batches = [replace(write(session, number), at=1.0) for number in (1, 2)]
        await store.append(batches)
    await store.append([Batch("whole", 1.0, cleared=(mark_name("victim", 1),))])
    os._exit(9)

asyncio.run(run())
"""
    assert subprocess.run([sys.executable, "-c", script], timeout=GIVE_UP).returncode == 9

    async def run() -> None:
        store = SqliteStore(tmp_path / "state.db")
        async with opened(lambda: store, "other"):
            assert await store.flush_others() == ()
            stored, whole = await store.load("s"), await store.load("whole")
            await store.reset("s")
            cleared = await store.load("s")
        assert stored is not None
        assert whole is not None
        assert cleared is not None
        assert (whole.gaps, cleared.gaps) == ((), ())
        (gap,) = stored.gaps
        assert "victim was found ended" in gap
        assert "requests of its last moments may be missing" in gap
        session = restore("s", stored)
        assert (session.count, session.gaps) == (2, (gap,))

    asyncio.run(run())


def test_a_server_that_cannot_begin_does_not_hang(tmp_path: Path) -> None:
    """What its start raises is raised where the server was wanted, whatever it is."""
    folder = tmp_path / "state.db"
    folder.mkdir()
    options = ServerOptions(state=f"sqlite:{folder}")
    with pytest.raises(UsageError, match="--state"), ServerThread([], options):
        pass

    class Broken(MockServer):
        async def start(self) -> None:
            raise KeyError("broken")

    thread = ServerThread([])
    thread.server = Broken([])
    with pytest.raises(KeyError, match="broken"), thread:
        pass
