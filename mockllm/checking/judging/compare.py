"""Compares a client's outcome with the expected one of a case. Pure.

Each difference names the invariant that it points to by itself. `attribution` may decide
otherwise, since it knows whether the client gets the plain form of the same answer right.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from mockllm.checking.cases.case import Case
from mockllm.checking.judging.compare_answer import follows, from_expected
from mockllm.checking.judging.compare_calls import has_sent_ids
from mockllm.checking.judging.compare_errors import from_error
from mockllm.checking.judging.difference import (
    Difference,
    call_key,
    calls_of,
    comparable,
    describe,
    printable,
)
from mockllm.checking.judging.received import with_declared_types
from mockllm.checking.outcome import (
    FIELDS,
    LABELS,
    NOT_KEPT,
    TEXTS,
    TOKEN_COUNTS,
    Call,
    Outcome,
    is_kept,
)
from mockllm.checking.policy import Policy
from mockllm.checking.rules import Verdict
from mockllm.play.quirks.base import Right

CLEAR_ERROR = "a clear error"
"""The other outcome that is accepted in place of an answer. The error is all of it: that it has no
place for values of the answer is no reason not to judge the case."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """The judgement of one outcome.

    Args:
        differences: from the correct outcome; empty for `right` and `tolerated`.
        not_judged: the fields of `Outcome` and `Call` that the case has values for and the client
            has not, or that the policy ignores.
        tolerated: which outcome was accepted in place of the expected one.
        exception: the client's own exception and the place that raised it; "" for none.
        at: the index of the event or read that it was raised at; None if it was not raised there.
        counts: the token counts that the client reports.
        lost_counts: those that the answer has and the client does not report. This is wrong where
            it reports them for other answers.
    """

    verdict: Verdict
    differences: tuple[Difference, ...] = ()
    not_judged: tuple[str, ...] = ()
    tolerated: str = ""
    exception: str = ""
    at: int | None = None
    counts: tuple[str, ...] = ()
    lost_counts: tuple[str, ...] = ()


def differences(case: Case, got: Outcome, policy: Policy) -> list[Difference]:
    """The differences of an outcome from the correct one of a case; empty if it is correct."""
    return list(judge(case, got, policy).differences)


def judge(case: Case, got: Outcome, policy: Policy) -> Judgement:
    """Judges an outcome of a case.

    Every difference is found by itself. If the client reports an error, only those are left out
    that follow from it: whatever came after the error is missing.

    Args:
        got: what the client returned; its values may be of any type.
    """
    got, wrong_types = with_declared_types(got)
    if "call_id" in policy.ignore:
        case, policy = replace(case, ids=False), replace(policy, missing_id="none")
    if case.custom:
        calls = (call for call in calls_of(got) if not {call.name, call.id} & case.custom)
        got = replace(got, tool_calls=tuple(calls))
    reaction, required_by = _required_reaction(case, got, policy)
    not_judged = _not_judged(case, got, policy)
    found: list[Difference] = []
    if reaction != "same":
        found = [*wrong_types, *from_error(case, got, policy, required_by)]
        if not found:
            verdict: Verdict = "right" if reaction == "error" else "tolerated"
            return Judgement(verdict, (), not_judged, CLEAR_ERROR)
    if reaction == "same" or (reaction == "either" and not got.errors):
        found = [*wrong_types, *from_expected(case, got, policy)]
        tolerated = (
            _acceptable_outcome(case, got, policy, wrong_types)
            if found
            else _in_other_order(case, got)
        )
        if not found or tolerated:
            verdict = "tolerated" if tolerated else "right"
            counts, lost = _counts(case, got)
            return Judgement(verdict, (), not_judged, tolerated, counts=counts, lost_counts=lost)
        no_end = list(_no_end(case, got, policy)) if reaction == "either" else []
        if no_end:
            found = [
                *no_end,
                *(difference for difference in found if not follows(difference, case, got)),
            ]
    exception = _exception(got)
    return Judgement(_verdict(found, reaction), tuple(found), not_judged, exception=exception)


def _exception(got: Outcome) -> str:
    """The first exception that the client raised, with the place that raised it."""
    raised = next((trouble for trouble in got.errors if trouble.raised), None)
    return "" if raised is None else printable(str(raised))


def _verdict(found: Sequence[Difference], reaction: Right) -> Verdict:
    fields = {difference.field for difference in found}
    if "crash" in fields:
        return "crash"
    if "errors" in fields:
        return "silent" if reaction == "error" else "rejected"
    return "wrong"


def _required_reaction(case: Case, got: Outcome, policy: Policy) -> tuple[Right, str | None]:
    """The reaction of a correct client, and the invariant whose policy requires an error, if one
    does."""
    calls = case.expected.tool_calls
    if (
        policy.missing_id == "error"
        and not case.ids
        and calls
        and not has_sent_ids(case, calls_of(got))
    ):
        return "error", "missing-id"
    if policy.malformed == "fail" and case.malformed:
        return "error", "malformed-contained"
    return case.reaction, None


def _not_judged(case: Case, got: Outcome, policy: Policy) -> tuple[str, ...]:
    expected = case.expected
    names = [
        name
        for name in LABELS
        if not is_kept(getattr(got, name)) and getattr(expected, name) not in (NOT_KEPT, None, ())
    ]
    if policy.usage_requested is False and expected.usage is not None and got.usage is None:
        names.append("usage")
    raw = [call for call in expected.tool_calls if is_kept(call.raw_arguments)]
    if raw and any(not is_kept(call.raw_arguments) for call in calls_of(got)):
        names.append("raw_arguments")
    names += [name for name in (*FIELDS, "call_id") if name in policy.ignore and case.expects(name)]
    return tuple(dict.fromkeys(names))


def _counts(case: Case, got: Outcome) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The token counts that a client reports, and those that are sent and not reported."""
    if got.usage is None or not is_kept(got.usage) or case.expected.usage is None:
        return (), ()
    reported = tuple(name for name in TOKEN_COUNTS if getattr(got.usage, name) is not None)
    sent = (name for name in TOKEN_COUNTS if getattr(case.expected.usage, name))
    lost = (name for name in sent if name not in reported)
    return reported, tuple(lost)


