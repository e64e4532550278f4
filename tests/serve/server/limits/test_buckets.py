"""The buckets of one process."""

from __future__ import annotations

import asyncio

from mockllm.core.quotas import Charge, Limit
from mockllm.serve.server.limits.quotas import MemoryBuckets


def test_full_buckets_are_forgotten() -> None:
    """A client that makes up keys does not fill the memory for longer than its requests count."""
    limit = Limit("requests", 2)

    async def keep(count: int) -> int:
        buckets = MemoryBuckets()
        for number in range(count):
            taken = await buckets.take([Charge(f"key {number}", limit, 1)], number * 1.0, False)
            assert taken.granted
        return len(buckets._fills)

    assert asyncio.run(keep(20_000)) <= 4096 + 30
