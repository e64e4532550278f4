"""Compares an outcome with the expected one, field by field, where the stream can be read. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from mockllm.checking.cases.case import Case
from mockllm.checking.judging.compare_calls import call_differences
from mockllm.checking.judging.difference import (
    Difference,
    call_key,
    calls_of,
    comparable,
    format_value,
)
from mockllm.checking.judging.exceptions import is_about_call, unexpected_errors
from mockllm.checking.judging.stream_reading import is_in_order_of_arrival
from mockllm.checking.outcome import TEXTS, TOKEN_COUNTS, Call, Outcome, Usage, is_kept
from mockllm.checking.policy import Policy
from mockllm.wire.protocols import PROTOCOLS


def from_expected(case: Case, got: Outcome, policy: Policy) -> list[Difference]:
    """The differences of an outcome from the expected one of a case, under the client's policy.

    What follows from an error of the client is left out.
    """
    expected = case.expected
    kept, excluded = _apply_policy(policy, case)
    errors = list(unexpected_errors(case, got, policy, excluded))
    found: list[Difference] = []
    for name in TEXTS:
        if name not in policy.ignore and is_kept(getattr(got, name)):
            found += text_differences(case, name, getattr(got, name))
    if "tool_calls" not in policy.ignore and isinstance(got.tool_calls, tuple):
        found += call_differences(case, kept, got, policy)
    if not errors and not any(difference.subject == "tool_calls" for difference in found):
        found += _unreported_calls(got, policy, excluded)
    found = _doubt_names_and_ids(found, got)
    found += finish_differences(case, got, policy)
    found += usage_differences(expected.usage, got.usage, policy)
    found += identity_differences(case, got, policy)
    found += opaque_differences(expected, got, policy, found)
    if errors:
        return _beside_errors(errors, found, case, got)
    if excluded and got.errors and got.finish is None:
        # The error about one call is required, but the rest of the answer is lost with it.
        return [
            replace(
                difference,
                invariant=excluded[0][2],
                alternatives=(difference.invariant, *difference.alternatives),
            )
            if follows(difference, case, got)
            else difference
            for difference in found
        ]
    return found


def _doubt_names_and_ids(found: list[Difference], got: Outcome) -> list[Difference]:
    """The differences of calls; a name or an id is not conclusive where calls are put together
    wrongly, since it may be that of another call."""
    calls = [difference for difference in found if difference.subject == "tool_calls"]
    wrong = [call for call in calls if not call.conclusive]
    if not wrong and not got.errors:
        return found
    causes = tuple(
        name
        for difference in wrong[:1]
        for name in (difference.invariant, *difference.alternatives)
    )
    return [
        replace(difference, conclusive=False, alternatives=(*difference.alternatives, *causes))
        if difference in calls
        and difference.conclusive
        and difference.invariant in ("name-kept", "id-kept")
        else difference
        for difference in found
    ]


def _beside_errors(
    errors: list[Difference], found: list[Difference], case: Case, got: Outcome
) -> list[Difference]:
    """The differences of an outcome with errors, less those that follow from the errors."""
    rest = [
        replace(difference, conclusive=False)
        for difference in found
        if not follows(difference, case, got)
    ]
    calls = [difference for difference in found if difference.subject == "tool_calls"]
    if calls and any(is_about_call(trouble, case) for trouble in got.errors):
        # An error that names a call: what is wrong with the call is its likely cause.
        errors = [
            error if error.field == "crash" or error.conclusive else _caused_by(error, calls[0])
            for error in errors
        ]
    return [*errors, *rest]


def _caused_by(error: Difference, call: Difference) -> Difference:
    alternatives = (*call.alternatives, error.invariant, *error.alternatives)
    return replace(error, invariant=call.invariant, alternatives=alternatives)


def follows(difference: Difference, case: Case, got: Outcome) -> bool:
    """Whether a difference follows from an error: what came after the error is missing."""
    match difference.subject:
        case "finish":
            return got.finish is None
        case "usage":
            return True
        case "tool_calls":
            return all(_begins_a_call(call, case) for call in calls_of(got))
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
    same = [expected for expected in case.expected.tool_calls if expected.name == call.name]
    have = comparable(call)
    return any(
        call_key(have) == call_key(expected)
        or isinstance(have.arguments, str)
        or have.arguments in ({}, None)
        for expected in same
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


def _unreported_calls(
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
            others = ("surface-once", "arguments-concatenate")
            yield Difference("unreported", description, invariant, alternatives=others)


_NULL_AS_TEXT = re.compile(r"None|null|undefined|\[object Object\]")


def text_differences(case: Case, name: str, got: str) -> Iterator[Difference]:
    """The differences of a text, a reasoning or a refusal; `name` is its field."""
    expected = getattr(case.expected, name)
    if expected != got and not is_in_order_of_arrival(case, name, got):
        description = f"{name} is {format_value(got)}, not {format_value(expected)}"
        invariant = invariant_of_text(case, expected, got)
        others = () if invariant == "text-accumulates" else ("text-accumulates",)
        yield Difference(name, description, invariant, alternatives=others)


def invariant_of_text(case: Case, expected: str, got: str) -> str:
    """The invariant that a wrong text points to."""
    # Where no value is final, what is there twice came from elsewhere: from log probabilities.
    final = PROTOCOLS[case.api].events.has_finals or case.invariant == "final-replaces"
    if final and _is_repeated(expected, got):
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


def finish_differences(case: Case, got: Outcome, policy: Policy) -> Iterator[Difference]:
    """A finish that is none of the correct values."""
    if "finish" in policy.ignore or not case.finish_values or not is_kept(got.finish):
        return
    if got.finish not in case.finish_values:
        description = (
            f"finish is {format_value(got.finish)}, not {format_value(case.expected.finish)}"
        )
        # One that is lost may be lost with its chunk; another one was read wrongly.
        conclusive = got.finish is not None
        yield Difference("finish", description, "finish-and-usage", conclusive=conclusive)


def usage_differences(
    expected: Usage | None, got: Usage | None, policy: Policy
) -> Iterator[Difference]:
    """Usage that is lost, or has another count. A count that is None is not reported."""
    if "usage" in policy.ignore or expected is None or not is_kept(got):
        return
    if got is None:
        if policy.usage_requested is not False:
            yield Difference("usage", "usage is lost", "finish-and-usage")
        return
    for name in TOKEN_COUNTS:
        reported, sent = getattr(got, name), getattr(expected, name)
        if reported is not None and reported != sent:
            description = f"usage: {name} is {reported} tokens, not {sent}"
            yield Difference("usage", description, "finish-and-usage")


_IDENTITY = {"role": "role-kept", "model": "answer-id-kept", "response_id": "answer-id-kept"}


def identity_differences(case: Case, got: Outcome, policy: Policy) -> Iterator[Difference]:
    """Role, model and id of the answer, where the client keeps them."""
    for name, invariant in _IDENTITY.items():
        want, have = getattr(case.expected, name), getattr(got, name)
        if (
            not (is_kept(want) and is_kept(have))
            or (want is None and name != "role")
            or want == have
            or (name == "role" and have in ("assistant", PROTOCOLS[case.api].role))
            or name in policy.ignore
        ):
            continue
        description = f"{name} is {format_value(have)}, not {format_value(want)}"
        yield Difference(name, description, invariant, conclusive=have is not None)


def opaque_differences(
    expected: Outcome, got: Outcome, policy: Policy, beside: Sequence[Difference]
) -> Iterator[Difference]:
    """Signatures and other values that the client has to send back, in any order.

    Args:
        beside: the other differences: a value may be lost with its text or call.
    """
    if not (is_kept(expected.opaque) and is_kept(got.opaque)) or "opaque" in policy.ignore:
        return
    want, have = (Counter(list(outcome.opaque or ())) for outcome in (expected, got))  # type: ignore[arg-type]  # both are kept
    lost, added = list((want - have).elements()), list((have - want).elements())
    if lost or added:
        changes = [f"lost {format_value(lost)}"] if lost else []
        changes += [f"got {format_value(added)}, which was not sent"] if added else []
        description = f"opaque values: {', '.join(changes)}"
        lost_with = [
            difference.invariant
            for difference in beside
            if not added and difference.subject in ("text", "reasoning", "tool_calls")
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
