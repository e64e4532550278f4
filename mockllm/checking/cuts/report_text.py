"""A report on cut streams as text, with the shortest prefix that fools the client. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from mockllm.checking.cuts.prefixes import PLACES
from mockllm.checking.cuts.report import CutReport, CutRow, Fooled
from mockllm.checking.rules import CUT_RULES, promise
from mockllm.core.text import shorten

_WIDEST = 150
_MOST_REASONS = 10


def cut_text(report: CutReport, rules: Collection[str] | None = None) -> str:
    """The report as text.

    Args:
        rules: those that are explained; default: all. With none, only counts are left.
    """
    return "\n".join(cut_lines(report, rules))


def cut_lines(report: CutReport, rules: Collection[str] | None = None) -> Iterator[str]:
    """The lines of a report; see `cut_text`."""
    title = f"{report.api}, cut at every place, level {report.level}: {report.played} prefixes"
    yield title
    for rule in CUT_RULES:
        if rules is None or rule in rules:
            yield ""
            yield from _rule(report, rule)
    reasons = report.not_judged
    if reasons:
        yield ""
        yield "NOT JUDGED"
    for reason, count in list(reasons.items())[:_MOST_REASONS]:
        yield f"  {count} prefixes: {shorten(reason, _WIDEST)}"
    if len(reasons) > _MOST_REASONS:
        yield f"  and {len(reasons) - _MOST_REASONS} more reasons, which the rows have"


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
    for place, meaning in PLACES.items():
        yield from _place([row for row in rows if row.place == place], f"{place} ({meaning})")
    shortest = report.shortest(rule)
    if shortest is not None:
        yield f"  the shortest prefix that fools the client, {shortest.prefix.name}:"
        yield from (f"    {line}" for line in prefix_lines(shortest, report.level))


def _place(rows: list[CutRow], title: str) -> Iterator[str]:
    judged, wrong = sum(row.judged for row in rows), sum(row.wrong for row in rows)
    if wrong:
        yield f"    {wrong:>4} of {judged:<4} {title}"


def prefix_lines(fooled: Fooled, level: str) -> Iterator[str]:
    """A prefix that fools a client: where it ends, its last event, its bytes, what is wrong."""
    prefix = fooled.prefix
    events = "1 event" if prefix.events == 1 else f"{prefix.events} events"
    whole = sum(map(len, prefix.case.chunks))
    closed = ", and the connection is closed" if prefix.ending == "close" else ""
    yield f"after {events}, {prefix.size} of {whole} bytes: {PLACES[prefix.place]}{closed}"
    if prefix.last_event:
        yield f"last event: {shorten(prefix.last_event, _WIDEST, keep=60, tail=80)}"
    else:
        yield "last event: none"
    if level != "payloads":
        rest = shorten(repr(prefix.rest), _WIDEST, keep=60, tail=80)
        yield f"bytes after it: {rest if prefix.rest else 'none'}"
    yield f"wrong: {fooled.description}"
