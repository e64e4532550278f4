"""What differences of many cases have in common: one bug has one name. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mockllm.checking.cases.case import Case
from mockllm.checking.judging.difference import Difference

EXCEPTIONS = frozenset({"crash", "errors"})
"""The fields of differences that are exceptions or errors of the client."""

SPECIFIC = frozenset(
    {
        "error-ends",
        "malformed-contained",
        "missing-id",
        "truncated-is-not-complete",
        "unknown-event",
        "unknown-tool",
        "zero-arguments",
    }
)
"""Cases of these can crash a client that tolerates null elsewhere: in an unknown event it looks
for a key that only known events have. So the exception does not decide there."""


@dataclass(frozen=True, slots=True)
class AttributedDifference:
    """One difference of one case, with the invariant that it is attributed to so far.

    Args:
        certain: whether no other case may decide otherwise.
    """

    case: Case
    difference: Difference
    invariant: str
    certain: bool = False
    secondary: bool = False

    @property
    def candidates(self) -> tuple[str, ...]:
        """The invariants that may explain the difference, the likeliest first."""
        return (self.difference.invariant, *self.difference.alternatives)


def as_known_exception(one: AttributedDifference, names: set[str]) -> AttributedDifference:
    """Attributes an exception that did not decide here to its invariant, if other cases show it."""
    if one.certain:
        return one
    if one.difference.field == "error_message":
        known = next((name for name in one.difference.alternatives if name in names), None)
        return one if known is None else replace(one, invariant=known, secondary=True)
    first = one.difference.invariant
    undecided = one.case.invariant in SPECIFIC and first != one.invariant
    if undecided and one.difference.field in EXCEPTIONS and first in names:
        return replace(one, invariant=first, secondary=True)
    return one


def beside_exceptions(items: list[AttributedDifference]) -> list[AttributedDifference]:
    """Gives what is wrong beside an exception, and not certain, the name of the exception."""
    decides: dict[int, AttributedDifference] = {}
    for one in items:
        if one.difference.field in EXCEPTIONS:
            decides.setdefault(id(one.case), one)
    return [
        one
        if one.certain or one.difference.field == "chunk" or id(one.case) not in decides
        else replace(one, invariant=decides[id(one.case)].invariant)
        for one in items
    ]


def fewest_names(plain: list[AttributedDifference]) -> list[AttributedDifference]:
    """Attributes the plain cases to as few invariants as explain all of them.

    If a single invariant explains all differences, it is that one. If every difference of one
    invariant could be attributed to another one that other cases have, it is.
    """
    common = _common_candidate(plain)
    if common is not None:
        return [
            one if one.invariant == common else replace(one, invariant=common, secondary=True)
            for one in plain
        ]
    counts: dict[str, int] = {}
    for one in plain:
        counts[one.invariant] = counts.get(one.invariant, 0) + 1
    for name in sorted(counts, key=lambda name: counts[name]):
        others = _no_rarer(plain, name)
        better = {
            index: _other_name(one, others)
            for index, one in enumerate(plain)
            if one.invariant == name
        }
        if better and all(better.values()):
            plain = [
                replace(one, invariant=better.get(index) or one.invariant, secondary=True)
                if index in better
                else one
                for index, one in enumerate(plain)
            ]
    return plain


def _no_rarer(plain: Sequence[AttributedDifference], name: str) -> set[str]:
    """The other names that are no rarer than a name, or certain somewhere."""
    names = [one.invariant for one in plain]
    certain = {one.invariant for one in plain if one.certain}
    return {
        other
        for other in set(names) - {name}
        if other in certain or names.count(other) >= names.count(name)
    }


def _common_candidate(plain: Sequence[AttributedDifference]) -> str | None:
    """The invariant that explains every difference; None where there is none, or it is the only
    name already. Of several, the one that most differences point to."""
    names = [one.invariant for one in plain]
    if len(set(names)) < 2:
        return None
    common = set(plain[0].candidates)
    for one in plain:
        common &= {one.invariant} if one.certain else set(one.candidates)
    return max(sorted(common), key=names.count, default=None)


def _other_name(one: AttributedDifference, others: set[str]) -> str | None:
    if one.certain:
        return None
    return next((other for other in one.difference.alternatives if other in others), None)


def as_known(one: AttributedDifference, names: set[str]) -> AttributedDifference:
    """Attributes a difference to a known invariant, if one explains it."""
    if one.certain or one.invariant in names:
        return one
    known = next((name for name in one.candidates if name in names), None)
    return one if known is None else replace(one, invariant=known, secondary=True)
