"""Rules about what a client hands on, judged from its outcome once it has answered. Pure."""

from __future__ import annotations

import json
from typing import Any

from mockllm.checking.outcome import Outcome, is_kept
from mockllm.checking.resilience.model import FaultCase, Ruling


def is_whole(case: FaultCase, outcome: Outcome) -> bool:
    """Whether a client has the whole answer, and reports no error."""
    return (
        not outcome.errors
        and outcome.text == case.text
        and _arguments(outcome) == [json.loads(call) for call in case.calls]
    )


def _arguments(outcome: Outcome) -> list[Any]:
    """The arguments of the calls: values, or text that is not JSON."""
    return [_value(call.arguments) for call in outcome.tool_calls]


def _value(arguments: Any) -> Any:
    if not isinstance(arguments, str):
        return arguments
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments


def _is_cut_for_good(case: FaultCase) -> bool:
    return bool(case.faults)


def cut_reported(case: FaultCase, outcome: Outcome) -> Ruling:
    """A stream that was cut is an error; a retry that succeeds needs none."""
    if outcome.errors:
        if outcome.partial is False and outcome.shown:
            return "wrong", "it reports an error, and what came so far as complete"
        return "right", ""
    if not _is_cut_for_good(case) and is_whole(case, outcome):
        return "right", ""
    return "wrong", f"no error; it hands on {_shortened(outcome)}"


def call_not_executed(case: FaultCase, outcome: Outcome) -> Ruling:
    """A call of a stream that was cut is none, or is marked as partial."""
    calls = [json.loads(call) for call in case.calls]
    handed = _arguments(outcome)
    if (
        not handed
        or (not _is_cut_for_good(case) and handed == calls and not outcome.errors)
        or (outcome.errors and outcome.partial)
    ):
        return "right", ""
    if outcome.errors and outcome.partial is None:
        reason = "it reports an error and calls, and does not say whether the calls are partial"
        return "not judged", reason
    listed = ", ".join(json.dumps(arguments, ensure_ascii=False)[:80] for arguments in handed)
    return "wrong", f"it hands on a call with the arguments {listed}"


def wrong_body(_: FaultCase, outcome: Outcome) -> Ruling:
    """An answer that is no stream of its API is an error."""
    if outcome.errors:
        return "right", ""
    return "wrong", f"no error; it hands on {_shortened(outcome)}"


def nothing_twice(case: FaultCase, outcome: Outcome) -> Ruling:
    """What the user saw has the beginning of the answer once."""
    first = case.text.split()[0]  # is in the answer once
    texts = {"its user saw": outcome.shown, "its text is": outcome.text}
    twice = [f"{where} {text[:160]!r}" for where, text in texts.items() if text.count(first) > 1]
    other = [
        f"{where} {text[:160]!r}, which is no beginning of the answer"
        for where, text in texts.items()
        if not case.text.startswith(text.strip())
    ]
    if twice:
        return "wrong", twice[0]
    if other:
        return "not judged", other[0]
    return "right", ""


def only_last_calls(case: FaultCase, outcome: Outcome) -> Ruling:
    """There is no call that the last try does not have."""
    expected = [json.loads(call) for call in case.calls]
    more = [argument for argument in _arguments(outcome) if argument not in expected]
    if outcome.errors:
        return "not judged", "it does not try again after output, and has an error"
    if more or len(_arguments(outcome)) > len(expected):
        listed = ", ".join(json.dumps(argument)[:80] for argument in _arguments(outcome))
        return "wrong", f"it hands on calls with the arguments {listed}"
    return "right", ""


def cause_named(case: FaultCase, outcome: Outcome) -> Ruling:
    """The kind of the error is that of the fault."""
    known = [error for error in outcome.errors if is_kept(error.cause)]
    if not outcome.errors:
        return "not judged", "it reports no error, which other rules judge"
    if not known:
        return "not judged", "the runner does not say of which kind errors are"
    if any(one.cause in case.kinds for one in known):
        return "right", ""
    first = known[0]
    wanted = " or ".join(sorted(case.kinds))
    text = f"{first.type or 'its error'} names {first.cause or 'no cause'}, not {wanted}"
    return "wrong", f"{text}: {first.message[:120]}"


def nothing_left(_: FaultCase, outcome: Outcome) -> Ruling:
    """Nothing is open after the client was closed."""
    if outcome.open_at_end is None:
        return "not judged", "the runner does not say what is open at the end"
    if open_ := {name: number for name, number in outcome.open_at_end.items() if number}:
        listed = ", ".join(f"{number} {name}" for name, number in open_.items())
        return "wrong", f"{listed} open after the client was closed"
    return "right", ""


def _shortened(outcome: Outcome) -> str:
    calls = len(outcome.tool_calls)
    text = outcome.text
    return f"{text[:80]!r}" + (f" and {calls} calls" if calls else "")
