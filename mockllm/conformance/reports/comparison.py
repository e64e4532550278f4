"""The changes for better and worse between two results of a client, such as two versions. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, get_args

from mockllm.checking.rules import COSTS, severity
from mockllm.conformance.results import CaseResult, Results

Direction = Literal["worse", "better", "other"]
_DIRECTIONS: tuple[Direction, ...] = get_args(Direction)


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
    def unknown(self) -> bool:
        """Whether cases that were judged before are not judged now, or the two have no case in
        common."""
        lost = any(_is_judged(change.old) and not _is_judged(change.new) for change in self.changes)
        return lost or bool(self.new.stopped) or len(self.added) == len(self.new.cases)


def diff(old: Results, new: Results) -> Diff:
    """Compares two results of a client over the same API."""
    before = {case.case: case for case in old.cases}
    after = {case.case: case for case in new.cases}
    pairs = [(before[name], case) for name, case in after.items() if name in before]
    return Diff(
        old,
        new,
        tuple(
            Change(_direction(old, new), old, new)
            for old, new in pairs
            if (_verdict(old), _severity(old)) != (_verdict(new), _severity(new))
        ),
        tuple(case for name, case in after.items() if name not in before),
        tuple(case for name, case in before.items() if name not in after),
        tuple(_notes(old, new)),
    )


def _verdict(case: CaseResult) -> str:
    """The verdict, as far as readers tell them apart: an excused mistake is one of its own."""
    return "as in the plain stream" if case.baseline else case.verdict


def _severity(case: CaseResult) -> int:
    """0 for no mistake; the worse the mistake, the greater."""
    if not case.failed or case.cost is None:
        return 0
    return len(COSTS) - severity(case.cost)


def _is_judged(case: CaseResult) -> bool:
    return case.verdict not in ("not judged", "adapter")


def _direction(old: CaseResult, new: CaseResult) -> Direction:
    before, after = _severity(old), _severity(new)
    if after > before:
        return "worse"
    return "better" if after < before and _is_judged(old) and _is_judged(new) else "other"


def _notes(old: Results, new: Results) -> Iterator[str]:
    """The differences between two measurements besides the client."""
    for name in ("api", "level", "mockllm"):
        before, after = getattr(old, name), getattr(new, name)
        if before != after:
            yield f"{name} was {before} and is {after}"
    if old.client.name != new.client.name:
        yield f"the client was {old.client.name} and is {new.client.name}"
    if dict(old.arguments) != dict(new.arguments):
        yield "the cases were chosen by other arguments"
    for word, results in (("old", old), ("new", new)):
        if results.stopped:
            yield f"not all cases of the {word} results were judged: {results.stopped}"
    streams = {case.case: case.stream for case in old.cases}
    changed = sum(
        None not in (case.stream, streams.get(case.case)) and streams[case.case] != case.stream
        for case in new.cases
    )
    if changed:
        yield f"{changed} of the cases have another stream now"


# Text


_MOST = 40


def diff_text(changes: Diff) -> str:
    """A difference as text: what got worse, what got better, and what cannot be compared."""
    old, new, added = changes.old, changes.new, changes.added
    worse, better, other = map(changes.of, _DIRECTIONS)
    mistakes = [case for case in added if case.failed]
    same = len(new.cases) - len(added) - len(changes.changes)
    lines = [
        f"{new.client.name} over {new.api}: {_version(old)} -> {_version(new)}",
        f"{len(worse)} worse, {len(better)} better, {len(other)} changed otherwise, "
        f"{same} as before; {len(added)} cases are new ({len(mistakes)} with a mistake), "
        f"{len(changes.removed)} are gone",
    ]
    lines += [f"note: {note}" for note in changes.notes]
    lines += _section("worse", map(_line, worse))
    lines += _section(
        "mistakes in new cases",
        (f"  {case.case}: {_words(case)}{_reason(case)}" for case in mistakes),
    )
    lines += _section("better", map(_line, better))
    lines += _section("changed otherwise", map(_line, other))
    lines += _section("gone", (f"  {case.case}" for case in changes.removed))
    return "\n".join(lines)


def _version(results: Results) -> str:
    return results.client.version or f"measured {results.date}"


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


def _words(case: CaseResult) -> str:
    return case.cost if case.failed and case.cost else _verdict(case)


def _reason(case: CaseResult) -> str:
    text = case.exception or next(iter(case.differences), "") or case.reason
    return f"\n    {' '.join(text.split())[:200]}" if text else ""


# JSON


def diff_json(changes: Diff) -> dict[str, Any]:
    """A difference as a JSON object, for programs."""
    old, new = changes.old, changes.new
    return {
        "client": new.client.name,
        "api": new.api,
        "old": {"version": old.client.version, "date": old.date},
        "new": {"version": new.client.version, "date": new.date},
        "notes": list(changes.notes),
        **{way: list(map(_change_json, changes.of(way))) for way in _DIRECTIONS},
        "added": [{"case": case.case, **_verdict_json(case)} for case in changes.added],
        "removed": [case.case for case in changes.removed],
    }


def _change_json(change: Change) -> dict[str, Any]:
    return {
        "case": change.new.case,
        "old": _verdict_json(change.old),
        "new": _verdict_json(change.new),
        "differences": list(change.new.differences),
    }


def _verdict_json(case: CaseResult) -> dict[str, Any]:
    return {"verdict": case.verdict, "cost": case.cost}
