"""The rules about tries of one request that a journal alone can judge. Pure.

They are judged only where they are required: good clients differ in what they try again, and a
test may repeat a request on purpose. `mockllm.checking.resilience` judges a client by all rules.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping

from mockllm.checking.conversations.violations import (
    Judge,
    JudgedSession,
    Violation,
    Violations,
)
from mockllm.checking.resilience.retries import (
    asked_too_early,
    different_requests,
    useless_repeats,
    waits,
)
from mockllm.checking.rules import RESILIENCE
from mockllm.replay.sessions.exchange import Exchange

MOST_TRIES = 10
"""How many tries of one request are bounded for sure; a harness that knows the declared number
judges by that."""


def _tries(record: JudgedSession) -> Iterator[list[Exchange]]:
    """The requests for one turn up to the answer that is whole, where there are several.

    Requests that overlap are of several conversations, in which tries are not known: they are left
    out.
    """
    for tries in _of_turns(record):
        if len(tries) > 1 and not any(_overlap(one, two) for one, two in itertools.pairwise(tries)):
            yield tries


def _of_turns(record: JudgedSession) -> Iterator[list[Exchange]]:
    open_: dict[tuple[str | None, str | None, int | None], list[Exchange]] = {}
    for exchange in record.journal:
        if exchange.outcome not in ("played", "error") or not exchange.received.clock:
            continue
        key = exchange.played.api, exchange.scenario, exchange.played.position
        tries = open_.setdefault(key, [])
        tries.append(exchange)
        if exchange.status < 400 and exchange.status and exchange.sent.complete:
            yield tries
            del open_[key]
    yield from open_.values()


_NOTED_LATE = 0.05
"""Seconds by which a busy server may note the end of an answer after the client has it."""


def _overlap(one: Exchange, two: Exchange) -> bool:
    return one.in_use or two.received.clock < one.received.clock + one.sent.duration - _NOTED_LATE


def _same(record: JudgedSession) -> Iterator[list[Exchange]]:
    """The tries that are the same request; others may be of another conversation."""
    return (tries for tries in _tries(record) if len({attempt.body for attempt in tries}) == 1)


def _of_pairs(
    rule: str,
    judged: Callable[[Exchange, Exchange], str],
    found: Callable[[JudgedSession], Iterator[list[Exchange]]] = _same,
) -> Judge:
    def judge(record: JudgedSession) -> Violations:
        for tries in found(record):
            for one, two in itertools.pairwise(tries):
                if text := judged(one, two):
                    message = f"{text}; a client {RESILIENCE[rule]}"
                    yield Violation(rule, two.number, message, location=two.number)

    return judge


def _bounded(record: JudgedSession) -> Violations:
    rule = "retry-bounded"
    for tries in _same(record):
        if len(tries) > MOST_TRIES:
            last = tries[-1].number
            message = f"{len(tries)} tries of one request; a client {RESILIENCE[rule]}"
            yield Violation(rule, last, message, location=last)


_FEWEST_WAITS = 3
_GROWS = 1.05
"""Fewer waits, or one that is hardly longer, say little: good clients wait for a random time."""


def _backoff(record: JudgedSession) -> Violations:
    rule = "backoff-grows"
    for tries in _same(record):
        stated = any(attempt.retry_after is not None for attempt in tries[:-1])
        each = waits(tries)
        if stated or len(each) < _FEWEST_WAITS or max(each[1:]) > each[0] * _GROWS:
            continue
        shown = ", ".join(f"{wait:.3f}" for wait in each)
        last = tries[-1].number
        message = f"the waits between tries do not grow: {shown} s; a client {RESILIENCE[rule]}"
        yield Violation(rule, last, message, location=last)


RETRY_RULES: Mapping[str, Judge] = {
    "retry-bounded": _bounded,
    "retry-after-honoured": _of_pairs("retry-after-honoured", asked_too_early),
    "backoff-grows": _backoff,
    "no-retry-where-useless": _of_pairs("no-retry-where-useless", useless_repeats),
    "retry-same": _of_pairs("retry-same", different_requests, _tries),
}
"""The judge of each rule."""
