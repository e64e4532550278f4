"""The cost of a mistake for the client's user, and the subject of a case. Pure.

The verdict says how an outcome differs from the correct one. The cost says what follows: a call is
executed that the model did not make, data is lost silently, metadata is wrong, or the client fails
with an error.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

from mockllm.checking.cases.case import Case
from mockllm.checking.judging.compare import Judgement
from mockllm.checking.judging.difference import Difference, call_key, calls_of, comparable
from mockllm.checking.judging.received import with_declared_types
from mockllm.checking.outcome import FIELDS, LABELS, TEXTS, Call, Outcome
from mockllm.checking.rules import COSTS, FIELDS_OF, Cost, Verdict
from mockllm.play.quirks import find


def group_of(case: Case) -> str:
    """The subject of a case: the topic of its quirk; `plain`, or `cuts` for a variation of it."""
    wire = case.scenario.turns[0].for_api(case.api).wire
    names = (case.quirk, *(wire.quirks if wire is not None else ()))
    quirk = next(filter(None, names), "")
    if quirk:
        return find(quirk)[0].prose.topic
    return "plain" if case.plain is None else "cuts"


def uncounted_verdict(quirk: str, cost: Cost | None) -> tuple[Verdict, str] | None:
    """The verdict of a mistake that does not count, with the reason; None where it counts.

    A client is blamed for streams that a source shows, and may refuse, with an error, those that
    break their own protocol.
    """
    if not quirk:
        return None
    about, variant = find(quirk)
    if not about.prose.is_sourced(variant.name):
        return "informational", "no source shows a server that sends it"
    if cost == "loud failure" and about.prose.is_invalid(variant.name):
        return "non-strict", "the stream breaks its protocol, so an error is allowed"
    return None


def cost_of(
    case: Case, outcome: Outcome, judgement: Judgement, differences: Sequence[Difference]
) -> Cost | None:
    """The worst cost of the differences of an outcome; None if there are none.

    Args:
        differences: those of the judgement that count: an excused one costs nothing.
    """
    if not differences:
        return None
    got, _ = with_declared_types(outcome)
    if any(error.crash or error.raised for error in got.errors):
        # The user gets an exception, and nothing of the answer.
        return "loud failure"
    costs = {_cost(case, got, judgement, difference) for difference in differences}
    cost = next(cost for cost in COSTS if cost in costs)
    # What is lost with an error is not lost silently.
    return "loud failure" if cost == "data lost" and got.errors else cost


def _cost(case: Case, got: Outcome, judgement: Judgement, difference: Difference) -> Cost:
    if difference.field in ("crash", "errors"):
        return _of_reaction(case, got, judgement)
    if difference.field == "chunk":
        return _OF_CHUNK.get(difference.invariant, "data lost")
    if difference.subject == "tool_calls":
        return _of_calls(case, got, difference)
    is_data = difference.subject.partition(".")[0] in (*TEXTS, "opaque")
    return "data lost" if is_data else "wrong metadata"


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


# Which fields a case is about, and whether they were judged


_CONTENT = (*TEXTS, "tool_calls")
_FIELDS = (*FIELDS, *LABELS, "call_id", "raw_arguments")

_OF_GROUP = {
    "signatures": ("opaque",),
    "usage": ("usage",),
    **dict.fromkeys(("index", "ids", "names", "arguments", "calls"), ("tool_calls",)),
}


def unjudged_fields(
    case: Case, absent: Collection[str], judged: Collection[str]
) -> tuple[str, ...]:
    """The fields that the case has values for, and that were not judged.

    Args:
        absent: those that the client has no place for, or that the policy ignores.
        judged: those that the judgement itself names as not judged.
    """
    return tuple(
        name for name in _FIELDS if name in judged or (name in absent and case.expects(name))
    )


def fields_about(case: Case) -> tuple[str, ...]:
    """The fields that show whether a client gets a case right; () if errors do."""
    names = tuple(name for name in _candidates(case) if case.expects(name))
    if names or case.reaction == "error":
        return names
    # Nothing of it is in this stream: whatever else there is shows that the client reads it.
    return tuple(name for name in (*FIELDS, *LABELS) if case.expects(name))


def _candidates(case: Case) -> tuple[str, ...]:
    if case.reaction == "error":
        return ()
    if case.invariant in FIELDS_OF and case.invariant != "finish-and-usage":
        return tuple(FIELDS_OF[case.invariant])
    if not case.quirk:
        return _CONTENT
    own = find(case.quirk)[0].prose.fields
    if own:
        return own
    group = group_of(case)
    if case.invariant == "finish-and-usage" and group != "usage":
        return tuple(FIELDS_OF[case.invariant])
    for name in () if group == "signatures" else ("reasoning", "refusal"):
        if _is_of_own_sample(case, name):
            return (name,)
    return _OF_GROUP.get(group, _CONTENT)


def _is_of_own_sample(case: Case, name: str) -> bool:
    """Whether the sample that shows the quirk best has reasoning, or a refusal."""
    quirk, variant = find(case.quirk)
    kinds = {type(part).__name__ for part in quirk.sample_of(variant).turns[0].reply}
    return f"{name.title()}Part" in kinds
