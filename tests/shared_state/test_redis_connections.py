"""The connections to Redis, when its server ends and starts again."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from mockllm.replay.shared_session import Attempt
from mockllm.server.state.redis_store import RedisStore
from mockllm.server.state.store import StoreError
from tests.shared_state.replicas import redis_server

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


def test_a_full_server_refuses_as_if_it_were_away(tmp_path: Path) -> None:
    """With the policy `noeviction`, as deploy/ has it: what needs the store fails, nothing is
    evicted, and when there is room again, everything goes on where it was."""

    async def run() -> None:
        with redis_server(tmp_path) as server:
            store = RedisStore(server.url)
            one = Attempt(("busy", 0), 2)
            try:
                assert await store.perform("s", one) == 0
                await store._redis.config_set("maxmemory", 1)
                with pytest.raises(StoreError, match="maxmemory"):
                    await store.perform("s", one)
                await store._redis.config_set("maxmemory", 0)
                assert await store.perform("s", one) == 1
            finally:
                await store.close()

    asyncio.run(run())
