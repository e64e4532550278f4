"""What is to blame for what a client gets wrong: one mistake, one name.

A mistake shows in many cases, and under many a quirk, in which it is only in the way. So the
cases are judged together:

- what a case gets wrong beyond its plain form is blamed on what the case tests, unless it speaks
  for itself (a name that is not kept is that, also where a quirk of ids brings it to light);
- what its plain form gets wrong as well tells nothing new, and neither does a client that breaks
  or reports an error there already;
- where all that a case gets wrong is of kinds that plain cases are blamed for, it is one more of
  those.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mockllm.checking.cases.case import Case
from mockllm.checking.judging.compare import Difference

__all__ = ["Blamed", "blame"]


@dataclass(frozen=True, slots=True)
class Blamed:
    """A case that went wrong, and what for.

    Args:
        again: whether it only shows once more what other cases show.
    """

    case: Case
    invariant: str
    found: Sequence[Difference]
    again: bool = False

    @property
    def words(self) -> tuple[str, ...]:
        """What differs, in words: of that which is about the same as the first."""
        return tuple(each.words for each in self.found if each.about == self.found[0].about)


_CALLS = frozenset({"text", "reasoning", "refusal", "finish", "usage"})
_WORDS = frozenset({"finish", "usage"})

_SILENT: dict[str, frozenset[str]] = {
    "arguments-concatenate": _CALLS,
    "order-by-index": _CALLS,
    "surface-once": _CALLS,
    "surface-complete": _CALLS,
    "id-kept": _CALLS,
    "name-kept": _CALLS,
    "zero-arguments": _CALLS,
    "malformed-contained": _CALLS,
    "missing-id": _CALLS,
    "unknown-tool": _CALLS,
    "text-accumulates": _WORDS,
    "delta-first": _WORDS,
}
"""What an invariant says nothing of: no quirk of names is to blame for a finish that is lost."""

_OPAQUE = frozenset({"unknown-event", "error-ends", "truncated-is-not-complete"})
"""What a client that breaks on something missing may have broken, too: where it met what it does
not know, it looked for a key that this has not."""


def blame(
    judged: Iterable[tuple[Case, Sequence[Difference], Sequence[Difference]]],
) -> list[Blamed]:
    """What each case that went wrong is blamed on.

    Args:
        judged: cases, how they differ, and how their plain forms do.
    """
    plain: list[Blamed] = []
    quirks: list[Blamed] = []
    variations: list[Blamed] = []
    for case, found, known in judged:
        if case.plain is None:
            told, into = list(found), plain
        else:
            told, into = _new(found, known), quirks if case.quirk else variations
        if told:
            into.append(_alone(case, told))
    plain = _gathered(plain)
    names = {each.invariant for each in plain}
    quirks = [_among(each, names) for each in quirks]
    names |= {each.invariant for each in quirks}
    quirks = [_uncovered(each, names) for each in quirks]
    return [*plain, *(_among(each, names) for each in variations), *quirks]


def _new(found: Sequence[Difference], known: Sequence[Difference]) -> list[Difference]:
    """The differences that a plain form does not have already."""
    if any(each.field in ("crash", "errors") for each in known):
        return []
    seen = {each.invariant for each in known if each.field == "chunk"}
    about = {each.about for each in known if each.field != "chunk"}
    return [
        each
        for each in found
        if (each.invariant not in seen if each.field == "chunk" else each.about not in about)
    ]


def _alone(case: Case, found: list[Difference]) -> Blamed:
    """The blame by what is known of this case alone."""
    sure = [each for each in found if each.sure and not _hidden(case, each)]
    if sure:
        return Blamed(case, sure[0].invariant, [sure[0], *(d for d in found if d != sure[0])])
    silent = _SILENT.get(case.invariant, frozenset())
    if case.plain is not None and any(each.about not in silent for each in found):
        return Blamed(case, case.invariant, found)
    return Blamed(case, found[0].invariant, found)


def _hidden(case: Case, found: Difference) -> bool:
    return case.plain is not None and found.field == "crash" and case.invariant in _OPAQUE


def _uncovered(each: Blamed, names: set[str]) -> Blamed:
    """What is hidden of a case, if it shows elsewhere."""
    first = each.found[0]
    if first.sure and _hidden(each.case, first) and first.invariant in names:
        return Blamed(each.case, first.invariant, each.found, again=True)
    return each


def _gathered(plain: list[Blamed]) -> list[Blamed]:
    """The plain cases with as few names as tell it all: what all cases of a name may be blamed
    for, too, is the better name for them."""
    counts = {each.invariant: 0 for each in plain}
    for each in plain:
        counts[each.invariant] += 1
    for name in sorted(counts, key=lambda name: counts[name]):
        others = {each.invariant for each in plain} - {name}
        told = [each for each in plain if each.invariant == name]
        better = [next((n for n in each.found[0].or_else if n in others), None) for each in told]
        if told and all(better):
            plain = [
                Blamed(each.case, better[told.index(each)] or name, each.found, again=True)
                if each in told
                else each
                for each in plain
            ]
    return plain


def _among(each: Blamed, names: set[str]) -> Blamed:
    """A case as one more of those that are blamed already, if nothing about it is new."""
    if each.found[0].sure and each.found[0].invariant == each.invariant:
        return each
    known = [
        next((name for name in (found.invariant, *found.or_else) if name in names), None)
        for found in each.found
    ]
    if not all(known) or known[0] == each.invariant:
        return each
    return Blamed(each.case, known[0] or each.invariant, each.found, again=True)
