"""What got better and worse between two results of a client, such as two versions. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from mockllm.checking.rules import COSTS, severity
from mockllm.conformance.results import CaseResult, Results

Direction = Literal["worse", "better", "other"]


@dataclass(frozen=True, slots=True)
class Change:
    """A case with another result.

    Args:
        direction: `worse`: it is a mistake now and was none, or costs more; `better`: the
            opposite; `other`: neither, such as a case that is not judged any more.
    """

    direction: Direction
    old: CaseResult
    new: CaseResult


@dataclass(frozen=True, slots=True)
class Diff:
    """The difference of two results.

    Args:
        changes: in the order of the new results.
        added, removed: the cases of one of them only. What the client does in an added case is
            not known to be worse.
        notes: what besides the client differs between the two.
    """

    old: Results
    new: Results
    changes: tuple[Change, ...] = ()
    added: tuple[CaseResult, ...] = ()
    removed: tuple[CaseResult, ...] = ()
    notes: tuple[str, ...] = ()

    def of(self, direction: Direction) -> list[Change]:
        """The changes in one direction."""
        return [change for change in self.changes if change.direction == direction]

    @property
    def added_mistakes(self) -> list[CaseResult]:
        """The mistakes in cases that the old results do not have."""
        return [case for case in self.added if case.failed]

    @property
    def unknown(self) -> bool:
        """Whether cases that were judged before are not judged now, or the two have no case in
        common."""
        lost = any(_judged(change.old) and not _judged(change.new) for change in self.changes)
        return lost or bool(self.new.stopped) or len(self.added) == len(self.new.cases)


def diff(old: Results, new: Results) -> Diff:
    """Compares two results of a client over the same API."""
    before = {case.case: case for case in old.cases}
    after = {case.case: case for case in new.cases}
    pairs = [(before[name], one) for name, one in after.items() if name in before]
    changes = [
        Change(_direction(before, after), before, after)
        for before, after in pairs
        if _differ(before, after)
    ]
    return Diff(
        old,
        new,
        tuple(changes),
        tuple(one for name, one in after.items() if name not in before),
        tuple(one for name, one in before.items() if name not in after),
        tuple(_notes(old, new)),
    )


def _differ(old: CaseResult, new: CaseResult) -> bool:
    return (_verdict(old), _severity(old)) != (_verdict(new), _severity(new))


def _verdict(case: CaseResult) -> str:
    """The verdict, as far as readers tell them apart: an excused mistake is one of its own."""
    return "as in the plain stream" if case.baseline else case.verdict


def _severity(case: CaseResult) -> int:
    """0 for no mistake; the worse the mistake, the greater."""
    if not case.failed or case.cost is None:
        return 0
    return len(COSTS) - severity(case.cost)


def _judged(case: CaseResult) -> bool:
    return case.verdict not in ("not judged", "adapter")


def _direction(old: CaseResult, new: CaseResult) -> Direction:
    one, other = _severity(old), _severity(new)
    if one == other or not (_judged(old) and _judged(new)):
        return "worse" if other > one else "other"
    return "worse" if other > one else "better"


def _notes(old: Results, new: Results) -> Iterator[str]:
    """What besides the client differs between two measurements."""
    for name in ("api", "level", "mockllm"):
        one, other = getattr(old, name), getattr(new, name)
        if one != other:
            yield f"{name} was {one} and is {other}"
    if old.client.name != new.client.name:
        yield f"the client was {old.client.name} and is {new.client.name}"
    if dict(old.arguments) != dict(new.arguments):
        yield "the cases were chosen by other arguments"
    for word, one in (("old", old), ("new", new)):
        if one.stopped:
            yield f"not all cases of the {word} results were judged: {one.stopped}"
    streams = {case.case: case.stream for case in old.cases}
    changed = sum(
        None not in (case.stream, streams.get(case.case)) and streams[case.case] != case.stream
        for case in new.cases
    )
    if changed:
        yield f"{changed} of the cases have another stream now"


# Text


_MOST = 40


def diff_text(found: Diff) -> str:
    """A difference as text: what got worse, what got better, and what cannot be compared."""
    old, new = found.old, found.new
    lines = [
        f"{new.client.name} over {new.api}: {_version(old)} -> {_version(new)}",
        f"{len(found.of('worse'))} worse, {len(found.of('better'))} better, "
        f"{len(found.of('other'))} changed otherwise, {_same(found)} as before; "
        f"{len(found.added)} cases are new ({len(found.added_mistakes)} with a mistake), "
        f"{len(found.removed)} are gone",
    ]
    lines += [f"note: {note}" for note in found.notes]
    lines += _section("worse", map(_line, found.of("worse")))
    lines += _section("mistakes in new cases", map(_new_line, found.added_mistakes))
    lines += _section("better", map(_line, found.of("better")))
    lines += _section("changed otherwise", map(_line, found.of("other")))
    lines += _section("gone", (f"  {case.case}" for case in found.removed))
    return "\n".join(lines)


def _version(results: Results) -> str:
    return results.client.version or f"measured {results.date}"


def _same(found: Diff) -> int:
    return len(found.new.cases) - len(found.added) - len(found.changes)


def _section(title: str, lines: Iterable[str]) -> list[str]:
    every = list(lines)
    if not every:
        return []
    more = len(every) - _MOST
    return ["", f"{title}:", *every[:_MOST], *([f"  and {more} more"] if more > 0 else [])]


def _line(change: Change) -> str:
    words = f"{_words(change.old)} -> {_words(change.new)}"
    reason = _reason(change.new) if change.direction != "better" else ""
    return f"  {change.new.case}: {words}{reason}"


def _new_line(case: CaseResult) -> str:
    return f"  {case.case}: {_words(case)}{_reason(case)}"


def _words(case: CaseResult) -> str:
    return case.cost if case.failed and case.cost else _verdict(case)


def _reason(case: CaseResult) -> str:
    text = case.exception or next(iter(case.differences), "") or case.reason
    return f"\n    {' '.join(text.split())[:200]}" if text else ""


# JSON


def diff_json(found: Diff) -> dict[str, Any]:
    """A difference as a JSON object, for programs."""

    def change(one: Change) -> dict[str, Any]:
        return {
            "case": one.new.case,
            "old": {"verdict": one.old.verdict, "cost": one.old.cost},
            "new": {"verdict": one.new.verdict, "cost": one.new.cost},
            "differences": list(one.new.differences),
        }

    return {
        "client": found.new.client.name,
        "api": found.new.api,
        "old": {"version": found.old.client.version, "date": found.old.date},
        "new": {"version": found.new.client.version, "date": found.new.date},
        "notes": list(found.notes),
        "worse": [change(changed) for changed in found.of("worse")],
        "better": [change(changed) for changed in found.of("better")],
        "other": [change(changed) for changed in found.of("other")],
        "added": [
            {"case": case.case, "verdict": case.verdict, "cost": case.cost} for case in found.added
        ],
        "removed": [case.case for case in found.removed],
    }
