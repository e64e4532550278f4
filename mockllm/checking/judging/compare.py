"""Compares a client's outcome with the expected one of a case. Pure.

Each difference names the invariant that it points to by itself. `attribution` may decide
otherwise, since it knows whether the client gets the plain form of the same answer right.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from mockllm.checking.cases.case import Case
from mockllm.checking.judging.compare_calls import call_differences
from mockllm.checking.judging.difference import (
    Difference,
    call_key,
    comparable,
    describe,
    format_calls,
    format_value,
    printable,
)
from mockllm.checking.judging.exceptions import exception_invariant, unexpected_errors
from mockllm.checking.judging.received import received
from mockllm.checking.outcome import NOT_KEPT, Call, Outcome, Usage, is_kept
from mockllm.checking.policy import Policy
from mockllm.quirks.base import Right

__all__ = ["Difference", "Judgement", "Verdict", "differences", "judge"]

Verdict = Literal["right", "tolerated", "wrong", "silent", "rejected", "crash", "not judged"]
"""The result of one case: `tolerated` is not the expected outcome, but an acceptable one; `silent`
is an answer where an error has to be reported; `rejected` is an error where the stream can be read;
`crash` is an exception that points to a bug."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """How one outcome was judged.

    Args:
        differences: from the correct outcome; empty for `right` and `tolerated`.
        not_judged: the fields of `Outcome` and `Call` that the case has values for and the client
            has not, or that the policy ignores.
        tolerated: which outcome was accepted in place of the expected one.
        exception: the client's own exception and the place that raised it; "" for none.
        at: the index of the event or read that it was raised at; None if it was not raised there.
    """

    verdict: Verdict
    differences: tuple[Difference, ...] = ()
    not_judged: tuple[str, ...] = ()
    tolerated: str = ""
    exception: str = ""
    at: int | None = None


def differences(case: Case, got: Outcome, policy: Policy) -> list[Difference]:
    """How an outcome differs from the correct one of a case; empty if it is correct."""
    return list(judge(case, got, policy).differences)


def judge(case: Case, got: Outcome, policy: Policy) -> Judgement:
    """Judges an outcome of a case.

    Every difference is found by itself. If the client reports an error, only those are left out
    that follow from it: whatever came after the error is missing.

    Args:
        got: what the client returned; its values may be of any type.
    """
    got, wrong_types = received(got)
    reaction, required_by = _required_reaction(case, policy)
    not_judged = _not_judged(case, got, policy)
    found: list[Difference] = []
    if reaction != "same":
        found = [*wrong_types, *_from_error(case, got, policy, required_by)]
        if not found:
            verdict: Verdict = "right" if reaction == "error" else "tolerated"
            return Judgement(verdict, (), not_judged, "a clear error")
    if reaction == "same" or (reaction == "either" and not got.errors):
        found = [*wrong_types, *_from_expected(case, got, policy)]
        tolerated = "" if not found else _tolerated(case, got, policy, wrong_types)
        if not found or tolerated:
            verdict = "tolerated" if tolerated else "right"
            return Judgement(verdict, (), not_judged, tolerated)
        no_end = list(_no_end(case, got, policy)) if reaction == "either" else []
        if no_end:
            found = [*no_end, *(one for one in found if not _follows(one, case, got))]
    exception = _exception(got)
    return Judgement(_verdict(found, reaction), tuple(found), not_judged, exception=exception)


def _exception(got: Outcome) -> str:
    """The first exception that the client raised, with the place that raised it."""
    raised = next((trouble for trouble in got.errors if trouble.raised), None)
    return "" if raised is None else f"{printable(raised.message)} ({raised.raised})"


def _verdict(found: Sequence[Difference], reaction: Right) -> Verdict:
    fields = {one.field for one in found}
    if "crash" in fields:
        return "crash"
    if "errors" in fields:
        return "silent" if reaction == "error" else "rejected"
    return "wrong"


def _required_reaction(case: Case, policy: Policy) -> tuple[Right, str | None]:
    """What a correct client does, and the invariant whose policy requires an error, if one does."""
    calls = case.expected.tool_calls
    if policy.missing_id == "error" and not case.ids and calls:
        return "error", "missing-id"
    if policy.malformed == "fail" and any(not isinstance(c.arguments, dict) for c in calls):
        return "error", "malformed-contained"
    return case.reaction, None


def _not_judged(case: Case, got: Outcome, policy: Policy) -> tuple[str, ...]:
    expected = case.expected
    names = [
        name
        for name in ("role", "model", "response_id", "opaque")
        if not is_kept(getattr(got, name)) and getattr(expected, name) not in (NOT_KEPT, None, ())
    ]
    if policy.usage_requested is False and expected.usage is not None and got.usage is None:
        names.append("usage")
    raw = [call for call in expected.tool_calls if is_kept(call.raw_arguments)]
    if raw and any(not is_kept(call.raw_arguments) for call in _calls(got)):
        names.append("raw_arguments")
    declared = ("text", "reasoning", "refusal", "tool_calls", "finish", "usage")
    names += [name for name in declared if name in policy.ignore and getattr(expected, name)]
    return tuple(dict.fromkeys(names))


def _calls(got: Any) -> tuple[Call, ...]:
    return got.tool_calls if isinstance(got.tool_calls, tuple) else ()


# Where an error is correct


def _from_error(
    case: Case, got: Outcome, policy: Policy, required_by: str | None
) -> Iterator[Difference]:
    """How an outcome differs from a clear error.

    Args:
        required_by: the invariant whose policy requires the error; None: the stream does.
    """
    invariant = required_by or "error-ends"
    if required_by is None and case.expected.finish is None and not case.expected.errors:
        invariant = "truncated-is-not-complete"
    if not got.errors:
        description = f"no error is reported, although {_reason(case, required_by)}"
        yield Difference(
            "errors",
            f"{description}; got {describe(got)}",
            invariant,
            conclusive=required_by is not None,
        )
    for trouble in got.errors:
        if trouble.crash:
            description = f"breaks instead of reporting an error: {printable(trouble.message)}"
            found, _ = exception_invariant(trouble, case)
            yield Difference("crash", description, found or invariant)
    if got.errors and required_by is None:
        yield from _service_message(case, got, policy)
    yield from _incomplete_calls(case, got, invariant)
    yield from _texts_before_error(case, got, policy)


def _reason(case: Case, required_by: str | None) -> str:
    if required_by == "missing-id":
        return "calls have no id"
    if required_by == "malformed-contained":
        return "a call has arguments that are no JSON object"
    reasons = "; ".join(error.message for error in case.expected.errors)
    return reasons or "the stream is not complete"


def _service_message(case: Case, got: Outcome, policy: Policy) -> Iterator[Difference]:
    """The message of an error in the stream is what the client's user has to read."""
    if "error_message" in policy.ignore or any(trouble.crash for trouble in got.errors):
        return
    for trouble in case.expected.errors:
        if trouble.kind != "stream_error" or not _is_stated(case, trouble.message):
            continue
        if not any(trouble.message in one.message for one in got.errors):
            reported = "; ".join(printable(one.message) for one in got.errors)
            description = (
                f"the error has not the service's message {format_value(trouble.message)}; "
                f"it is {format_value(reported)}"
            )
            # A client may have raised because of something else in the same chunk.
            raised = any(one.raised for one in got.errors)
            others = ("finish-and-usage", "null-tolerant", "unknown-event") if raised else ()
            yield Difference("error_message", description, "error-ends", alternatives=others)


