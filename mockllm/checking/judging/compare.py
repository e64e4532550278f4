"""Compares a client's outcome with the expected one of a case. Pure.

Each difference names the invariant that it points to by itself. `attribution` may decide
otherwise, since it knows whether the client gets the plain form of the same answer right.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from mockllm.checking.cases.case import Case
from mockllm.checking.judging.compare_calls import call_differences
from mockllm.checking.judging.difference import (
    Difference,
    call_key,
    comparable,
    describe,
    format_calls,
    format_value,
)
from mockllm.checking.outcome import Call, Outcome, Usage
from mockllm.checking.policy import Policy
from mockllm.scenario.model import FramePart

__all__ = ["Difference", "differences"]


def differences(case: Case, got: Outcome, policy: Policy) -> list[Difference]:
    """How an outcome differs from the correct one of a case; empty if it is correct.

    The most telling difference comes first, and its consequences are left out: a client that
    crashes gets nothing else right either. If a client reports an error that names a call, its
    calls come first, since they are the likely cause.
    """
    found = _differences(case, got, policy)
    if any(one.field == "crash" for one in found):
        return [one for one in found if one.field == "crash"]
    errors = [one for one in found if one.field == "errors"]
    if not errors or case.reaction == "error":
        return found
    rest = [one for one in found if one.field != "errors" and not _cut_off(one, case, got)]
    if any(_names_a_call(case, trouble.message) for trouble in got.errors):
        calls = [one for one in found if one.subject == "tool_calls"]
        return [*calls, *(one for one in rest if one not in calls), *errors]
    return errors + rest


def _cut_off(difference: Difference, case: Case, got: Outcome) -> bool:
    """Whether a difference is only that an error came before the rest of the stream."""
    field = difference.field
    if field in ("finish", "usage"):
        return True
    if field == "tool_calls":
        return len(got.tool_calls) < len(case.expected.tool_calls)
    if field in ("text", "reasoning", "refusal"):
        return str(getattr(case.expected, field)).startswith(getattr(got, field))
    return False


def _names_a_call(case: Case, message: str) -> bool:
    names = {name for call in case.expected.tool_calls for name in (call.name, call.id) if name}
    return any(name in message for name in names)


def _differences(case: Case, got: Outcome, policy: Policy) -> list[Difference]:
    reaction, demanded_by = case.reaction, None
    if not case.ids and policy.missing_id == "error" and case.expected.tool_calls:
        reaction, demanded_by = "error", "missing-id"
    if reaction == "same":
        return list(_from_expected(case, got, policy))
    from_error = list(_from_error(case, got, demanded_by))
    if reaction == "error" or (not from_error and got.errors):
        return from_error
    found = list(_from_expected(case, got, policy))
    has_end = bool(case.finish_values) and "finish" not in policy.ignore
    if found and has_end and not got.errors and got.finish is None:
        description = f"neither an error nor an end of the answer is reported; got {describe(got)}"
        found.insert(
            0, Difference("finish", description, "truncated-is-not-complete", conclusive=True)
        )
    return found


# Where an error is correct


def _from_error(case: Case, got: Outcome, demanded_by: str | None = None) -> Iterator[Difference]:
    """How an outcome differs from a clear error.

    Args:
        demanded_by: the invariant whose policy demands the error; None: the stream does.
    """
    invariant = demanded_by or "error-ends"
    if demanded_by is None and case.expected.finish is None and not case.expected.errors:
        invariant = "truncated-is-not-complete"
    if not got.errors:
        reason = "; ".join(e.message for e in case.expected.errors) or "the stream is not complete"
        if demanded_by is not None:
            reason = "calls have no id"
        description = f"no error is reported, although {reason}; got {describe(got)}"
        yield Difference("errors", description, invariant, conclusive=demanded_by is not None)
        return
    for trouble in got.errors:
        if trouble.crash:
            description = f"breaks instead of reporting an error: {trouble.message}"
            yield Difference("crash", description, "null-tolerant")
    sent = [*case.expected.tool_calls, *(case.plain.expected.tool_calls if case.plain else ())]
    known = set(map(call_key, sent))
    names = {call.name for call in sent}
    for call in map(comparable, got.tool_calls):
        if isinstance(call.arguments, dict) and call_key(call) not in known:
            description = f"a call that is not complete comes out: {format_calls([call])}"
            alternatives = ("arguments-concatenate",) if call.name in names else ()
            yield Difference("tool_calls", description, invariant, alternatives=alternatives)


# Where the expected outcome is correct


_Excluded = tuple[int, Call, str]
"""A call that the policy leaves out or reports: its index, the call, and the invariant."""


def _from_expected(case: Case, got: Outcome, policy: Policy) -> Iterator[Difference]:
    expected = case.expected
    kept, excluded = _apply_policy(policy, case)
    yield from _unexpected_errors(case, got, policy, excluded)
    for name in ("text", "reasoning", "refusal"):
        if name not in policy.ignore:
            yield from _text(name, getattr(expected, name), getattr(got, name))
    if "tool_calls" not in policy.ignore:
        yield from call_differences(case, kept, got, policy)
    yield from _unreported(case, got, policy, excluded)
    if (
        "finish" not in policy.ignore
        and case.finish_values
        and got.finish not in case.finish_values
    ):
        yield Difference(
            "finish",
            f"finish is {format_value(got.finish)}, not {format_value(expected.finish)}",
            "finish-and-usage",
        )
    if "usage" not in policy.ignore:
        yield from _usage(expected.usage, got.usage)


def _apply_policy(policy: Policy, case: Case) -> tuple[list[Call], list[_Excluded]]:
    """The calls that a client keeps under its policy, and those that it leaves out or reports."""
    offered = {tool.name for tool in case.tools}
    kept: list[Call] = []
    excluded: list[_Excluded] = []
    for index, call in enumerate(case.expected.tool_calls):
        if not isinstance(call.arguments, dict) and policy.malformed != "keep":
            excluded.append((index, call, "malformed-contained"))
        elif offered and call.name not in offered and policy.unknown_tool != "keep":
            excluded.append((index, call, "unknown-tool"))
        else:
            kept.append(call)
    return kept, excluded


def _unexpected_errors(
    case: Case, got: Outcome, policy: Policy, excluded: Sequence[_Excluded]
) -> Iterator[Difference]:
    """Errors that neither the stream nor the policy explains."""
    required = _required_reports(policy, excluded)
    for trouble in got.errors:
        description = f"reports an error: {trouble.message}"
        if trouble.crash:
            on_null = _NULL_CRASH.search(trouble.message) is not None
            yield Difference("crash", description, "null-tolerant", conclusive=on_null)
        elif not required or (trouble.tool is None and not _names_a_call(case, trouble.message)):
            first, *others = _possible_causes(case, excluded)
            yield Difference("errors", description, first, alternatives=tuple(others))


def _unreported(
    case: Case, got: Outcome, policy: Policy, excluded: Sequence[_Excluded]
) -> Iterator[Difference]:
    """Calls that the policy wants reported as errors, and that no error names."""
    if any(trouble.tool is not None for trouble in got.errors):
        return
    if got.errors and not any(_names_a_call(case, trouble.message) for trouble in got.errors):
        return  # an error about the stream: `_unexpected_errors` has it
    for index, call, invariant in _required_reports(policy, excluded):
        if not any(call.name in e.message or (call.id or "\0") in e.message for e in got.errors):
            yield Difference(
                f"tool_calls[{index}]",
                f"no error names the call {call.name} ({call.id}), whose arguments are "
                f"{format_value(call.arguments)}",
                invariant,
            )


def _required_reports(policy: Policy, excluded: Sequence[_Excluded]) -> list[_Excluded]:
    """The calls that the client has to report."""
    choices = {"malformed-contained": policy.malformed, "unknown-tool": policy.unknown_tool}
    return [one for one in excluded if choices[one[2]] == "error"]


_NULL_CRASH = re.compile("NoneType|^KeyError")
"""The message of an exception on a value that is null or missing."""


def _possible_causes(case: Case, excluded: Sequence[_Excluded]) -> list[str]:
    """The invariants that an error in a correct stream may point to, the likeliest first."""
    turn = case.scenario.turns[0].for_api(case.api)
    found = [invariant for _, _, invariant in excluded[:1]]
    comments = turn.wire is not None and turn.wire.comments is not None
    if comments or any(isinstance(part, FramePart) for part in turn.reply):
        found.append("unknown-event")
    calls = case.expected.tool_calls
    if calls and all(call.arguments == {} for call in calls):
        found.append("zero-arguments")
    if calls:
        found.append("arguments-concatenate")
    if case.finish_values & {"length", "content_filter"}:
        found.append("finish-and-usage")
    return found or ["null-tolerant"]


_NULL_AS_TEXT = re.compile(r"None|null|undefined|\[object Object\]")


def _text(name: str, expected: str, got: str) -> Iterator[Difference]:
    if expected == got:
        return
    invariant = "text-accumulates"
    if _is_repeated(expected, got):
        invariant = "final-replaces"
    elif _NULL_AS_TEXT.search(got) and not _NULL_AS_TEXT.search(expected):
        invariant = "null-tolerant"
    description = f"{name} is {format_value(got)}, not {format_value(expected)}"
    yield Difference(name, description, invariant)


def _is_repeated(expected: str, got: str) -> bool:
    """Whether a text has each character of the expected one the same number of times over."""
    times, rest = divmod(len(got), len(expected) or 1)
    if not expected or times < 2 or rest:
        return False
    return Counter(got) == {char: n * times for char, n in Counter(expected).items()}


def _usage(expected: Usage | None, got: Usage | None) -> Iterator[Difference]:
    if expected is None:
        return
    if got is None:
        yield Difference("usage", "usage is lost", "finish-and-usage")
        return
    for name in ("input", "output", "reasoning", "cached"):
        reported, sent = getattr(got, name), getattr(expected, name)
        if reported is not None and reported != sent:
            description = f"usage: {name} is {reported} tokens, not {sent}"
            yield Difference("usage", description, "finish-and-usage")
