"""Output rules, judged from the outcome of a client, and retry rules, judged from its requests.

`rulings.yaml` has the verdicts and their sentences.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from mockllm.checking.cases.case import Case, CaseFault
from mockllm.checking.outcome import Outcome, is_kept, parsed_arguments
from mockllm.checking.rules import Verdict, table
from mockllm.play.replay.sessions.exchange import Exchange

Ruling = tuple[Verdict, str]
"""The verdict of a rule, and what the client did, or why the rule was not judged."""

RIGHT: Ruling = ("right", "")


def fault_of(case: Case) -> CaseFault:
    """The fault of a case."""
    assert case.fault is not None, f"{case.name} has no fault"
    return case.fault


def ruling(name: str, /, **values: object) -> Ruling:
    """The ruling of a name in `rulings.yaml`, whose sentence is filled with values."""
    ((verdict, sentence),) = table("resilience/rulings.yaml")[name].items()
    return verdict, sentence.format(**values)


def is_whole(case: Case, outcome: Outcome) -> bool:
    """Whether a client has the whole answer, and reports no error."""
    return (
        not outcome.errors
        and outcome.text == case.expected.text
        and _arguments(outcome) == _arguments(case.expected)
    )


def _arguments(outcome: Outcome) -> list[Any]:
    """The arguments of the calls: values, or text that is not JSON."""
    return [parsed_arguments(call.arguments) for call in outcome.tool_calls]


def cut_reported(case: Case, outcome: Outcome) -> Ruling:
    """A stream that was cut is an error; a retry that succeeds needs none."""
    if outcome.errors:
        complete = outcome.partial is False and outcome.shown
        return ruling("error-as-complete") if complete else RIGHT
    return (
        RIGHT if not fault_of(case).texts and is_whole(case, outcome) else _without_error(outcome)
    )


def call_not_executed(case: Case, outcome: Outcome) -> Ruling:
    """A call of a stream that was cut is none, or is marked as partial."""
    handed = _arguments(outcome)
    if (
        not handed
        or (not fault_of(case).texts and handed == _arguments(case.expected) and not outcome.errors)
        or (outcome.errors and outcome.partial)
    ):
        return RIGHT
    if outcome.errors and outcome.partial is None:
        return ruling("calls-unmarked")
    listed = ", ".join(json.dumps(arguments, ensure_ascii=False)[:80] for arguments in handed)
    return ruling("call-handed-on", listed=listed)


def wrong_body(_: Case, outcome: Outcome) -> Ruling:
    """An answer that is no stream of its API is an error."""
    return RIGHT if outcome.errors else _without_error(outcome)


def nothing_twice(case: Case, outcome: Outcome) -> Ruling:
    """Whether the user saw the beginning of the answer once."""
    first = case.expected.text.split()[0]  # is in the answer once
    texts = {"its user saw": outcome.shown, "its text is": outcome.text}
    for where, text in texts.items():
        if text.count(first) > 1:
            return ruling("text-twice", where=where, text=text[:160])
    for where, text in texts.items():
        if not case.expected.text.startswith(text.strip()):
            return ruling("other-text", where=where, text=text[:160])
    return RIGHT


def only_last_calls(case: Case, outcome: Outcome) -> Ruling:
    """There is no call that the last try does not have."""
    expected, handed = _arguments(case.expected), _arguments(outcome)
    if outcome.errors:
        return ruling("no-retry-after-output")
    if len(handed) > len(expected) or any(argument not in expected for argument in handed):
        listed = ", ".join(json.dumps(argument)[:80] for argument in handed)
        return ruling("calls-handed-on", listed=listed)
    return RIGHT


def cause_named(case: Case, outcome: Outcome) -> Ruling:
    """The kind of the error is that of the fault."""
    known = [error for error in outcome.errors if is_kept(error.cause)]
    if not known:
        return ruling("kinds-unknown" if outcome.errors else "no-error-to-name")
    if any(error.cause in fault_of(case).kinds for error in known):
        return RIGHT
    return ruling(
        "other-cause",
        type=known[0].type or "its error",
        cause=known[0].cause or "no cause",
        wanted=" or ".join(sorted(fault_of(case).kinds)),
        message=known[0].message[:120],
    )


def nothing_left(_: Case, outcome: Outcome) -> Ruling:
    """Nothing is open after the client was closed."""
    if outcome.open_at_end is None:
        return ruling("open-unknown")
    left_open = [f"{number} {name}" for name, number in outcome.open_at_end.items() if number]
    return ruling("open-at-end", listed=", ".join(left_open)) if left_open else RIGHT


def _without_error(outcome: Outcome) -> Ruling:
    calls = f" and {len(outcome.tool_calls)} calls" if outcome.tool_calls else ""
    return ruling("no-error", text=outcome.text[:80], calls=calls)


# Requests that come again


_SLACK = 0.01
"""How much earlier than it was allowed to a request may come, in seconds: clocks differ."""

FINAL_STATUSES = frozenset({400, 401, 403, 404, 422})
"""The statuses after which the same request cannot succeed."""


GROWS = 1.05
"""A wait that is hardly longer than another says little: good clients wait for a random time."""


def waits(exchanges: Sequence[Exchange]) -> list[float]:
    """The seconds from the end of each answer to the next request."""
    return [
        two.received.clock - (one.received.clock + one.sent.duration)
        for one, two in pairwise(exchanges)
    ]


def asked_too_early(one: Exchange, two: Exchange) -> str:
    """The sentence about a request that came before the time that the answer before it says; ""
    where it did not."""
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
    """The sentence about a request that repeats one that was refused for good; "" where it does
    not."""
    if one.status not in FINAL_STATUSES or one.body != two.body:
        return ""
    return f"request {two.number} repeats request {one.number}, which got status {one.status}"


_KEYS = ("idempotency-key", "x-idempotency-key")


def different_requests(one: Exchange, two: Exchange) -> str:
    """The difference between two tries; "" for nothing."""
    if one.body != two.body:
        return f"request {two.number} has another body than request {one.number}"
    if one.path != two.path or one.received.method != two.received.method:
        return f"request {two.number} goes to {two.received.method} {two.path}, not to {one.path}"
    for name in _KEYS:
        first, second = one.headers.get(name), two.headers.get(name)
        if first is not None and first != second:
            return f"request {two.number} has another {name} than request {one.number}"
    return ""
