"""Rules about retries, judged from the requests that came. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from mockllm.replay.sessions.exchange import Exchange

_SLACK = 0.01
"""How much earlier than it was allowed to a request may come, in seconds: clocks differ."""

FINAL_STATUSES = frozenset({400, 401, 403, 404, 422})
"""The statuses after which the same request cannot succeed."""


def waits(exchanges: Sequence[Exchange]) -> list[float]:
    """The seconds from the end of each answer to the next request."""
    return [
        two.received.clock - (one.received.clock + one.sent.duration)
        for one, two in pairwise(exchanges)
    ]


def asked_too_early(one: Exchange, two: Exchange) -> str:
    """How a request came before the time that the answer before it says; "" where it did not."""
    if one.retry_after is None:
        return ""
    # From the arrival of the first request: a busy server notes the end of its answer after the
    # client has it.
    waited = two.received.clock - one.received.clock
    if waited >= one.retry_after - _SLACK:
        return ""
    return (
        f"request {two.number} came {waited:.3f} s after status {one.status} said to wait "
        f"{one.retry_after:g} s"
    )


def useless_repeats(one: Exchange, two: Exchange) -> str:
    """How a request repeats one that was refused for good; "" where it does not."""
    if one.status not in FINAL_STATUSES or one.body != two.body:
        return ""
    return f"request {two.number} repeats request {one.number}, which got status {one.status}"


_KEYS = ("idempotency-key", "x-idempotency-key")


def different_requests(one: Exchange, two: Exchange) -> str:
    """What differs between two tries; "" for nothing."""
    if one.body != two.body:
        return f"request {two.number} has another body than request {one.number}"
    if one.path != two.path or one.received.method != two.received.method:
        return f"request {two.number} goes to {two.received.method} {two.path}, not to {one.path}"
    for name in _KEYS:
        first, second = one.headers.get(name), two.headers.get(name)
        if first is not None and first != second:
            return f"request {two.number} has another {name} than request {one.number}"
    return ""
