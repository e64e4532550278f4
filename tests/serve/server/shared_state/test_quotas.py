"""Quotas that several server processes share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mockllm.core.quotas import Charge, Limit, Taken
from mockllm.play.replay.quota_plan import read_quotas
from mockllm.serve.server.limits.quotas import MemoryBuckets
from mockllm.serve.server.state.shared_state import store_of
from tests.serve.server.shared_state.replicas import replicas

TEXT = "scenario: s\nmatch: any\nturns:\n- {reply: [{text: fine}], repeat: true}\n"


def test_servers_let_exactly_so_many_through(state: str) -> None:
    """Two servers, each with many requests at once, and one quota: all together get it."""
    quotas = read_quotas(["requests=20 per=1440m by=key"])
    with replicas(TEXT, state, 2, quotas=quotas) as servers, ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(lambda at: servers.chat("x", to=at % 2).status, range(50)))
        assert statuses.count(200) == 20
        assert statuses.count(429) == 30
        journal = servers.everywhere("/_mockllm/journal")["exchanges"]
        waits = [entry["retry_after"] for entry in journal if entry["status"] == 429]
        assert len(waits) == 30
        assert all(0 < wait <= 86_400 / 20 for wait in waits)


def test_a_server_that_starts_later(state: str) -> None:
    """It goes on where the others are."""
    quotas = read_quotas(["requests=3 output-tokens=3 per=1440m"])
    for expected in ([200, 200], [200, 429]):
        with replicas(TEXT, state, 2, quotas=quotas) as servers:
            assert [servers.chat("x").status for _ in range(2)] == expected


LIMITS = (
    Limit("requests", 3),
    Limit("tokens", 100, 7.0),
    Limit("input-tokens", 1000, 86400.0),
    Limit("output-tokens", 10**9, 0.5),
)
DRAWS = st.builds(
    lambda place, bucket, amount: Charge(f"{bucket}{place}", LIMITS[place], amount),
    st.integers(0, len(LIMITS) - 1),
    st.sampled_from("ab"),
    st.sampled_from([0, 1, 2, 3, 50, 101, 999_999_999]),
)
STEPS = st.lists(
    st.tuples(
        st.lists(DRAWS, min_size=1, max_size=4, unique_by=lambda charge: charge.bucket),
        st.sampled_from([0.0, 0.001, 1.0, 20.0, 90.0, -0.01]),
        st.booleans(),
    ),
    max_size=12,
)
Steps = list[tuple[list[Charge], float, bool]]
_IN_TURN = settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def carried_out(state: str) -> Iterator[Callable[[Steps, str], list[Taken]]]:
    """What a store makes of steps; each run has buckets of its own."""
    store = store_of(state)
    with asyncio.Runner() as runner:
        runner.run(store.open("process", {"flush": _flushed, "figures": _flushed}))

        def carry_out(steps: Steps, run: str) -> list[Taken]:
            async def take_all() -> list[Taken]:
                return [
                    await store.take([_of_run(charge, run) for charge in charges], now, owed)
                    for charges, now, owed in steps
                ]

            return runner.run(take_all())

        yield carry_out
        runner.run(store.close())


async def _flushed() -> str:
    return ""


def _of_run(charge: Charge, run: str) -> Charge:
    return Charge(f"{run}/{charge.bucket}", charge.limit, charge.amount)


RUNS = iter(range(10**9))


@_IN_TURN
@given(steps=STEPS)
def test_stores_count_alike(carried_out: Callable[[Steps, str], list[Taken]], steps: Steps) -> None:
    """What a store takes and refuses is what one process takes and refuses by itself."""
    now, timed = 1_767_225_600.25, []
    for charges, later, owed in steps:
        now += later
        timed.append((charges, now, owed))

    async def in_memory() -> list[Taken]:
        buckets = MemoryBuckets()
        return [await buckets.take(charges, at, owed) for charges, at, owed in timed]

    expected = asyncio.run(in_memory())
    found = carried_out(timed, f"run {next(RUNS)}")
    for one, other in zip(expected, found, strict=True):
        assert one.granted == other.granted
        assert other.used == pytest.approx(one.used, rel=1e-12, abs=1e-9)
