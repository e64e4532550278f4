"""The quotas of a server: which requests are answered, what an answer says is left, and how a
request beyond them is refused.

`mockllm.core.quotas` has the arithmetic. The buckets are in this process, or in the store of the
processes that share their state.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from mockllm.core.quotas import FULL, Charge, Fill, Level, Resource, Taken, excess_of, full_at, take
from mockllm.core.record import record
from mockllm.core.request import Request
from mockllm.core.seeded import derive
from mockllm.play.replay.call import Answered, ApiCall
from mockllm.play.replay.compilation.http_answer import HttpAnswer, error_answer
from mockllm.play.replay.quota_plan import Demand, Quota, charges, needs_request
from mockllm.play.replay.sessions.exchange import Played
from mockllm.wire.protocols.base import api_key, counted_tokens, limit_error

TakeFromBuckets = Callable[[Sequence[Charge], float, bool], Awaitable[Taken]]
"""Carries out charges at a time, by force or not, as `mockllm.core.quotas.take`, on buckets that
stay: in one step, whoever else takes from them."""


class MemoryBuckets:
    """The buckets of one process. Those that are full again are forgotten."""

    _MOST = 4096
    """So many are kept before the full ones are looked for."""

    def __init__(self) -> None:
        self._fills: dict[str, Fill] = {}
        self._full_at: dict[str, float] = {}
        self._most = self._MOST

    async def take(self, requested: Sequence[Charge], now: float, force: bool) -> Taken:
        """See `TakeFromBuckets`."""
        fills = [self._fills.get(charge.bucket, FULL) for charge in requested]
        taken = take(fills, requested, now, force=force)
        if taken.granted:
            for fill, charge, used in zip(fills, requested, taken.used, strict=True):
                self._fills[charge.bucket] = Fill(used, max(now, fill.at))
                self._full_at[charge.bucket] = full_at(used, now, charge.limit)
            if len(self._fills) > self._most:
                self._forget_full(now)
        return taken

    def _forget_full(self, now: float) -> None:
        for bucket in [name for name, at in self._full_at.items() if at <= now]:
            del self._fills[bucket], self._full_at[bucket]
        # Twice what is left: looking for them costs little for each request.
        self._most = max(self._MOST, 2 * len(self._fills))


@record
class MeteredCall:
    """A request, and what it takes of the quotas.

    Args:
        request: None where nothing needed to read it, or it cannot be read.
        charges: what it takes, of each limit.
        granted: whether it is answered.
        used: what of each bucket is used now.
        now: when that was, in seconds since 1970.
    """

    call: ApiCall
    request: Request | None
    charges: tuple[Charge, ...]
    granted: bool
    used: tuple[float, ...]
    now: float

    def headers(self) -> dict[str, str]:
        """The rest of the quotas, as headers of the API; where several limit one resource, that
        which has least."""
        least: dict[Resource, Level] = {}
        for charge, used in zip(self.charges, self.used, strict=True):
            level = Level(charge.limit, used, self.now, exceeded=not self.granted)
            before = least.get(charge.limit.resource)
            if before is None or level.remaining < before.remaining:
                least[charge.limit.resource] = level
        return self.call.protocol.quota_headers(self.call.target, tuple(least.values()))

    def refusal(self) -> Answered:
        """The answer to a request that is not granted."""
        protocol, target = self.call.protocol, self.call.target
        request = self.request or self.call.request
        model, stream = ("", False) if request is None else (request.model, request.stream)
        error = limit_error(protocol, target, excess_of(self.used, self.charges, model))
        seed, headers = derive("exceeded", error.message), self.headers().items()
        answer = error_answer(protocol, error, seed, headers=headers)
        played = Played(
            outcome="error",
            cause="quota",
            status=error.status,
            problems=(error.message,),
            api=protocol.name,
            model=model or None,
            stream=stream,
            retry_after=error.retry_after,
        )
        return Answered(answer, played)


class ServerQuotas:
    """The quotas of one server.

    Args:
        quotas: at least one.
        clock: the time of the buckets, in seconds since 1970.
        take: from the buckets; None: they are in this process.
    """

    def __init__(
        self,
        quotas: tuple[Quota, ...],
        clock: Callable[[], float] = time.time,
        take: TakeFromBuckets | None = None,
    ) -> None:
        self._quotas, self._clock = quotas, clock
        self._take = take or MemoryBuckets().take
        self._reads = needs_request(quotas)

    async def meter(self, call: ApiCall) -> MeteredCall:
        """Takes what a request needs, if there is enough. One that cannot be read needs no
        tokens."""
        key, request = api_key(call.headers, call.target), call.request if self._reads else None
        demand = Demand(key)
        if request is not None:
            stated = call.protocol.client.parameters(request.body).max_tokens
            demand = Demand(key, request.model, counted_tokens(request), max(stated or 0, 0))
        requested, now = charges(self._quotas, demand), self._clock()
        taken = await self._take(requested, now, False)
        return MeteredCall(call, request, requested, taken.granted, taken.used, now)

    async def settle(self, metered: MeteredCall, answer: HttpAnswer) -> HttpAnswer:
        """The answer to a request that was granted, with what is left afterwards; takes its output
        tokens."""
        owed = [charge for charge in metered.charges if charge.limit.resource == "output-tokens"]
        tokens = 0 if answer.generated is None else answer.generated.usage.output
        if owed and tokens:
            requested = [replace(charge, amount=tokens) for charge in owed]
            taken = await self._take(requested, self._clock(), True)
            later = dict(zip(owed, taken.used, strict=True))
            before = zip(metered.charges, metered.used, strict=True)
            used = tuple(later.get(charge, used) for charge, used in before)
            metered = replace(metered, used=used)
        headers = metered.headers()
        # A scenario's error for a limit says itself what is left.
        return answer if answer.status == 429 or not headers else answer.with_headers(headers)