def _is_stated(case: Case, message: str) -> bool:
    """Whether the service's message is in a decoded event: some errors are mockllm's wording."""
    return case.events is not None and any(
        _holds(value, message) for value, _ in case.events.decoded
    )


def _holds(value: Any, text: str) -> bool:
    if isinstance(value, str):
        return bool(text) and text in value
    if isinstance(value, dict):
        return any(_holds(item, text) for item in value.values())
    return isinstance(value, list) and any(_holds(item, text) for item in value)


def _incomplete_calls(case: Case, got: Outcome, invariant: str) -> Iterator[Difference]:
    sent = [*case.expected.tool_calls, *(case.plain.expected.tool_calls if case.plain else ())]
    known = set(map(call_key, sent))
    names = {call.name for call in sent}
    for call in map(comparable, _calls(got)):
        if isinstance(call.arguments, dict) and call_key(call) not in known:
            description = f"a call that is not complete comes out: {format_calls([call])}"
            alternatives = ("arguments-concatenate",) if call.name in names else ()
            yield Difference("tool_calls", description, invariant, alternatives=alternatives)


def _texts_before_error(case: Case, got: Outcome, policy: Policy) -> Iterator[Difference]:
    """Text that was read before the error is a beginning of the text that was sent."""
    for name in ("text", "reasoning", "refusal"):
        have: Any = getattr(got, name)
        if name in policy.ignore or not isinstance(have, str):
            continue
        whole = [getattr(one.expected, name) for one in (case, case.plain) if one is not None]
        if not any(text.startswith(have) for text in whole):
            description = (
                f"{name} is {format_value(have)}, which does not begin {format_value(whole[0])}"
            )
            yield Difference(name, description, _invariant_of_text(whole[0], have))


