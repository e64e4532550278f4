"""Which fields of an outcome a case is about, and whether they were judged. Pure.

A client that has no place for reasoning gets every quirk of reasoning right, since nothing is
compared. Such a case is not judged.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from mockllm.checking.cases.case import Case
from mockllm.checking.outcome import FIELDS, LABELS, TEXTS
from mockllm.conformance.costs import group_of
from mockllm.quirks import find

_CONTENT = (*TEXTS, "tool_calls")
_FIELDS = (*FIELDS, *LABELS, "raw_arguments")

_OF_INVARIANT = {
    "role-kept": ("role",),
    "opaque-kept": ("opaque",),
    "answer-id-kept": ("model", "response_id"),
    "raw-arguments-kept": ("raw_arguments",),
}

_OF_GROUP = {
    "signatures": ("opaque",),
    "usage": ("usage",),
    "index": ("tool_calls",),
    "ids": ("tool_calls",),
    "names": ("tool_calls",),
    "arguments": ("tool_calls",),
    "calls": ("tool_calls",),
}


def unjudged(case: Case, absent: Collection[str], judged: Collection[str]) -> tuple[str, ...]:
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
    found = tuple(name for name in _candidates(case) if case.expects(name))
    if found or case.reaction == "error":
        return found
    # Nothing of it is in this stream: whatever else there is shows that the client reads it.
    return tuple(name for name in _FIELDS[:-1] if case.expects(name))


def _candidates(case: Case) -> tuple[str, ...]:
    if case.reaction == "error":
        return ()
    if case.invariant in _OF_INVARIANT:
        return _OF_INVARIANT[case.invariant]
    if not case.quirk:
        return _CONTENT
    if _keys_changed(case) == {"role"}:
        return ("role",)
    group = group_of(case)
    if case.invariant == "finish-and-usage" and group != "usage":
        return ("finish", "usage")
    for name in () if group == "signatures" else ("reasoning", "refusal"):
        if _is_of_own_sample(case, name):
            return (name,)
    return _OF_GROUP.get(group, _CONTENT)


def _is_of_own_sample(case: Case, name: str) -> bool:
    """Whether the sample that shows the quirk best has reasoning, or a refusal."""
    quirk, variant = find(case.quirk)
    kinds = {type(part).__name__ for part in quirk.sample_of(variant).turns[0].reply}
    return f"{name.title()}Part" in kinds


def _keys_changed(case: Case) -> set[str]:
    """The names of the fields in the stream that differ from the plain form."""
    if case.events is None or case.plain is None or case.plain.events is None:
        return set()
    events, plain = case.events.decoded, case.plain.events.decoded
    if len(events) != len(plain):
        return set()
    pairs = zip(events, plain, strict=True)
    return {key for (event, _), (other, _) in pairs for key in _differing(event, other)}


def _differing(one: Any, other: Any) -> Iterator[str]:
    if isinstance(one, dict) and isinstance(other, dict):
        for key in {*one, *other}:
            if key not in one or key not in other:
                yield key
            elif one[key] != other[key]:
                deeper = list(_differing(one[key], other[key]))
                yield from deeper or [key]
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for item, same in zip(one, other, strict=True):
            yield from _differing(item, same)
