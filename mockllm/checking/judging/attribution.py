"""Attributes each difference to one invariant, so that one bug has one name. Pure.

A bug shows in many cases, also under quirks that have nothing to do with it. So the differences of
all cases are attributed together:

- A difference that the plain form of a case has, too, adds nothing.
- A difference that the plain form has not is attributed to what the case tests. A conclusive one is
  the exception: a name that is not kept is `name-kept`, even if a quirk of ids brought it to light.
  Where only the bytes of the case differ from the plain form, and not the decoded events, nothing
  but the case decides.
- If a difference can be explained by an invariant that other cases are attributed to, it is one
  more example of that one.

Each difference is attributed by itself: a case with two of them may have two invariants.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from mockllm.checking.cases.case import Case
from mockllm.checking.cases.scenarios import PLAIN
from mockllm.checking.judging.compare import Judgement
from mockllm.checking.judging.difference import Difference
from mockllm.checking.judging.examination import Failure, Result


@dataclass(frozen=True, slots=True)
class Forms:
    """Judges other forms of a varied case, to see what a difference depends on.

    Args:
        payloads: the differences of the case with its changes of decoded events alone; None where
            its bytes are not varied.
        unvaried: the differences of the case without its variation.
        uncut: those of the case with its variation, but with bytes that are not cut.
        decoded: whether the client is given decoded events, so that nothing is `framing-read`.
    """

    payloads: Callable[[Case], Sequence[Difference] | None]
    unvaried: Callable[[Case], Sequence[Difference]]
    uncut: Callable[[Case], Sequence[Difference]]
    decoded: bool = False


_OTHER_THAN_CALLS = frozenset(
    {"text", "reasoning", "refusal", "finish", "usage", "role", "model", "response_id", "opaque"}
)
_END = frozenset({"finish", "usage"})

_OF_ARGUMENTS = frozenset({"arguments-concatenate", "malformed-contained", "zero-arguments"})
_OF_CALLS = frozenset(
    {"order-by-index", "surface-once", "surface-complete", "id-kept", "name-kept", "missing-id"}
    | {"unknown-tool", *_OF_ARGUMENTS}
)

_UNRELATED: dict[str, frozenset[str]] = {
    **dict.fromkeys(_OF_CALLS, _OTHER_THAN_CALLS),
    **dict.fromkeys(("text-accumulates", "delta-first"), _END),
}
"""The fields of an outcome that an invariant cannot explain: a quirk of names does not make a
client lose the finish."""


def attribute(
    judged: Iterable[tuple[Result, Sequence[Difference], Sequence[Difference]]],
    forms: Forms,
) -> list[Failure]:
    """The failures of all cases that failed, each with its invariant.

    Args:
        judged: each with its differences, and those of its plain form.
    """
    plain: list[AttributedDifference] = []
    quirks: list[AttributedDifference] = []
    variations: list[AttributedDifference] = []
    judgements: dict[int, Judgement] = {}
    judged = list(judged)
    # A client that raises here in streams without unknown events, too, makes another mistake, and
    # is not accused of both.
    elsewhere = {
        _place(result.judgement)
        for result, _, _ in judged
        if result.case.plain is None and result.case.invariant != "unknown-event"
    }
    for result, differences, known in judged:
        case = result.case
        judgements[id(case)] = result.judgement
        if case.plain is None:
            own = _place(result.judgement) not in {"", *elsewhere}
            plain += [_of_plain(case, difference, own=own) for difference in differences]
            continue
        new = new_differences(differences, known)
        if case.plain.name == case.name:
            # A scenario with `wire` stands for its plain form, which is no case of its own.
            plain += [_of_plain(case, item) for item in differences if item not in new]
        of_quirk, of_variation = _split_by_cause(case, new, forms)
        by_bytes = case.invariant == "framing-read" and forms.decoded
        quirks += _of_quirk(case, of_quirk, plain_right=not known, by_bytes=by_bytes)
        variations += _of_variation(case, of_variation, forms)
    plain = fewest_names(_may_follow(plain))
    names = {item.invariant for item in plain}
    quirks = [as_known(quirk, names) for quirk in quirks]
    names |= {quirk.invariant for quirk in quirks if not quirk.secondary}
    quirks = beside_exceptions([as_known_exception(quirk, names) for quirk in quirks])
    names |= {quirk.invariant for quirk in quirks}
    variations = beside_exceptions([as_known(variation, names) for variation in variations])
    return list(_group_by_case([*plain, *variations, *quirks], judgements))


def _group_by_case(
    items: Iterable[AttributedDifference], judgements: Mapping[int, Judgement]
) -> Iterator[Failure]:
    """One failure for each case and invariant; the difference that decided comes first."""
    groups: dict[tuple[int, str], list[AttributedDifference]] = {}
    for item in items:
        groups.setdefault((id(item.case), item.invariant), []).append(item)
    for (key, invariant), group in groups.items():
        raised = any(item.difference.field in EXCEPTIONS for item in group)
        yield Failure(
            invariant,
            group[0].case,
            tuple(dict.fromkeys(item.difference.description for item in group)),
            secondary=all(item.secondary for item in group),
            exception=judgements[key].exception if raised else "",
            at=judgements[key].at if raised else None,
        )


def new_differences(
    differences: Sequence[Difference], known: Sequence[Difference]
) -> list[Difference]:
    """The differences that the plain form does not have."""
    return [
        difference
        for difference in differences
        if not any(_explains(other, difference) for other in known)
    ]


def _explains(known: Difference, one: Difference) -> bool:
    """Whether a difference of the plain form is why a case has this one, too."""
    if known.field == "chunk" or one.field == "chunk":
        return known.field == one.field and known.invariant == one.invariant
    if known.field in EXCEPTIONS:
        # It stopped there, so whatever it gets wrong about the rest adds nothing.
        return one.field in EXCEPTIONS or not one.conclusive
    if known.subject != one.subject:
        return False
    return not one.conclusive or one.invariant == known.invariant


# What one case shows by itself


def _split_by_cause(
    case: Case, new: list[Difference], forms: Forms
) -> tuple[list[Difference], list[Difference]]:
    """The differences that the quirk of a case causes, and those that its variation causes."""
    if not case.quirk:
        return [], new
    if case.variation == PLAIN:
        return new, []
    if case.invariant == "framing-read" and forms.uncut(case) and forms.payloads(case) is not None:
        # Bytes that are written in one form fail only together with those of another one.
        return new, []
    unvaried = {difference.subject for difference in forms.unvaried(case)}
    of_quirk = [
        difference
        for difference in new
        if difference.subject in unvaried or difference.field == "chunk"
    ]
    return of_quirk, [difference for difference in new if difference not in of_quirk]


def _place(judgement: Judgement) -> str:
    """Where the client raised, the end of what is said of its exception; "" where it did not."""
    return judgement.exception.rpartition(" (")[2]


def _of_plain(case: Case, difference: Difference, *, own: bool = False) -> AttributedDifference:
    """A plain case of the kit may test one invariant: a `done` value that differs, for example.

    Args:
        own: whether the client raised where it does in no plain case of another invariant.
    """
    invariant = (case.plain or case).invariant
    if difference.conclusive or difference.field == "chunk" or invariant == "chunking-free":
        return AttributedDifference(case, difference, difference.invariant, difference.conclusive)
    others = (difference.invariant, *difference.alternatives)
    if own and invariant == "unknown-event" and difference.field in EXCEPTIONS:
        # What the client does not know stopped it, and not what it does with arguments.
        others = tuple(name for name in others if name not in _OF_ARGUMENTS)
    tested = replace(difference, invariant=invariant, alternatives=others)
    return AttributedDifference(case, tested, invariant)


def _of_quirk(
    case: Case, new: Sequence[Difference], *, plain_right: bool, by_bytes: bool
) -> Iterator[AttributedDifference]:
    """Where the plain form is right, the quirk is why the case is not.

    Args:
        by_bytes: whether the quirk is one of bytes, which the client is not given.
    """
    same_events = plain_right and _same_events(case)
    unrelated = _UNRELATED.get(case.invariant, frozenset())
    any_related = any(
        difference.subject not in unrelated and difference.field != "chunk" for difference in new
    )
    for difference in new:
        if same_events and difference.field != "chunk":
            yield AttributedDifference(case, difference, case.invariant, certain=True)
            continue
        known = difference.recognised and case.invariant not in SPECIFIC
        decides = difference.conclusive or (known and difference.field in EXCEPTIONS)
        if any_related and not by_bytes and not decides and difference.field != "chunk":
            yield AttributedDifference(case, difference, case.invariant)
        else:
            certain = difference.conclusive
            yield AttributedDifference(case, difference, difference.invariant, certain=certain)


def _same_events(case: Case) -> bool:
    """Whether a case differs from its plain form in its bytes alone."""
    if case.events is None or case.plain is None or case.plain.events is None:
        return case.plain is not None
    return case.events.decoded == case.plain.events.decoded


def _of_variation(
    case: Case, new: Sequence[Difference], forms: Forms
) -> Iterator[AttributedDifference]:
    if not new:
        return
    in_payloads = forms.payloads(case)
    wire = case.scenario.turns[0].for_api(case.api).wire
    comments = wire is not None and wire.comments is not None
    for difference in new:
        shows = in_payloads is None or any(
            difference.subject == other.subject for other in in_payloads
        )
        if shows or difference.field == "chunk":
            item = _attribute_to(case, difference, "chunking-free")
            yield replace(item, certain=False) if case.quirk else item
        else:
            name = "framing-read" if forms.uncut(case) else "chunking-free"
            yield AttributedDifference(case, difference, name, certain=not comments)


def _attribute_to(case: Case, difference: Difference, tested: str) -> AttributedDifference:
    """The attribution to what was tested, unless the difference is certain or of another field."""
    if difference.conclusive:
        return AttributedDifference(case, difference, difference.invariant, certain=True)
    if difference.subject in _UNRELATED.get(tested, frozenset()):
        return AttributedDifference(case, difference, difference.invariant)
    return AttributedDifference(case, difference, tested)


# What differences of many cases have in common: one bug has one name


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
    for item in items:
        if item.difference.field in EXCEPTIONS:
            decides.setdefault(id(item.case), item)
    return [
        item
        if item.certain or item.difference.field == "chunk" or id(item.case) not in decides
        else replace(item, invariant=decides[id(item.case)].invariant)
        for item in items
    ]


def _may_follow(plain: list[AttributedDifference]) -> list[AttributedDifference]:
    """Lets an exception explain what is wrong beside it in the same case."""
    causes: dict[int, tuple[str, ...]] = {}
    for item in plain:
        if item.difference.field in EXCEPTIONS:
            causes.setdefault(id(item.case), item.candidates)
    return [
        replace(item, difference=_also(item.difference, causes.get(id(item.case), ())))
        for item in plain
    ]


def _also(one: Difference, causes: tuple[str, ...]) -> Difference:
    if one.conclusive or one.field == "chunk" or not causes:
        return one
    return replace(one, alternatives=tuple(dict.fromkeys([*one.alternatives, *causes])))


def fewest_names(plain: list[AttributedDifference]) -> list[AttributedDifference]:
    """Attributes the plain cases to as few invariants as explain all of them.

    If a single invariant explains all differences, it is that one. If every difference of one
    invariant could be attributed to another one that other cases have, it is.
    """
    common = _common_candidate(plain)
    if common is not None:
        return [
            item if item.invariant == common else replace(item, invariant=common, secondary=True)
            for item in plain
        ]
    counts = Counter(item.invariant for item in plain)
    for name in sorted(counts, key=counts.__getitem__):
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
    names = [difference.invariant for difference in plain]
    certain = {difference.invariant for difference in plain if difference.certain}
    return {
        other
        for other in set(names) - {name}
        if other in certain or names.count(other) >= names.count(name)
    }


def _common_candidate(plain: Sequence[AttributedDifference]) -> str | None:
    """The invariant that explains every difference; None where there is none, or it is the only
    name already. Of several, the one that most differences point to."""
    names = [difference.invariant for difference in plain]
    if len(set(names)) < 2:
        return None
    common = set(plain[0].candidates)
    for item in plain:
        common &= {item.invariant} if item.certain else set(item.candidates)
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