# Where the expected outcome is correct


def _from_expected(case: Case, got: Outcome, policy: Policy) -> list[Difference]:
    expected = case.expected
    kept, excluded = _apply_policy(policy, case)
    errors = list(unexpected_errors(case, got, policy, excluded))
    found: list[Difference] = []
    for name in ("text", "reasoning", "refusal"):
        if name not in policy.ignore and is_kept(getattr(got, name)):
            found += _text(name, getattr(expected, name), getattr(got, name))
    if "tool_calls" not in policy.ignore and isinstance(got.tool_calls, tuple):
        found += call_differences(case, kept, got, policy)
    if not errors and not any(one.subject == "tool_calls" for one in found):
        found += _unreported(got, policy, excluded)
    found = _doubted(found, got)
    found += _finish(case, got, policy)
    found += _usage(expected.usage, got.usage, policy)
    found += _identity(expected, got, policy)
    found += _opaque(expected, got, policy, found)
    if errors:
        return _beside_errors(errors, found, case, got)
    if excluded and got.errors and got.finish is None:
        # The error about one call is required, but the rest of the answer is lost with it.
        return [
            replace(one, invariant=excluded[0][2]) if _follows(one, case, got) else one
            for one in found
        ]
    return found


def _doubted(found: list[Difference], got: Outcome) -> list[Difference]:
    """The differences of calls; a name or an id is not conclusive where calls are put together
    wrongly, since it may be that of another call."""
    calls = [one for one in found if one.subject == "tool_calls"]
    wrong = [one for one in calls if not one.conclusive]
    if not wrong and not got.errors:
        return found
    causes = tuple(name for one in wrong[:1] for name in (one.invariant, *one.alternatives))
    return [
        replace(one, conclusive=False, alternatives=(*one.alternatives, *causes))
        if one in calls and one.conclusive and one.invariant in ("name-kept", "id-kept")
        else one
        for one in found
    ]


def _beside_errors(
    errors: list[Difference], found: list[Difference], case: Case, got: Outcome
) -> list[Difference]:
    """The differences of an outcome with errors, less those that follow from the errors."""
    rest = [replace(one, conclusive=False) for one in found if not _follows(one, case, got)]
    calls = [one for one in found if one.subject == "tool_calls"]
    if calls and _names_a_call(case, got):
        # An error that names a call: what is wrong with the call is its likely cause.
        errors = [
            one if one.field == "crash" or one.conclusive else _caused_by(one, calls[0])
            for one in errors
        ]
    return [*errors, *rest]


def _caused_by(error: Difference, call: Difference) -> Difference:
    alternatives = (*call.alternatives, error.invariant, *error.alternatives)
    return replace(error, invariant=call.invariant, alternatives=alternatives)


def _names_a_call(case: Case, got: Outcome) -> bool:
    names = {name for call in case.expected.tool_calls for name in (call.name, call.id) if name}
    return any(name in trouble.message for trouble in got.errors for name in names)


def _follows(difference: Difference, case: Case, got: Outcome) -> bool:
    """Whether a difference follows from an error: what came after the error is missing."""
    match difference.subject:
        case "finish":
            return got.finish is None
        case "usage":
            return True
        case "tool_calls":
            return all(_begins_a_call(call, case) for call in _calls(got))
        case "text" | "reasoning" | "refusal" as name:
            return str(getattr(case.expected, name)).startswith(str(getattr(got, name)))
        case "role" | "model" | "response_id" as name:
            return getattr(got, name) is None
        case "opaque":
            return not Counter(got.opaque or ()) - Counter(case.expected.opaque or ())  # type: ignore[arg-type]  # both are kept, or there is no difference
        case _:
            return False


