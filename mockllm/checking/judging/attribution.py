"""Attributes each failed case to one invariant, so that one bug has one name. Pure.

A bug shows in many cases, also under quirks that have nothing to do with it. So the cases are
attributed together:

- What a case gets wrong, and its plain form does not, is attributed to what the case tests. A
  conclusive difference is the exception: a name that is not kept is `name-kept`, even if a quirk
  of ids brought it to light.
- What the plain form gets wrong, too, adds nothing. Neither does a case whose plain form makes
  the client crash or report an error.
- If every difference of a case has an invariant that other cases are attributed to, the case is
  one more example of these.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mockllm.checking.cases.case import Case
from mockllm.checking.judging.compare import Difference

__all__ = ["Attribution", "attribute"]


@dataclass(frozen=True, slots=True)
class Attribution:
    """A failed case and the invariant that it breaks.

    Args:
        differences: the one that decided comes first.
        secondary: whether other cases decided: alone, this one would point elsewhere.
    """

    case: Case
    invariant: str
    differences: Sequence[Difference]
    secondary: bool = False

    @property
    def descriptions(self) -> tuple[str, ...]:
        """The descriptions of the differences that have the subject of the first."""
        subject = self.differences[0].subject
        return tuple(one.description for one in self.differences if one.subject == subject)


_OTHER_THAN_CALLS = frozenset({"text", "reasoning", "refusal", "finish", "usage"})
_END = frozenset({"finish", "usage"})

_UNRELATED: dict[str, frozenset[str]] = {
    "arguments-concatenate": _OTHER_THAN_CALLS,
    "order-by-index": _OTHER_THAN_CALLS,
    "surface-once": _OTHER_THAN_CALLS,
    "surface-complete": _OTHER_THAN_CALLS,
    "id-kept": _OTHER_THAN_CALLS,
    "name-kept": _OTHER_THAN_CALLS,
    "zero-arguments": _OTHER_THAN_CALLS,
    "malformed-contained": _OTHER_THAN_CALLS,
    "missing-id": _OTHER_THAN_CALLS,
    "unknown-tool": _OTHER_THAN_CALLS,
    "text-accumulates": _END,
    "delta-first": _END,
}
"""The fields of an outcome that an invariant cannot explain: a quirk of names does not make a
client lose the finish."""

_HIDES_CRASHES = frozenset({"unknown-event", "error-ends", "truncated-is-not-complete"})
"""Cases of these can crash a client that tolerates null elsewhere: in an unknown event it looks
for a key that only known events have. So the crash is not conclusive there."""


def attribute(
    judged: Iterable[tuple[Case, Sequence[Difference], Sequence[Difference]]],
) -> list[Attribution]:
    """The attribution of each failed case.

    Args:
        judged: cases, their differences, and the differences of their plain forms.
    """
    plain: list[Attribution] = []
    quirks: list[Attribution] = []
    variations: list[Attribution] = []
    for case, differences, known in judged:
        if case.plain is None:
            new, group = list(differences), plain
        else:
            new, group = _new(differences, known), quirks if case.quirk else variations
        if new:
            group.append(_alone(case, new))
    plain = _fewest_names(plain)
    names = {one.invariant for one in plain}
    quirks = [_as_known(one, names) for one in quirks]
    names |= {one.invariant for one in quirks}
    quirks = [_as_known_crash(one, names) for one in quirks]
    return [*plain, *(_as_known(one, names) for one in variations), *quirks]


def _new(differences: Sequence[Difference], known: Sequence[Difference]) -> list[Difference]:
    """The differences that the plain form does not have."""
    if any(one.field in ("crash", "errors") for one in known):
        return []
    invariants = {one.invariant for one in known if one.field == "chunk"}
    subjects = {one.subject for one in known if one.field != "chunk"}
    return [
        one
        for one in differences
        if (
            one.invariant not in invariants if one.field == "chunk" else one.subject not in subjects
        )
    ]


def _alone(case: Case, differences: list[Difference]) -> Attribution:
    """The attribution that follows from this case alone."""
    conclusive = [one for one in differences if one.conclusive and not _hidden(case, one)]
    if conclusive:
        first = conclusive[0]
        return Attribution(case, first.invariant, [first, *(d for d in differences if d != first)])
    unrelated = _UNRELATED.get(case.invariant, frozenset())
    if case.plain is not None and any(one.subject not in unrelated for one in differences):
        return Attribution(case, case.invariant, differences)
    return Attribution(case, differences[0].invariant, differences)


def _hidden(case: Case, difference: Difference) -> bool:
    return (
        case.plain is not None and difference.field == "crash" and case.invariant in _HIDES_CRASHES
    )


def _as_known_crash(attribution: Attribution, names: set[str]) -> Attribution:
    """Attributes a crash that was not conclusive here to its invariant, if other cases show it."""
    case, first = attribution.case, attribution.differences[0]
    if first.conclusive and _hidden(case, first) and first.invariant in names:
        return Attribution(case, first.invariant, attribution.differences, secondary=True)
    return attribution


def _fewest_names(plain: list[Attribution]) -> list[Attribution]:
    """Attributes the plain cases to as few invariants as explain all of them.

    If every case of one invariant could be attributed to another one that other cases have, it is.
    """
    counts = {one.invariant: 0 for one in plain}
    for one in plain:
        counts[one.invariant] += 1
    for name in sorted(counts, key=lambda name: counts[name]):
        others = {one.invariant for one in plain} - {name}
        cases = [one for one in plain if one.invariant == name]
        better = [
            next((other for other in one.differences[0].alternatives if other in others), None)
            for one in cases
        ]
        if cases and all(better):
            plain = [
                Attribution(
                    one.case, better[cases.index(one)] or name, one.differences, secondary=True
                )
                if one in cases
                else one
                for one in plain
            ]
    return plain


def _as_known(attribution: Attribution, names: set[str]) -> Attribution:
    """Attributes a case to known invariants, if they explain all of its differences."""
    case, differences = attribution.case, attribution.differences
    if differences[0].conclusive and differences[0].invariant == attribution.invariant:
        return attribution
    known = [
        next((name for name in (one.invariant, *one.alternatives) if name in names), None)
        for one in differences
    ]
    if not all(known) or known[0] == attribution.invariant:
        return attribution
    return Attribution(case, known[0] or attribution.invariant, differences, secondary=True)
