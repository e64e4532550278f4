"""The connections to Redis, when its server ends and starts again."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from mockllm.play.replay.sessions.shared_session import Attempt, Claim, Number
from mockllm.serve.server.state.redis_store import RedisStore
from mockllm.serve.server.state.store import Batch, Setup, StoreError
from tests.serve.server.shared_state.replicas import redis_server
from tests.timeouts import GIVE_UP

pytestmark = pytest.mark.slow


def test_all_connections_are_new_after_a_restart(tmp_path: Path) -> None:
    """Once a request failed, no later one meets a connection of the server that ended. (The client
    takes a closed connection of its pool for a good one, so each failed another request.)"""

    async def run() -> None:
        with redis_server(tmp_path) as server:
            store = RedisStore(server.url)
            try:
                await asyncio.gather(*(store.names() for _ in range(8)))
                server.kill()
                with pytest.raises(StoreError):
                    await store.names()
                server.start()
                await asyncio.gather(*(store.names() for _ in range(8)))
            finally:
                await store.close()

    asyncio.run(run())


def test_a_restart_that_meets_an_idle_connection(tmp_path: Path) -> None:
    """Nothing is refused: each request is sent again on a new connection."""

    async def run() -> None:
        with redis_server(tmp_path) as server:
            store = RedisStore(server.url)
            one = Attempt(("busy", 0), 9)
            try:
                await asyncio.gather(*(store.check() for _ in range(4)))
                for count in range(0, 6, 2):
                    assert await store.perform("s", one) == count
                    server.kill()
                    server.start()
                    assert await store.perform("s", one) == count + 1
            finally:
                await store.close()

    asyncio.run(run())


def test_an_answer_of_the_server_that_is_lost(tmp_path: Path) -> None:
    """What was carried out is not carried out again."""

    async def run() -> None:
        with redis_server(tmp_path) as server:
            cuts = CutsAnswers(server.port)
            port = await cuts.open()
            store = RedisStore(f"redis://127.0.0.1:{port}/0")
            entries = Batch("s", 2e9, b"{}", {"played": 1}, lost={"invalid": 2})
            for operation, outcomes in (
                (Attempt(("busy", 0), 4), [0, 1, 2, 3, 0]),
                (Claim((("a", 0), ("b", 1))), [0, 1, None, None, None]),
                (Number(), [0, 1, 2, 3, 4]),
            ):
                for outcome in outcomes:
                    cuts.next_one = True
                    assert await store.perform("s", operation) == outcome
                    assert not cuts.next_one
            cuts.next_one = True
            assert await store.create("made", Setup("1", b"{}"))
            cuts.next_one = True
            await store.append([entries])
            stored = await store.load("s")
            assert stored is not None
            assert (len(stored.entries), stored.forgotten) == (1, {"invalid": 2})
            await store.close()
            await cuts.close()

    asyncio.run(run())


class CutsAnswers:
    """Passes connections on to a port; the next answer that it is to cut reaches no client.

    Args:
        next_one: whether the next answer of the server is lost, with its connection.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        self.next_one = False
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def open(self) -> int:
        """Listens; the port."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def close(self) -> None:
        """Ends it when all connections are over."""
        assert self._server is not None
        self._server.close()
        await asyncio.gather(*self._tasks)

    async def _accept(self, client: asyncio.StreamReader, answer: asyncio.StreamWriter) -> None:
        server, requests = await asyncio.open_connection("127.0.0.1", self._port)
        for work in (self._pass(client, requests, cut=False), self._pass(server, answer, cut=True)):
            task = asyncio.create_task(work)
            self._tasks.add(task)

    async def _pass(
        self, source: asyncio.StreamReader, target: asyncio.StreamWriter, *, cut: bool
    ) -> None:
        while data := await source.read(65536):
            if cut and self.next_one:
                self.next_one = False
                break
            target.write(data)
        target.close()


def test_a_process_that_leaves_at_once(tmp_path: Path) -> None:
    """However far its connections are. (At some of these points the client loses a cancellation, so
    the process waited for ever.)"""

    async def run() -> None:
        with redis_server(tmp_path) as server:
            for steps in range(12):
                store = RedisStore(server.url)
                await store.open("p", {"flush": nothing})
                for _ in range(steps):
                    await asyncio.sleep(0)
                await asyncio.wait_for(store.close(), GIVE_UP)

    asyncio.run(run())


async def nothing() -> str:
    """Writes nothing."""
    return "done"


_VICTIM = """
import asyncio, os, sys
from dataclasses import replace
from mockllm.serve.server.state.redis_store import RedisStore
from mockllm.serve.server.state.store import Batch, mark_name
from tests.serve.server.shared_state.test_bounds import nothing, write

async def run(url, name):
    store, mark = RedisStore(url), mark_name(name, 1)
    await store.open(name, {"flush": nothing})
    for session in ("lost", "whole"):
        await store.mark(session, mark)
        await store.append([replace(write(session, 1), at=1.0)])
    await store.append([Batch("whole", 1.0, cleared=(mark,))])
    os._exit(9)

asyncio.run(run(*sys.argv[1:]))
"""


@pytest.mark.parametrize("restarted", [False, True])
def test_a_process_that_ended_without_a_word(tmp_path: Path, restarted: bool) -> None:
    """The sessions with a mark of it have a gap. If the server was started anew since its last sign
    of life, it may have answered meanwhile without marks: then all sessions of that time have."""

    async def run() -> None:
        with redis_server(tmp_path) as server:
            victim = [sys.executable, "-c", _VICTIM, server.url, "victim"]
            assert subprocess.run(victim, timeout=GIVE_UP).returncode == 9
            if restarted:
                server.kill()
                server.start()
            store = RedisStore(server.url)
            await store.open("other", {"flush": nothing})
            assert await store.flush_others() == ()
            for session, is_lost in (("lost", True), ("whole", restarted)):
                stored = await store.load(session)
                assert stored is not None
                assert ["victim" in gap for gap in stored.gaps] == [True] * is_lost
                await store.reset(session)
                stored = await store.load(session)
                assert stored is not None
                assert stored.gaps == ()
            await store.close()

    asyncio.run(run())


def test_a_full_server_refuses_as_if_it_were_away(tmp_path: Path) -> None:
    """With the policy `noeviction`, as packages/ has it: what needs the store fails, nothing is
    evicted, and when there is room again, everything goes on where it was."""

    async def run() -> None:
        with redis_server(tmp_path) as server:
            store = RedisStore(server.url)
            one = Attempt(("busy", 0), 2)
            try:
                assert await store.perform("s", one) == 0
                await store._connection.redis.config_set("maxmemory", 1)
                with pytest.raises(StoreError, match="maxmemory"):
                    await store.perform("s", one)
                await store._connection.redis.config_set("maxmemory", 0)
                assert await store.perform("s", one) == 1
            finally:
                await store.close()

    asyncio.run(run())
