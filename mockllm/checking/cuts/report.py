"""Counts what a client does with all prefixes, and shows the shortest that fools it. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace

from mockllm.checking.cases.case import Case, Cut, Ending, Place
from mockllm.checking.cuts.judging import (
    NO_PLACE,
    CutAnswer,
    applies,
    judge_cut,
    why_not_judged,
)
from mockllm.checking.cuts.prefixes import PLACES, CutLevel, cut_of
from mockllm.checking.judging.received import received
from mockllm.checking.outcome import Outcome
from mockllm.checking.rules import CUT_RULES, promise
from mockllm.core.text import counted, shorten
from mockllm.scenario.model import Api


@dataclass(frozen=True, slots=True)
class Fooled:
    """A prefix that fools a client."""

    cut: Cut
    answer: CutAnswer
    description: str


@dataclass(slots=True)
class CutRow:
    """One sample, one kind of place and one rule.

    Args:
        not_judged: why prefixes were not judged, each reason with their number.
    """

    case: Case
    place: Place
    rule: str
    ending: Ending = "orderly"
    judged: int = 0
    wrong: int = 0
    shortest: Fooled | None = None
    not_judged: dict[str, int] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of the row: `chat/cut-call@inside-event:cut-reported`."""
        return row_name(self.case, self.place, self.ending, self.rule)

    def add(self, cut: Cut, answer: CutAnswer, whole: CutAnswer, reason: str) -> None:
        """Counts a prefix.

        Args:
            whole: what the client does with the whole stream.
            reason: why the prefix is not judged; "" if nothing but the answer says so.
        """
        reason = reason or answer.unusable
        if not reason and self.rule == "cut-call-not-executed" and "tool_calls" in answer.absent:
            reason = NO_PLACE
        if reason:
            self.not_judged[reason] = self.not_judged.get(reason, 0) + 1
            return
        self.judged += 1
        wrong = judge_cut(self.rule, cut, answer, whole)
        self.wrong += bool(wrong)
        if wrong and (self.shortest is None or cut.size < self.shortest.cut.size):
            self.shortest = Fooled(cut, answer, wrong)


def row_name(case: Case, place: Place, ending: Ending, rule: str) -> str:
    """The name of a row; over HTTP, `+close` is behind the place of a connection that is closed."""
    closed = "+close" if ending == "close" else ""
    return f"{case.api}/{case.scenario.name}@{place}{closed}:{rule}"


@dataclass(frozen=True, slots=True)
class CutReport:
    """What a client does with the prefixes of an API.

    Args:
        played: how many prefixes the client was given, whole streams not counted.
    """

    api: Api
    level: CutLevel
    rows: tuple[CutRow, ...]
    played: int

    @property
    def good(self) -> bool:
        """Whether nothing was wrong. What was not judged is counted by `not_judged`."""
        return not any(row.wrong for row in self.rows)

    @property
    def judged(self) -> int:
        """How many judgements there are: prefixes, each under one or two rules."""
        return sum(row.judged for row in self.rows)

    @property
    def not_judged(self) -> dict[str, int]:
        """Why prefixes were not judged, each reason with the number of judgements."""
        found: Counter[str] = Counter()
        for row in self.rows:
            found.update(row.not_judged)
        return found

    def of(self, rule: str) -> list[CutRow]:
        """The rows of a rule."""
        return [row for row in self.rows if row.rule == rule]

    def shortest(self, rule: str) -> Fooled | None:
        """The shortest prefix that fools the client under a rule; None if none does.

        The empty stream and clients that break come last: nearly every other prefix says more.
        """
        found = [row.shortest for row in self.of(rule) if row.shortest is not None]
        return min(found, key=_length, default=None)


def _length(fooled: Fooled) -> tuple[bool, bool, bool, int]:
    cut = fooled.cut
    breaks = bool(fooled.answer.outcome.errors)
    return not cut.size, breaks, cut.whole.malformed, cut.size


