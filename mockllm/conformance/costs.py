"""What a mistake of a client does to its user, and what a case is about. Pure.

The verdict says how an outcome differs from the correct one. The cost says what follows: a call is
executed that the model did not make, data is lost silently, metadata is wrong, or the client fails
with an error.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from mockllm.checking.cases.case import Case
from mockllm.checking.judging.compare import Difference, Judgement
from mockllm.checking.judging.difference import call_key, calls_of, comparable
from mockllm.checking.judging.received import received
from mockllm.checking.outcome import Call, Outcome
from mockllm.checking.rules import COSTS, Cost
from mockllm.quirks import find


def group_of(case: Case) -> str:
    """What a case is about: the topic of its quirk; `plain`, or `cuts` for a variation of it."""
    wire = case.scenario.turns[0].for_api(case.api).wire
    names = (case.quirk, *(wire.quirks if wire is not None else ()))
    quirk = next(filter(None, names), "")
    if quirk:
        return find(quirk)[0].prose.topic
    return "plain" if case.plain is None else "cuts"


def cost_of(
    case: Case, outcome: Outcome, judgement: Judgement, differences: Sequence[Difference]
) -> Cost | None:
    """The worst cost of the differences of an outcome; None if there are none.

    Args:
        differences: those of the judgement that count: an excused one costs nothing.
    """
    if not differences:
        return None
    got, _ = received(outcome)
    if any(error.crash or error.raised for error in got.errors):
        # The user gets an exception, and nothing of the answer.
        return "loud failure"
    found = {_cost(case, got, judgement, difference) for difference in differences}
    return next(cost for cost in COSTS if cost in found)


def _cost(case: Case, got: Outcome, judgement: Judgement, difference: Difference) -> Cost:
    if difference.field in ("crash", "errors"):
        return _of_reaction(case, got, judgement)
    if difference.field == "chunk":
        return _OF_CHUNK.get(difference.invariant, "data lost")
    if difference.subject == "tool_calls":
        return _of_calls(case, got, difference)
    return _OF_FIELD.get(difference.subject.partition(".")[0], "wrong metadata")


_OF_FIELD: dict[str, Cost] = {
    "text": "data lost",
    "reasoning": "data lost",
    "refusal": "data lost",
    "opaque": "data lost",
}

_OF_CHUNK: dict[str, Cost] = {
    "surface-complete": "wrong call",
    "surface-once": "wrong call",
    "input-untouched": "wrong metadata",
    "delta-first": "wrong metadata",
}
"""Of what was seen in the middle of a stream."""


def _of_reaction(case: Case, got: Outcome, judgement: Judgement) -> Cost:
    """Of an error that is reported wrongly, or not at all."""
    if got.errors:
        return "loud failure"
    executed = any(map(_can_be_executed, map(comparable, calls_of(got))))
    return "wrong call" if executed and judgement.verdict == "silent" else "data lost"


def _of_calls(case: Case, got: Outcome, difference: Difference) -> Cost:
    if difference.invariant in ("id-kept", "missing-id", "order-by-index"):
        return "wrong metadata"
    have = Counter(_keys(calls_of(got)))
    expected = Counter(_keys(case.expected.tool_calls))
    if have - expected:
        return "wrong call"
    if expected - have or len(calls_of(got)) < len(case.expected.tool_calls):
        return "data lost"
    if difference.field != "tool_calls":
        return "wrong metadata"
    # A call that the policy leaves out comes out; or one with broken arguments, and no error.
    return "wrong call" if difference.invariant == "unknown-tool" else "data lost"


def _keys(calls: Sequence[Call]) -> list[str]:
    """Name and arguments of the calls that a program would execute."""
    return [call_key(call) for call in map(comparable, calls) if _can_be_executed(call)]


def _can_be_executed(call: Any) -> bool:
    """Whether a call has a name, and an object of arguments."""
    return bool(call.name) and isinstance(call.arguments, dict)
