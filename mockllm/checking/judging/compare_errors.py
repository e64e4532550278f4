"""Compares an outcome with a clear error, where an error is correct. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from mockllm.checking.cases.case import Case
from mockllm.checking.judging.compare_answer import identity_differences, invariant_of_text
from mockllm.checking.judging.difference import (
    Difference,
    call_key,
    calls_of,
    comparable,
    complete_finishes,
    describe,
    format_calls,
    format_value,
    printable,
)
from mockllm.checking.judging.exceptions import exception_invariant
from mockllm.checking.judging.stream_reading import open_calls
from mockllm.checking.outcome import TEXTS, Outcome
from mockllm.checking.policy import Policy
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.values import json_value


def from_error(
    case: Case, got: Outcome, policy: Policy, required_by: str | None
) -> Iterator[Difference]:
    """The differences of an outcome from a clear error.

    Args:
        required_by: the invariant whose policy requires the error; None: the stream does.
    """
    invariant = required_by or "error-ends"
    of_service = any(trouble.kind == "stream_error" for trouble in case.expected.errors)
    if required_by is None and case.expected.finish is None and not of_service:
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
    if got.errors and required_by == "missing-id":
        yield from _unnamed_call(case, got)
    if got.errors:
        yield from _pretended_end(case, got, policy, invariant)
    yield from _incomplete_calls(case, got, invariant)
    yield from _texts_before_error(case, got, policy)
    yield from (
        difference
        for difference in identity_differences(case, got, policy)
        if getattr(got, difference.field) is not None
    )


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
        if not any(trouble.message in error.message for error in got.errors):
            reported = "; ".join(printable(error.message) for error in got.errors)
            description = (
                f"the error has not the service's message {format_value(trouble.message)}; "
                f"it is {format_value(reported)}"
            )
            # A client may have raised because of something else in the same chunk.
            raised = any(error.raised for error in got.errors)
            others = ("finish-and-usage", "null-tolerant", "unknown-event") if raised else ()
            yield Difference("error_message", description, "error-ends", alternatives=others)


def _is_stated(case: Case, text: str, *, whole: bool = False) -> bool:
    """Whether a text is in an event: some errors have mockllm's wording alone."""
    frames = PROTOCOLS[case.api].usual.readable(b"".join(case.chunks))
    return any(_holds(json_value(frame.data), text, whole) for frame in frames)


def _holds(value: Any, text: str, whole: bool) -> bool:
    if isinstance(value, str):
        return value == text if whole else bool(text) and text in value
    if isinstance(value, dict):
        return any(_holds(item, text, whole) for item in value.values())
    return isinstance(value, list) and any(_holds(item, text, whole) for item in value)


def _unnamed_call(case: Case, got: Outcome) -> Iterator[Difference]:
    """An error about a call without an id names it: by its index, its tool, or the word id."""
    names = [call.name for call in case.expected.tool_calls]
    for trouble in got.errors:
        if trouble.tool is not None or trouble.kind == "missing_id":
            return
        if re.search(r"\bids?\b|\d", trouble.message) or any(n in trouble.message for n in names):
            return
    reported = "; ".join(printable(error.message) for error in got.errors)
    description = f"no error names the call without an id: {format_value(reported)}"
    yield Difference("errors", description, "missing-id", conclusive=True)


def _pretended_end(
    case: Case, got: Outcome, policy: Policy, invariant: str
) -> Iterator[Difference]:
    """A finish of a complete answer beside the error, which the stream does not have. One that it
    has is what was sent, also where the client's policy makes the answer fail, unless calls are
    handed on with it."""
    if "finish" in policy.ignore or got.finish not in complete_finishes(case.api):
        return
    stated = case.expected.finish is not None or _is_stated(case, str(got.finish), whole=True)
    goes_on = calls_of(got) and not any(trouble.raised for trouble in got.errors)
    if stated and not (invariant == "malformed-contained" and goes_on):
        return
    description = f"finish is {format_value(got.finish)}, although the answer failed"
    yield Difference("finish", description, invariant, conclusive=True)


def _incomplete_calls(case: Case, got: Outcome, invariant: str) -> Iterator[Difference]:
    still_open = open_calls(case) if case.ids and got.tool_calls else frozenset()
    for call in calls_of(got):
        if call.id is not None and call.id in still_open:
            description = f"a call whose end was not sent comes out: {format_calls([call])}"
            yield Difference(
                "tool_calls", description, invariant, alternatives=("surface-complete",)
            )
            return
    sent = [*case.expected.tool_calls, *(case.plain.expected.tool_calls if case.plain else ())]
    known = set(map(call_key, sent))
    names = {call.name for call in sent}
    for call in map(comparable, calls_of(got)):
        # A complete call under another name, which the cases without an error show, too.
        renamed = any(one.id == call.id and one.arguments == call.arguments for one in sent)
        if renamed and case.ids and call.id and call.name not in names:
            description = f"the name of {call.id} is {format_value(call.name)}"
            yield Difference("tool_calls", description, "name-kept", conclusive=True)
        elif isinstance(call.arguments, dict) and call_key(call) not in known:
            description = f"a call that is not complete comes out: {format_calls([call])}"
            others = ("arguments-concatenate",) if call.name in names else ()
            alternatives = ("surface-complete", *others)
            yield Difference("tool_calls", description, invariant, alternatives=alternatives)


def _texts_before_error(case: Case, got: Outcome, policy: Policy) -> Iterator[Difference]:
    """The texts before the error have no characters that were not sent, and none twice."""
    for name in TEXTS:
        have: Any = getattr(got, name)
        if name in policy.ignore or not isinstance(have, str):
            continue
        forms = [form for form in (case, case.plain) if form is not None]
        outcomes = [outcome for one in forms for outcome in (*one.tolerated, one.expected)]
        whole = [getattr(outcome, name) for outcome in outcomes]
        if all(Counter(have) - Counter(text) for text in whole):
            description = (
                f"{name} is {format_value(have)}, and only {format_value(whole[-1])} was sent"
            )
            expected = getattr(case.expected, name)
            yield Difference(name, description, invariant_of_text(case, expected, have))