def _begins_a_call(call: Call, case: Case) -> bool:
    """Whether a call is one of the expected ones, or its beginning."""
    same = [one for one in case.expected.tool_calls if one.name == call.name]
    have = comparable(call)
    return any(
        call_key(have) == call_key(one)
        or isinstance(have.arguments, str)
        or have.arguments in ({}, None)
        for one in same
    )


def _apply_policy(policy: Policy, case: Case) -> tuple[list[Call], list[tuple[int, Call, str]]]:
    """The calls that a client keeps under its policy, and those that it leaves out or reports:
    their index, the call, and the invariant."""
    offered = {tool.name for tool in case.tools}
    kept: list[Call] = []
    excluded: list[tuple[int, Call, str]] = []
    for index, call in enumerate(case.expected.tool_calls):
        if not isinstance(call.arguments, dict) and policy.malformed != "keep":
            excluded.append((index, call, "malformed-contained"))
        elif offered and call.name not in offered and policy.unknown_tool != "keep":
            excluded.append((index, call, "unknown-tool"))
        else:
            kept.append(call)
    return kept, excluded


def _unreported(
    got: Outcome, policy: Policy, excluded: Sequence[tuple[int, Call, str]]
) -> Iterator[Difference]:
    """Calls that the policy requires to be reported as errors, and that are not."""
    choices = {"malformed-contained": policy.malformed, "unknown-tool": policy.unknown_tool}
    for index, call, invariant in excluded:
        if choices[invariant] != "error":
            continue
        reported = any(
            trouble.tool == index
            or call.name in trouble.message
            or (call.id and call.id in trouble.message)
            for trouble in got.errors
        )
        if not reported:
            description = f"no error names the call {call.name} ({call.id})"
            yield Difference("unreported", description, invariant, conclusive=True)


_NULL_AS_TEXT = re.compile(r"None|null|undefined|\[object Object\]")


def _text(name: str, expected: str, got: str) -> Iterator[Difference]:
    if expected != got:
        description = f"{name} is {format_value(got)}, not {format_value(expected)}"
        invariant = _invariant_of_text(expected, got)
        others = () if invariant == "text-accumulates" else ("text-accumulates",)
        yield Difference(name, description, invariant, alternatives=others)


def _invariant_of_text(expected: str, got: str) -> str:
    if _is_repeated(expected, got):
        return "final-replaces"
    if _NULL_AS_TEXT.search(got) and not _NULL_AS_TEXT.search(expected):
        return "null-tolerant"
    return "text-accumulates"


def _is_repeated(expected: str, got: str) -> bool:
    """Whether a text has each character of the expected one the same number of times over."""
    times, rest = divmod(len(got), len(expected) or 1)
    if not expected or times < 2 or rest:
        return False
    return Counter(got) == {char: n * times for char, n in Counter(expected).items()}


def _no_end(case: Case, got: Outcome, policy: Policy) -> Iterator[Difference]:
    """An answer without an end, where an error could have been reported instead."""
    judged = case.finish_values and "finish" not in policy.ignore
    if judged and not got.errors and got.finish is None:
        description = f"neither an error nor an end of the answer is reported; got {describe(got)}"
        yield Difference("finish", description, "truncated-is-not-complete", conclusive=True)


def _finish(case: Case, got: Outcome, policy: Policy) -> Iterator[Difference]:
    if "finish" in policy.ignore or not case.finish_values or not is_kept(got.finish):
        return
    if got.finish not in case.finish_values:
        description = (
            f"finish is {format_value(got.finish)}, not {format_value(case.expected.finish)}"
        )
        yield Difference("finish", description, "finish-and-usage")


def _usage(expected: Usage | None, got: Usage | None, policy: Policy) -> Iterator[Difference]:
    if "usage" in policy.ignore or expected is None or not is_kept(got):
        return
    if got is None:
        if policy.usage_requested is not False:
            yield Difference("usage", "usage is lost", "finish-and-usage")
        return
    for name in ("input", "output", "reasoning", "cached"):
        reported, sent = getattr(got, name), getattr(expected, name)
        if reported is not None and reported != sent:
            description = f"usage: {name} is {reported} tokens, not {sent}"
            yield Difference("usage", description, "finish-and-usage")