def _no_end(case: Case, got: Outcome, policy: Policy) -> Iterator[Difference]:
    """An answer without an end, where an error could have been reported instead."""
    judged = case.finish_values and "finish" not in policy.ignore
    if judged and not got.errors and got.finish is None:
        description = f"neither an error nor an end of the answer is reported; got {describe(got)}"
        yield Difference("finish", description, "truncated-is-not-complete", conclusive=True)


# What is accepted besides


_ABOUT_ARGUMENTS = frozenset({"malformed-contained", "surface-complete", "arguments-concatenate"})


def _acceptable_outcome(
    case: Case, got: Outcome, policy: Policy, wrong_types: Sequence[Difference]
) -> str:
    """Which acceptable outcome, other than the expected one, this is; "" if it is none."""
    if wrong_types:
        return ""
    # Errors that no policy requires are differences from any outcome.
    for outcome in case.tolerated:
        finish_values = case.finish_values if outcome.finish is not None else frozenset()
        other = replace(case, expected=outcome, finish_values=finish_values)
        if not from_expected(other, got, policy):
            return f"the acceptable outcome {describe(outcome)}"
    if got.errors or case.reaction != "either" or case.invariant not in _ABOUT_ARGUMENTS:
        return ""
    calls, description = _calls_under_policy(case, got, policy)
    if calls == case.expected.tool_calls:
        return ""
    other = replace(case, expected=replace(case.expected, tool_calls=calls))
    keeping = replace(policy, malformed="keep")
    return "" if from_expected(other, got, keeping) else description


def _in_other_order(case: Case, got: Outcome) -> str:
    """Which texts are right in the order of their arrival alone; "" if none is."""
    names = [
        name
        for name in TEXTS
        if isinstance(getattr(got, name), str)
        and getattr(got, name) != getattr(case.expected, name)
        and Counter(getattr(got, name)) == Counter(getattr(case.expected, name))
    ]
    return f"{', '.join(names)} in the order of arrival" if names else ""


def _calls_under_policy(case: Case, got: Outcome, policy: Policy) -> tuple[tuple[Call, ...], str]:
    """The calls of a stream whose arguments are broken, as a client's policy treats them.

    A client reads the arguments that the stream has. Whether these parse is what the case tests, so
    it may leave out such a call (`skip`) or keep its arguments as text (`keep`).
    """
    expected = case.expected.tool_calls
    have = list(map(comparable, calls_of(got)))
    if policy.malformed == "skip":
        known = set(map(call_key, have))
        kept = tuple(call for call in expected if call_key(call) in known)
        return kept, "calls are left out whose arguments do not parse"
    if policy.malformed == "keep" and len(have) == len(expected):
        pairs = zip(expected, have, strict=True)
        kept = tuple(
            replace(want, arguments=call.arguments, raw_arguments=NOT_KEPT)
            if isinstance(call.arguments, str)
            else want
            for want, call in pairs
        )
        return kept, "arguments that do not parse are kept as text"
    return expected, ""
