"""The rules about requests that come again, as a journal alone can judge them. Pure.

They are judged only where they are required: good clients differ in what they try again, and a
test may repeat a request on purpose. `mockllm.checking.resilience` judges a client by all rules.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from mockllm.checking.conversations.round_trips import Step
from mockllm.checking.conversations.session_history import (
    Judge,
    JudgedSession,
    Violation,
    Violations,
    violation,
)
from mockllm.checking.resilience.outcomes import (
    GROWS,
    asked_too_early,
    different_requests,
    useless_repeats,
    waits,
)
from mockllm.checking.rules import RESILIENCE
from mockllm.core.errors import UsageError
from mockllm.play.quirks import find
from mockllm.play.replay.filling import played_turn
from mockllm.play.replay.sessions.exchange import Exchange
from mockllm.scenario.model import Scenario

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
    # Requests beyond a quota have no turn; it is that of the request that is let through.
    refused: dict[tuple[str | None, bytes], list[Exchange]] = {}
    for exchange in record.journal:
        if exchange.outcome not in ("played", "error") or not exchange.received.clock:
            continue
        if exchange.played.mcp is not None:
            continue  # several clients number their requests alike; its tries are judged as calls
        same = exchange.played.api, exchange.body
        if exchange.scenario is None:
            refused.setdefault(same, []).append(exchange)
            continue
        key = exchange.played.api, exchange.scenario, exchange.played.position
        tries = open_.setdefault(key, [])
        tries += refused.pop(same, ())
        tries.append(exchange)
        if exchange.status < 400 and exchange.status and exchange.sent.complete:
            yield tries
            del open_[key]
    yield from (*open_.values(), *refused.values())


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


def _retry_bound(record: JudgedSession) -> Violations:
    rule = "retry-bounded"
    for tries in _same(record):
        if len(tries) > MOST_TRIES:
            last = tries[-1].number
            message = f"{len(tries)} tries of one request; a client {RESILIENCE[rule]}"
            yield Violation(rule, last, message, location=last)


_FEWEST_WAITS = 3
"""Fewer say little: good clients wait for a random time."""


def _backoff(record: JudgedSession) -> Violations:
    rule = "backoff-grows"
    for tries in _same(record):
        stated = any(attempt.retry_after is not None for attempt in tries[:-1])
        each = waits(tries)
        if stated or len(each) < _FEWEST_WAITS or max(each[1:]) > each[0] * GROWS:
            continue
        shown = ", ".join(f"{wait:.3f}" for wait in each)
        last = tries[-1].number
        message = f"the waits between tries do not grow: {shown} s; a client {RESILIENCE[rule]}"
        yield Violation(rule, last, message, location=last)


RETRY_RULES: Mapping[str, Judge] = {
    "retry-bounded": _retry_bound,
    "retry-after-honoured": _of_pairs("retry-after-honoured", asked_too_early),
    "backoff-grows": _backoff,
    "no-retry-where-useless": _of_pairs("no-retry-where-useless", useless_repeats),
    "retry-same": _of_pairs("retry-same", different_requests, _tries),
}
"""The judge of each rule."""


# Requests that a state store may have counted


def maybe_counted(
    journal: Sequence[Exchange], scenarios: Mapping[str, Scenario]
) -> Iterator[Exchange]:
    """The refused requests that a state store may have counted, so that the next try of each may
    have got the answer after the one that it should get.

    Where headers say which request is the next try, its number shows whether that is so. An equal
    body says nothing: tests repeat requests on purpose.
    """
    for place, refused in enumerate(journal):
        if refused.played.counted:
            retry = _next_try(refused, journal[place + 1 :])
            if retry is None or not _is_next(retry, refused, journal, scenarios):
                yield refused


def _next_try(refused: Exchange, later: Sequence[Exchange]) -> Exchange | None:
    """The next try of a request that was not refused in the same way."""
    latest = refused
    for exchange in later:
        if _is_retry(exchange, latest):
            if not exchange.played.counted:
                return exchange
            latest = exchange
    return None


_RETRY_COUNT = "x-stainless-retry-count"


def _is_retry(exchange: Exchange, refused: Exchange) -> bool:
    """Whether headers say that a request is the next try of another one."""
    key = refused.headers.get("idempotency-key")
    counts = [received.headers.get(_RETRY_COUNT, "0") for received in (refused, exchange)]
    if not key or key != exchange.headers.get("idempotency-key"):
        return False
    return all(map(str.isdecimal, counts)) and int(counts[1]) == int(counts[0]) + 1


def _is_next(
    retry: Exchange,
    refused: Exchange,
    journal: Sequence[Exchange],
    scenarios: Mapping[str, Scenario],
) -> bool:
    """Whether a try has the number that it has only if no refused one before it was counted."""
    scenario, position = scenarios.get(retry.scenario or ""), retry.played.position
    if scenario is None or position is None or retry.played.recorded:
        return False
    spec = played_turn(scenario, retry.played)
    if spec is None:
        return False
    before, counted = 0, 0  # the latest try of this turn, and the refused requests after it
    for exchange in journal[: journal.index(retry)]:
        if exchange.played.counted:
            counted += 1
        elif (exchange.scenario, exchange.played.position) == (retry.scenario, position):
            before, counted = exchange.played.attempt, 0
            if exchange.number > refused.number:
                return False
    if not spec.period:
        return retry.played.attempt == before + 1
    # After so many counts as there are answers, the number would be the same again.
    return counted < spec.period and retry.played.attempt == before % spec.period + 1


# Each answer is given once


def extra_requests(record: JudgedSession) -> Violations:
    """The requests for a turn that an earlier request got in full.

    Turns that answer several requests (`times`, `repeat`, `then: restart`), and those that the
    player gives once (`in_order`), are not judged. A request after an error, a cut stream or a
    stream that the client left is a retry.
    """
    scenarios = record.history.scenarios
    given: dict[tuple[str, int], Step] = {}
    for step in record.history.steps:
        exchange = step.exchange
        scenario, position = scenarios.get(exchange.scenario or ""), exchange.played.position
        if exchange.outcome not in ("played", "error") or scenario is None or position is None:
            continue
        if _repeats(scenario, exchange.played.turn):
            continue
        first = given.get((scenario.name, position))
        if first is not None:
            same = first.exchange.body == step.exchange.body
            again = violation(
                "answer-again",
                step,
                turn=position + 1,
                scenario=scenario.name,
                first=first.number,
                body="the same body" if same else "another body",
            )
            # Each extra request is a violation of its own, so its number is the location.
            yield replace(again, location=step.number)
        elif _has_whole_answer(step, scenario):
            given[scenario.name, position] = step


def _repeats(scenario: Scenario, index: int | None) -> bool:
    if scenario.restart or scenario.in_order or index is None:
        return True
    return scenario.turns[index].repeat or scenario.turns[index].times > 1


def _has_whole_answer(step: Step, scenario: Scenario) -> bool:
    """Whether the client has got the whole answer, so that it has no reason to try again."""
    exchange = step.exchange
    return (
        exchange.outcome == "played"
        and exchange.status < 300
        and exchange.sent.complete
        and not step.failed
        and not exchange.broken_off
        and exchange.sent.ended is not None
        and not any(map(_allows_retry, _quirks(step, scenario)))
    )


def _quirks(step: Step, scenario: Scenario) -> tuple[str, ...]:
    spec = played_turn(scenario, step.exchange.played)
    own = spec.wire.quirks if spec is not None and spec.wire is not None else ()
    return (*own, *step.exchange.played.quirks) if step.exchange.played.stream else ()


def _allows_retry(name: str) -> bool:
    """Whether a correct client may report an error for a stream with this quirk."""
    try:
        quirk, variant = find(name)
    except UsageError:
        return True  # of a scenario that was read by another version
    return (variant.right or quirk.prose.right) != "same"
