"""Rules about what a client hands on, judged from its outcome. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from mockllm.checking.resilience.model import ClientOutcome, FaultCase, Finding

__all__ = [
    "call_not_executed",
    "cause_named",
    "cut_reported",
    "is_whole",
    "nothing_left",
    "nothing_twice",
    "only_last_calls",
    "wrong_body",
]

_NO_ANSWER = "the client had not answered by its deadline"


def is_whole(case: FaultCase, outcome: ClientOutcome) -> bool:
    """Whether a client has the whole answer, and reports no error."""
    return (
        not outcome.failed
        and outcome.outcome.text == case.text
        and [_value(one) for one in outcome.arguments] == [json.loads(one) for one in case.calls]
    )


def _value(arguments: Any) -> Any:
    if not isinstance(arguments, str):
        return arguments
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments


def _is_cut_for_good(case: FaultCase) -> bool:
    return bool(case.faults)


def cut_reported(case: FaultCase, outcome: ClientOutcome) -> Iterator[Finding]:
    """A stream that was cut is an error; a retry that succeeds needs none."""
    rule = "cut-reported"
    if not outcome.answered:
        yield Finding(rule, "not judged", _NO_ANSWER)
    elif outcome.failed:
        if outcome.partial is False and outcome.shown:
            yield Finding(rule, "wrong", "it reports an error, and what came so far as complete")
        else:
            yield Finding(rule, "right")
    elif not _is_cut_for_good(case) and is_whole(case, outcome):
        yield Finding(rule, "right")
    else:
        yield Finding(rule, "wrong", f"no error; it hands on {_shortened(outcome)}")


def call_not_executed(case: FaultCase, outcome: ClientOutcome) -> Iterator[Finding]:
    """A call of a stream that was cut is none, or is marked as partial."""
    rule = "cut-call-not-executed"
    calls = [json.loads(one) for one in case.calls]
    handed = [_value(one) for one in outcome.arguments]
    if not outcome.answered:
        yield Finding(rule, "not judged", _NO_ANSWER)
    elif (
        not handed
        or (not _is_cut_for_good(case) and handed == calls and not outcome.failed)
        or (outcome.failed and outcome.partial)
    ):
        yield Finding(rule, "right")
    elif outcome.failed and outcome.partial is None:
        reason = "it reports an error and calls, and does not say whether the calls are partial"
        yield Finding(rule, "not judged", reason)
    else:
        listed = ", ".join(json.dumps(one, ensure_ascii=False)[:80] for one in handed)
        yield Finding(rule, "wrong", f"it hands on a call with the arguments {listed}")


def wrong_body(outcome: ClientOutcome) -> Iterator[Finding]:
    """An answer that is no stream of its API is an error."""
    rule = "wrong-body-reported"
    if not outcome.answered:
        yield Finding(rule, "not judged", _NO_ANSWER)
    elif outcome.failed:
        yield Finding(rule, "right")
    else:
        yield Finding(rule, "wrong", f"no error; it hands on {_shortened(outcome)}")


def nothing_twice(case: FaultCase, outcome: ClientOutcome) -> Iterator[Finding]:
    """What the user saw has the beginning of the answer once."""
    rule = "no-duplicate-output"
    first = case.text.split()[0]  # is in the answer once
    texts = {"its user saw": outcome.shown, "its text is": outcome.outcome.text}
    twice = [f"{where} {text[:160]!r}" for where, text in texts.items() if text.count(first) > 1]
    other = [
        f"{where} {text[:160]!r}, which is no beginning of the answer"
        for where, text in texts.items()
        if not case.text.startswith(text.strip())
    ]
    if not outcome.answered:
        yield Finding(rule, "not judged", _NO_ANSWER)
    elif twice:
        yield Finding(rule, "wrong", twice[0])
    elif other:
        yield Finding(rule, "not judged", other[0])
    else:
        yield Finding(rule, "right")


def only_last_calls(case: FaultCase, outcome: ClientOutcome) -> Iterator[Finding]:
    """There is no call that the last try does not have."""
    rule = "no-phantom-call"
    expected = [json.loads(one) for one in case.calls]
    more = [one for one in map(_value, outcome.arguments) if one not in expected]
    if not outcome.answered:
        yield Finding(rule, "not judged", _NO_ANSWER)
    elif outcome.failed:
        yield Finding(rule, "not judged", "it does not try again after output, and has an error")
    elif more or len(outcome.arguments) > len(expected):
        listed = ", ".join(json.dumps(one)[:80] for one in map(_value, outcome.arguments))
        yield Finding(rule, "wrong", f"it hands on calls with the arguments {listed}")
    else:
        yield Finding(rule, "right")


def cause_named(case: FaultCase, outcome: ClientOutcome) -> Iterator[Finding]:
    """The kind of the error is that of the fault."""
    rule = "error-names-cause"
    known = [one for one in outcome.errors if one.has_kind]
    if not outcome.answered:
        yield Finding(rule, "not judged", _NO_ANSWER)
    elif not outcome.failed:
        yield Finding(rule, "not judged", "it reports no error, which other rules judge")
    elif not known:
        yield Finding(rule, "not judged", "the runner does not say of which kind errors are")
    elif any(one.kind in case.kinds for one in known):
        yield Finding(rule, "right")
    else:
        first = known[0]
        wanted = " or ".join(sorted(case.kinds))
        text = f"{first.type or 'its error'} names {first.kind or 'no cause'}, not {wanted}"
        yield Finding(rule, "wrong", f"{text}: {first.message[:120]}")


def nothing_left(outcome: ClientOutcome) -> Iterator[Finding]:
    """Nothing is open after the client was closed."""
    rule = "leaves-nothing"
    if not outcome.answered:
        yield Finding(rule, "not judged", _NO_ANSWER)
    elif outcome.left is None:
        yield Finding(rule, "not judged", "the runner does not say what is open at the end")
    elif open_ := {name: number for name, number in outcome.left.items() if number}:
        listed = ", ".join(f"{number} {name}" for name, number in open_.items())
        yield Finding(rule, "wrong", f"{listed} open after the client was closed")
    else:
        yield Finding(rule, "right")


def _shortened(outcome: ClientOutcome) -> str:
    calls = len(outcome.outcome.tool_calls)
    text = outcome.outcome.text
    return f"{text[:80]!r}" + (f" and {calls} calls" if calls else "")