def cut_report(api: Api, level: CutLevel, answers: Iterable[tuple[Case, CutAnswer]]) -> CutReport:
    """The report on all prefixes.

    Args:
        answers: for each sample the whole stream first.
    """
    rows: dict[str, CutRow] = {}
    unread: dict[str, str] = {}
    reasons: dict[str, str] = {}
    whole, played = CutAnswer(Outcome()), 0
    for case, given in answers:
        cut = cut_of(case)
        answer = replace(given, outcome=received(given.outcome)[0])
        if cut.place == "whole":
            whole = answer
            reasons = {rule: _reason(rule, cut.whole, answer, unread) for rule in CUT_RULES}
            continue
        played += 1
        for rule in CUT_RULES:
            if applies(rule, cut):
                new = CutRow(cut.whole, cut.place, rule, cut.ending)
                rows.setdefault(new.name, new).add(cut, answer, whole, reasons[rule])
    return CutReport(api, level, tuple(rows.values()), played)


def _reason(rule: str, case: Case, answer: CutAnswer, unread: dict[str, str]) -> str:
    """Why the prefixes of a sample are not judged under a rule; "" if they are.

    Args:
        answer: to the whole stream.
        unread: the reason of the first sample, until one is read as it was sent.
    """
    reason = why_not_judged(rule, case, answer)
    if case.malformed:
        # What a client does with malformed arguments is its own choice; other samples show that it
        # reads calls at all.
        return reason or unread.get(rule, "")
    if case.expected.tool_calls or rule == "cut-reported":
        unread[rule] = reason and unread.get(rule, reason)
    return reason


_WIDEST = 150


def cut_text(report: CutReport, rules: Collection[str] | None = None) -> str:
    """The report as text.

    Args:
        rules: those that are explained; default: all. With none, only counts are left.
    """
    return "\n".join(_lines(report, rules))


def _lines(report: CutReport, rules: Collection[str] | None) -> Iterator[str]:
    yield f"{report.api}, cut at every place, level {report.level}: {report.played} prefixes"
    for rule in CUT_RULES:
        if rules is None or rule in rules:
            yield ""
            yield from _rule(report, rule)
    if report.not_judged:
        yield ""
        yield "NOT JUDGED"
    for reason, count in report.not_judged.items():
        yield f"  {count} prefixes: {shorten(reason, _WIDEST)}"


def _rule(report: CutReport, rule: str) -> Iterator[str]:
    rows = report.of(rule)
    judged, wrong = sum(row.judged for row in rows), sum(row.wrong for row in rows)
    if not judged:
        yield f"{rule}: not judged"
        return
    if not wrong:
        yield f"{rule}: right for all {judged} prefixes"
        return
    yield f"{rule}: wrong for {wrong} of {judged} prefixes"
    yield f"  {promise(rule)}"
    shortest = report.shortest(rule)
    if shortest is not None:
        yield f"  the shortest prefix that fools the client, {shortest.cut.name}:"
        yield from (f"    {line}" for line in prefix_lines(shortest, report.level))


def prefix_lines(fooled: Fooled, level: str) -> Iterator[str]:
    """A prefix that fools a client: where it ends, its last event, its bytes, what is wrong."""
    cut = fooled.cut
    whole = sum(map(len, cut.whole.chunks))
    closed = ", and the connection is closed" if cut.ending == "close" else ""
    events = counted(cut.events, "event")
    yield f"after {events}, {cut.size} of {whole} bytes: {PLACES[cut.place]}{closed}"
    if cut.last_event:
        yield f"last event: {shorten(cut.last_event, _WIDEST, keep=60, tail=80)}"
    else:
        yield "last event: none"
    if level != "payloads":
        rest = shorten(repr(cut.rest), _WIDEST, keep=60, tail=80)
        yield f"bytes after it: {rest if cut.rest else 'none'}"
    yield f"wrong: {fooled.description}"
