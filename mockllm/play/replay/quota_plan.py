"""Quotas of a server as options write them, and what a request takes from their buckets. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, get_args

from mockllm.core.errors import UsageError
from mockllm.core.pairs import read_pairs
from mockllm.core.quotas import Charge, Limit, Resource
from mockllm.core.record import record
from mockllm.core.seeded import derive
from mockllm.scenario.durations import read_duration

Sharing = Literal["", "key", "model"]

_KEYS = (*get_args(Resource), "by", "per")
_EXAMPLE = "requests=60 tokens=10000 by=key"
_MOST = 10**12


@record
class Quota:
    """The amounts that the clients of a server may use.

    Args:
        limits: each of another resource; all hold.
        by: whose requests count together: those with one API key, those for one model, or all.
    """

    limits: tuple[Limit, ...]
    by: Sharing = ""


@record
class Demand:
    """The needs of a request, and its client.

    Args:
        key: its API key; "" for none.
        model: that it names.
        input_tokens: of its messages and tools.
        max_tokens: that its answer may have; 0 where it does not say it.
    """

    key: str = ""
    model: str = ""
    input_tokens: int = 0
    max_tokens: int = 0

    def amount(self, resource: Resource) -> int:
        """The amount of a resource that it takes when it comes. What an answer has of output tokens
        is taken with the answer."""
        match resource:
            case "requests":
                return 1
            case "tokens":
                return self.input_tokens + self.max_tokens
            case "input-tokens":
                return self.input_tokens
            case "output-tokens":
                return 0


def charges(quotas: Iterable[Quota], demand: Demand) -> tuple[Charge, ...]:
    """The charges of a request on the buckets of quotas, one of each limit."""
    return tuple(
        Charge(_bucket(limit, quota.by, demand), limit, demand.amount(limit.resource))
        for quota in quotas
        for limit in quota.limits
    )


def _bucket(limit: Limit, by: Sharing, demand: Demand) -> str:
    """The name of a bucket. It is the same in all processes, and an API key cannot be read in
    it."""
    whose = {"key": demand.key, "model": demand.model, "": ""}[by]
    what = (limit.resource, limit.amount, limit.seconds, by, whose)
    return derive("quota", *what, length=32, hex=True)


def needs_request(quotas: Iterable[Quota]) -> bool:
    """Whether the body of a request decides what it takes."""
    return any(
        quota.by == "model" or limit.resource in ("tokens", "input-tokens")
        for quota in quotas
        for limit in quota.limits
    )


def read_quotas(written: Iterable[str]) -> tuple[Quota, ...]:
    """Quotas as options have them: `requests=60 tokens=10000 by=key`.

    Raises:
        UsageError: what is wrong in one of them.
    """
    quotas = tuple(map(_read_quota, written))
    seen: set[tuple[Limit, Sharing]] = set()
    for quota in quotas:
        for limit in quota.limits:
            if (limit, quota.by) in seen:
                raise UsageError(
                    f"--quota: {limit.resource}={limit.amount} is given twice; keep one"
                )
            seen.add((limit, quota.by))
    return quotas


def _read_quota(text: str) -> Quota:
    try:
        pairs = read_pairs(text, _KEYS, _EXAMPLE)
        by, seconds = pairs.pop("by", ""), _read_period(pairs.pop("per", "1m"))
        if by not in ("", "key", "model"):
            raise ValueError(f"by must be key or model, got {by!r}; without it, all count together")
        if not pairs:
            raise ValueError("it limits nothing; write requests=60, tokens=10000 or both")
        limits = tuple(
            Limit(key, _read_amount(key, value), seconds)  # type: ignore[arg-type]  # a Resource
            for key, value in pairs.items()
        )
    except ValueError as error:
        raise UsageError(f"--quota {text!r}: {error}") from None
    return Quota(limits, by)  # type: ignore[arg-type]  # one of the three


def _read_amount(key: str, value: str) -> int:
    is_number = value.isascii() and value.isdecimal() and len(value) <= len(str(_MOST))
    if not is_number or not 1 <= int(value) <= _MOST:
        raise ValueError(f"{key} must be a whole number from 1, got {value!r}")
    return int(value)


def _read_period(value: str) -> float:
    try:
        period = read_duration(value)
    except ValueError as error:
        raise ValueError(f"per must be {error}, got {value!r}") from None
    if not period:
        raise ValueError("per must be more than 0")
    return period / 1_000_000
