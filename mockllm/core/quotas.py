"""Quotas: token buckets, which requests take from and which refill as time goes on.

A bucket holds what a limit allows in its time, and refills evenly, all the time. So a client that
has emptied it may go on as soon as there is enough for its next request; a service sends this time
in `retry-after`. Pure: the time is an argument.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from mockllm.core.record import record

Resource = Literal["requests", "tokens", "input-tokens", "output-tokens"]

_PERIODS: dict[float, str] = {1: "second", 60: "minute", 3600: "hour", 86400: "day"}


@record
class Limit:
    """The amount of a resource that may be used in a time.

    Args:
        amount: at least 1.
        seconds: in so many an empty bucket is full.
    """

    resource: Resource
    amount: int
    seconds: float = 60.0

    @property
    def noun(self) -> str:
        """The resource in words: `input tokens`."""
        return self.resource.replace("-", " ")

    @property
    def rounding(self) -> float:
        """The part that fills within a microsecond: times since 1970 are not more exact."""
        return 1e-9 + 1e-6 * self.amount / self.seconds

    @property
    def period(self) -> str:
        """The time in words: `minute`, `day`, `90s`."""
        return _PERIODS.get(self.seconds) or f"{self.seconds:g}s"


@record
class Charge:
    """The amount that a request takes from one bucket.

    Args:
        bucket: its name.
        amount: 0 where it is not known yet; but the bucket must not be empty.
    """

    bucket: str
    limit: Limit
    amount: int

    @property
    def needed(self) -> int:
        """The amount that there must be."""
        return max(self.amount, 1)


@record
class Fill:
    """The used part of a bucket, at a time in seconds."""

    used: float = 0.0
    at: float = 0.0

    def used_at(self, now: float, limit: Limit) -> float:
        """The part that is used later; a clock that is behind that of another process changes
        nothing."""
        refilled = max(0.0, now - self.at) * limit.amount / limit.seconds
        return max(0.0, self.used - refilled)


FULL = Fill()
"""A bucket from which nothing was taken."""


@record
class Taken:
    """The outcome of charges.

    Args:
        granted: whether there was enough in all buckets; if not, nothing was taken.
        used: what of each bucket is used now.
    """

    granted: bool
    used: tuple[float, ...]


def take(
    fills: Sequence[Fill], charges: Sequence[Charge], now: float, *, force: bool = False
) -> Taken:
    """Takes from all buckets or from none.

    Args:
        fills: of the buckets of the charges.
        now: in seconds.
        force: takes it also where there is not enough, as it was used already.
    """
    pairs = list(zip(fills, charges, strict=True))
    used = tuple(fill.used_at(now, charge.limit) for fill, charge in pairs)
    if not force and any(map(_lacks, used, charges)):
        return Taken(False, used)
    return Taken(
        True,
        tuple(part + charge.amount for part, charge in zip(used, charges, strict=True)),
    )


def _lacks(used: float, charge: Charge) -> bool:
    return used + charge.needed > charge.limit.amount + charge.limit.rounding


def full_at(used: float, now: float, limit: Limit) -> float:
    """When a bucket is full again, in seconds."""
    return now + used * limit.seconds / limit.amount


@record
class Level:
    """The rest of a limit, as an answer says it.

    Args:
        used: more than the limit where the last answer took more than there was.
        now: in seconds since 1970.
        exceeded: whether the request is refused because of this limit.
    """

    limit: Limit
    used: float
    now: float
    exceeded: bool = False

    @property
    def remaining(self) -> int:
        return max(0, math.floor(self.limit.amount - self.used + self.limit.rounding))

    @property
    def reset(self) -> float:
        """In how many seconds the whole limit is there again."""
        return self.used * self.limit.seconds / self.limit.amount

    @property
    def reset_at(self) -> float:
        """When that is, in seconds since 1970."""
        return full_at(self.used, self.now, self.limit)


@record
class Excess:
    """A request that needs more than there is.

    Args:
        requested: how much it needs of the limit.
        wait: in how many seconds there is enough, in whole milliseconds; None: there never is.
        model: of the request.
    """

    limit: Limit
    used: int
    requested: int
    wait: float | None
    model: str


def excess_of(used: Sequence[float], charges: Sequence[Charge], model: str) -> Excess:
    """The limit for which a refused request has to wait longest."""
    pairs = zip(used, charges, strict=True)
    lacking = [(part, charge) for part, charge in pairs if _lacks(part, charge)]
    part, charge = max(lacking, key=lambda pair: _seconds(*pair))
    seconds, limit = _seconds(part, charge), charge.limit
    # Rounded up: who waits for as long as it says must get through.
    wait = None if math.isinf(seconds) else math.ceil(round(seconds * 1000, 3)) / 1000
    return Excess(limit, math.ceil(part - limit.rounding), charge.needed, wait, model)


def _seconds(used: float, charge: Charge) -> float:
    """In how many seconds there is enough."""
    limit = charge.limit
    if charge.needed > limit.amount:
        return math.inf
    return (used + charge.needed - limit.amount) * limit.seconds / limit.amount
