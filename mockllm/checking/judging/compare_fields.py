"""Compares the texts, the finish, the usage and the other fields of an outcome. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from mockllm.checking.cases.case import Case
from mockllm.checking.judging.arrival import is_in_order_of_arrival
from mockllm.checking.judging.difference import Difference, format_value
from mockllm.checking.outcome import Outcome, Usage, is_kept
from mockllm.checking.policy import Policy
from mockllm.protocols import PROTOCOLS

COUNTS = ("input", "output", "reasoning", "cached")
"""The token counts of `Usage`."""

_NULL_AS_TEXT = re.compile(r"None|null|undefined|\[object Object\]")


def text_differences(case: Case, name: str, got: str) -> Iterator[Difference]:
    """How a text, a reasoning or a refusal differs; `name` is its field."""
    expected = getattr(case.expected, name)
    if expected != got and not is_in_order_of_arrival(case, name, got):
        description = f"{name} is {format_value(got)}, not {format_value(expected)}"
        invariant = invariant_of_text(expected, got)
        others = () if invariant == "text-accumulates" else ("text-accumulates",)
        yield Difference(name, description, invariant, alternatives=others)


def invariant_of_text(expected: str, got: str) -> str:
    """The invariant that a wrong text points to."""
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


def finish_differences(case: Case, got: Outcome, policy: Policy) -> Iterator[Difference]:
    """A finish that is none of the correct values."""
    if "finish" in policy.ignore or not case.finish_values or not is_kept(got.finish):
        return
    if got.finish not in case.finish_values:
        description = (
            f"finish is {format_value(got.finish)}, not {format_value(case.expected.finish)}"
        )
        yield Difference("finish", description, "finish-and-usage")


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
    for name in COUNTS:
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
            or want is None
            or want == have
            or (name == "role" and have == PROTOCOLS[case.api].role)
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