_IDENTITY = {"role": "role-kept", "model": "answer-id-kept", "response_id": "answer-id-kept"}


def _identity(expected: Outcome, got: Outcome, policy: Policy) -> Iterator[Difference]:
    """Role, model and id of the answer, where the client keeps them."""
    for name, invariant in _IDENTITY.items():
        want, have = getattr(expected, name), getattr(got, name)
        if (
            not (is_kept(want) and is_kept(have))
            or want is None
            or want == have
            or name in policy.ignore
        ):
            continue
        description = f"{name} is {format_value(have)}, not {format_value(want)}"
        yield Difference(name, description, invariant, conclusive=have is not None)


def _opaque(
    expected: Outcome, got: Outcome, policy: Policy, beside: Sequence[Difference]
) -> Iterator[Difference]:
    """Signatures and other values that the client has to send back, in any order.

    Args:
        beside: the other differences: a value may be lost with its text or call.
    """
    if not (is_kept(expected.opaque) and is_kept(got.opaque)) or "opaque" in policy.ignore:
        return
    want, have = (Counter(list(one.opaque or ())) for one in (expected, got))  # type: ignore[arg-type]  # both are kept
    lost, added = list((want - have).elements()), list((have - want).elements())
    if lost or added:
        changes = [f"lost {format_value(lost)}"] if lost else []
        changes += [f"got {format_value(added)}, which was not sent"] if added else []
        description = f"opaque values: {', '.join(changes)}"
        lost_with = [
            one.invariant
            for one in beside
            if not added and one.subject in ("text", "reasoning", "tool_calls")
        ]
        yield Difference(
            "opaque",
            description,
            lost_with[0] if lost_with else "opaque-kept",
            conclusive=not lost_with,
            alternatives=tuple(
                dict.fromkeys([*lost_with[1:], *(["opaque-kept"] if lost_with else [])])
            ),
        )


# What is accepted besides


_ABOUT_ARGUMENTS = frozenset({"malformed-contained", "surface-complete", "arguments-concatenate"})


def _tolerated(case: Case, got: Outcome, policy: Policy, wrong_types: Sequence[Difference]) -> str:
    """Which acceptable outcome, other than the expected one, this is; "" if it is none."""
    if wrong_types or got.errors:
        return ""
    for outcome in case.tolerated:
        other = replace(case, expected=outcome, finish_values=_finish_values(case, outcome))
        if not _from_expected(other, got, policy):
            return f"the acceptable outcome {describe(outcome)}"
    if case.reaction != "either" or case.invariant not in _ABOUT_ARGUMENTS:
        return ""
    calls, description = _calls_under_policy(case, got, policy)
    if calls == case.expected.tool_calls:
        return ""
    other = replace(case, expected=replace(case.expected, tool_calls=calls))
    keeping = replace(policy, malformed="keep")
    return "" if _from_expected(other, got, keeping) else description


def _finish_values(case: Case, outcome: Outcome) -> frozenset[str]:
    return case.finish_values if outcome.finish is not None else frozenset()


def _calls_under_policy(case: Case, got: Outcome, policy: Policy) -> tuple[tuple[Call, ...], str]:
    """The calls of a stream whose arguments are broken, as a client's policy treats them.

    A client reads the arguments that the stream has. Whether these parse is what the case tests, so
    it may leave out such a call (`skip`) or keep its arguments as text (`keep`).
    """
    expected = case.expected.tool_calls
    have = list(map(comparable, _calls(got)))
    if policy.malformed == "skip":
        known = set(map(call_key, have))
        kept = tuple(call for call in expected if call_key(call) in known)
        return kept, "calls are left out whose arguments do not parse"
    if policy.malformed == "keep" and len(have) == len(expected):
        pairs = zip(expected, have, strict=True)
        kept = tuple(
            replace(want, arguments=one.arguments, raw_arguments=NOT_KEPT)
            if isinstance(one.arguments, str)
            else want
            for want, one in pairs
        )
        return kept, "arguments that do not parse are kept as text"
    return expected, ""
