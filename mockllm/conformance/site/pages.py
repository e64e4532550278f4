"""The values of the pages of clients, quirks, cases and cells. Pure but for the templates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from mockllm.checking.rules import CASE_RULES, promise
from mockllm.conformance.results import (
    GATEWAY_LEVEL,
    CaseResult,
    Results,
    Smallest,
    Stream,
    log_line,
)
from mockllm.conformance.site.case_views import bytes_view, outcome_rows
from mockllm.conformance.site.columns import (
    GROUP_WORDS,
    MARKS,
    CellMark,
    Column,
    groups_of,
    mark_of,
    quirk_rows,
    sentence,
)
from mockllm.conformance.site.ranking import sections_of
from mockllm.conformance.site.rendering import addresses, environment, slug

if TYPE_CHECKING:
    from markupsafe import Markup


@dataclass(frozen=True, slots=True)
class Row:
    """A client in a case.

    Args:
        href: of the page of the cell, or of the case where the client is right; relative to the
            folders `clients`, `cases` and `quirks`. "": the case has no page.
        own: whether the cell has a page of its own.
        order: the place of its group.
    """

    column: Column
    case: CaseResult
    mark: CellMark
    title: str
    sentence: str
    href: str
    own: bool
    order: int = 0


class Pages:
    """All pages but the first, from the same results."""

    def __init__(self, results: Sequence[Results]) -> None:
        self.columns, self.rule_columns = sections_of(results)
        self._every = [*self.columns, *self.rule_columns]
        self.is_alone = len(self._every) == 1
        """Whether the report is of one client: then only its mistakes have pages of their own, as
        the others would repeat what `mockllm show` prints, a thousand times."""
        self._quirk_rows = {row.name: row for row in quirk_rows(self.columns)}
        self._rows: dict[str, list[Row]] = {}
        names = (case.case for result in results for case in result.cases)
        self._keys = addresses(names)
        self._cells = {column.key: self._column_rows(column) for column in self._every}
        self._streams: dict[tuple[Stream, str, str], Markup] = {}
        dates = sorted({result.date for result in results})
        versions = sorted({result.mockllm for result in results})
        self.common = {
            "dates": dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}",
            "versions": ", ".join(versions),
            "marks": list(MARKS.values()),
            "measured": self._measurement,
            "who": "gateway" if all(r.level == GATEWAY_LEVEL for r in results) else "client",
        }

    def _column_rows(self, column: Column) -> list[Row]:
        """The rows of a client, each added to its case, too."""
        rows = []
        for case in column.results.cases:
            row = self._row(column, case)
            self._rows.setdefault(case.case, []).append(row)
            rows.append(row)
        return rows

    def _row(self, column: Column, case: CaseResult) -> Row:
        mark = mark_of(case)
        own = case.failed if self.is_alone else mark.key != "right" or self._differs(case)
        key = self._keys[case.case]
        other = "" if self.is_alone else f"../cases/{key}.html"
        href = f"../cells/{column.key}/{key}.html" if own else other
        return Row(column, case, mark, self._title(column, case), sentence(case), href, own)

    def _differs(self, case: CaseResult) -> bool:
        """Whether the stream is not the one on the page of the case: the first that is known."""
        streams = (row.case.stream for row in self._rows.get(case.case, []))
        shown = next((stream for stream in streams if stream is not None), None)
        return None not in (shown, case.stream) and shown != case.stream

    def _title(self, column: Column, case: CaseResult) -> str:
        info = column.results.quirks.get(case.quirk)
        if case.group in CASE_RULES:
            play = column.results.plays.get(case.played)
            return play.title if play else f"Cut stream {case.played.partition('/')[2]}"
        if info is None:
            return f"Plain stream {case.case.partition('/')[2] or case.case}"
        variant = case.quirk.partition(":")[2]
        return f"{info.title} ({variant})" if variant else info.title

    def _measurement(self, column: Column) -> Markup:
        from markupsafe import Markup

        return Markup(environment().get_template("measured.html").render(column=column))  # noqa: S704

    def _stream(self, stream: Stream | None, name: str, prefix: str) -> Markup | None:
        """The rendered stream; many clients get the same."""
        from markupsafe import Markup

        if stream is None:
            return None
        key = (stream, name, prefix)
        if key not in self._streams:
            self._streams[key] = Markup(  # noqa: S704 - rendered and escaped by the template
                environment()
                .get_template("stream.html")
                .render(stream=stream, view=bytes_view(stream), name=name, prefix=prefix)
            )
        return self._streams[key]

    def clients(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """The page of each client."""
        for column in self._every:
            rows = self._sorted_rows(column)
            marks = Counter(row.mark for row in rows)
            mistakes = [row for row in rows if row.case.failed]
            baseline = [r for r in mistakes if not r.case.quirk and "~" not in r.case.case]
            present = sorted(marks, key=lambda mark: mark.rank)
            yield (
                f"clients/{column.key}.html",
                {
                    "column": column,
                    "rows": rows,
                    "counts": [(mark, marks[mark]) for mark in present],
                    "kinds": [(mark.key, mark.word) for mark in present],
                    "groups": [
                        (slug(group), GROUP_WORDS.get(group, group))
                        for group in groups_of([column])
                    ],
                    "baseline": _alike(baseline),
                    "is_alone": self.is_alone,
                    "summary": _summary(column),
                },
            )

    def _sorted_rows(self, column: Column) -> list[Row]:
        places = {name: place for place, name in enumerate(groups_of([column]))}
        rows = [replace(row, order=places[row.case.group]) for row in self._cells[column.key]]
        return sorted(rows, key=lambda row: (row.mark.rank, row.order, row.case.case))

    def quirks(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """The page of each quirk: all clients in all its forms."""
        cases: dict[str, list[Row]] = {}
        for row in (row for rows in self._rows.values() for row in rows):
            cases.setdefault(row.case.quirk.partition(":")[0], []).append(row)
        for name, quirk in self._quirk_rows.items():
            names = dict.fromkeys(row.case.case for row in cases[name])
            forms = list(dict.fromkeys(row.case.quirk for row in cases[name]))
            values = {
                "row": quirk,
                # The description is that of one form.
                "info": quirk.info if len(forms) == 1 else replace(quirk.info, description=""),
                "forms": forms,
                "lines": sorted(self._lines(cases[name], forms), key=_worst_rank),
                "cases": [(case, f"../cases/{self._keys[case]}.html") for case in names],
            }
            yield f"quirks/{quirk.key}.html", values

    def _lines(self, rows: Sequence[Row], forms: Sequence[str]) -> Iterator[dict[str, Any]]:
        """For each client of a quirk, its worst case of each form."""
        for column in self.columns:
            worst: dict[str, Row] = {}
            for row in rows:
                form = row.case.quirk
                if row.column is column and row.mark.rank <= worst.get(form, row).mark.rank:
                    worst[form] = row
            if worst:
                yield {"column": column, "cells": [worst.get(form) for form in forms]}

    def cases(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """The page of each case: all clients, and the stream."""
        for name, rows in self._rows.items():
            shown = next((row for row in rows if row.case.stream is not None), rows[0])
            case = shown.case
            expected = outcome_rows(case.expected, case.expected, case)
            quirk = self._quirk_rows.get(case.quirk.partition(":")[0])
            key = self._keys[name]
            yield (
                f"cases/{key}.html",
                {
                    "case": case,
                    "title": shown.title,
                    "rows": sorted(rows, key=lambda row: row.mark.rank),
                    "stream": self._stream(case.stream, key, "w"),
                    "expected": expected,
                    "info": shown.column.results.quirks.get(case.quirk),
                    "quirk_href": f"../quirks/{quirk.key}.html" if quirk else None,
                    "summary": _case_summary(rows),
                    "promise": promise(case.group),
                },
            )

    def cells(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """The page of each client in each case that it does not get right."""
        for column in self._every:
            rows = [row for row in self._sorted_rows(column) if row.own]
            failed = [row for row in rows if row.case.failed]
            for row in rows:
                at = failed.index(row) if row in failed else None
                yield (
                    f"cells/{column.key}/{self._keys[row.case.case]}.html",
                    {**self._cell(row), **_steps(failed, at)},
                )

    def _cell(self, row: Row) -> dict[str, Any]:
        case = row.case
        key = self._keys[case.case]
        play = row.column.results.plays.get(case.played)
        same = (cell for cell in self._cells[row.column.key] if cell.case.case == case.baseline)
        baseline = next(same, None)
        return {
            "column": row.column,
            "client": row.column.results.client,
            "case": case,
            "mark": row.mark,
            "title": row.title,
            "sentence": row.sentence,
            "rows": outcome_rows(case.expected, case.actual, case) if case.actual else [],
            "stream": self._stream(case.stream, key, "w"),
            "small": case.smallest and self._small(case.smallest, case, key),
            "info": row.column.results.quirks.get(case.quirk),
            "invariant": promise(case.invariant),
            "play": play,
            "log": [(request, log_line(request)) for request in play.log] if play else [],
            "case_href": "" if self.is_alone else f"../../cases/{key}.html",
            "baseline_href": f"../{baseline.href}" if baseline and baseline.href else "",
        }

    def _small(self, smallest: Smallest, case: CaseResult, key: str) -> dict[str, Any]:
        return {
            "stream": self._stream(smallest.stream, f"{key}-smallest", "m"),
            "rows": outcome_rows(smallest.expected, smallest.actual, case),
            "scenario": smallest.scenario,
        }


def _steps(failed: Sequence[Row], at: int | None) -> dict[str, str]:
    """The addresses of the mistakes before and after one, from a page of a cell; "" for none."""
    before = failed[at - 1] if at else None
    after = failed[at + 1] if at is not None and at + 1 < len(failed) else None
    return {
        "previous": f"../{before.href}" if before else "",
        "next": f"../{after.href}" if after else "",
    }


def _worst_rank(line: dict[str, Any]) -> int:
    return min(int(row.mark.rank) for row in line["cells"] if row is not None)


def _alike(rows: Sequence[Row]) -> list[tuple[Row, int]]:
    """The first of the rows with the same sentence, and how many there are."""
    groups: dict[tuple[CellMark, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.mark, row.sentence), []).append(row)
    return [(alike[0], len(alike)) for alike in groups.values()]


def _summary(column: Column) -> str:
    wrong = sum(column.counts)
    judged = wrong + column.right
    if not judged:
        return "Nothing was judged."
    place = f"Place {column.place} in the ranking. " if column.place else ""
    if not wrong:
        return f"{place}No mistake in the {judged} topics that were judged."
    return f"{place}It makes mistakes in {wrong} of the {judged} topics that were judged."


def _case_summary(rows: Sequence[Row]) -> str:
    wrong = sum(row.case.failed for row in rows)
    judged = sum(row.mark.key not in ("not-judged", "not-applicable", "adapter") for row in rows)
    if not judged:
        return "Nothing was judged in this case."
    return f"{wrong} of {judged} that were judged get it wrong."
