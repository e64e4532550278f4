"""The values of the first page: matrix, ranking and quirks. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from mockllm.checking.rules import promise
from mockllm.conformance.site.columns import Cell, Column, groups_of, quirk_rows
from mockllm.conformance.site.rendering import slug
from mockllm.conformance.site.sentence import sentence
from mockllm.conformance.site.words import MARKS, MISTAKES, Mark, mark_of

GROUP_WORDS = {"plain": "plain streams", "cuts": "cut elsewhere"}
"""Groups that are no topics of quirks."""


def first_page(columns: Sequence[Column], *, alone: bool) -> dict[str, Any]:
    """The values of the first page."""
    quirks = [row for row in quirk_rows(columns) if row.broken]
    mistakes = _mistakes(columns)
    return {
        "columns": columns,
        "groups": groups_of(columns),
        "group_words": GROUP_WORDS,
        "quirks": quirks,
        "legend": _legend(columns),
        "mistakes_marks": mistakes,
        "mistakes": [(mark.key, mark.word) for mark in mistakes],
        "apis": list(dict.fromkeys((column.results.api, column.api) for column in columns)),
        "languages": sorted({(_language(column), _language(column)) for column in columns}),
        "empty": Cell(None, 0, "no case"),
        "client_href": _anchor if alone else _page,
        "cell_href": (lambda one, _: _anchor(one)) if alone else _cell,
        "quirk_href": None if alone else (lambda row: f"quirks/{row.key}.html"),
    }


def rules_section(columns: Sequence[Column]) -> dict[str, Any]:
    """The values of the second matrix: clients, and the rules of resilience."""
    return {
        "rule_columns": columns,
        "rule_groups": [(rule, promise(rule)) for rule in groups_of(columns)],
        "rule_legend": _legend(columns),
    }


def _used(columns: Sequence[Column]) -> set[Mark | None]:
    return {cell.mark for column in columns for cell in column.cells.values()}


def _mistakes(columns: Sequence[Column]) -> list[Mark]:
    """The marks of mistakes; without faults, nothing shows how reliable a client is."""
    unseen = {MARKS["unreliable"]} - _used(columns)
    return [mark for mark in MISTAKES if mark not in unseen]


def _legend(columns: Sequence[Column]) -> list[Mark]:
    always = {*_mistakes(columns), MARKS["right"], MARKS["not-judged"]}
    return [mark for mark in MARKS.values() if mark in always | _used(columns)]


def _language(column: Column) -> str:
    return column.results.client.language or "unknown"


def _page(column: Column) -> str:
    return f"clients/{column.key}.html"


def _cell(column: Column, group: str) -> str:
    return f"clients/{column.key}.html#group={slug(group)}"


def _anchor(column: Column) -> str:
    return f"#c-{column.key}"


def overview_details(columns: Sequence[Column], most: int) -> Iterator[dict[str, Any]]:
    """For a page that stands alone, the mistakes of each client, at most `most` of each."""
    for column in columns:
        failed = [case for case in column.results.cases if case.failed]
        failed.sort(key=lambda one: mark_of(one).rank)
        rows = [
            {"case": one, "mark": mark_of(one), "sentence": sentence(one)} for one in failed[:most]
        ]
        yield {"column": column, "rows": rows, "more": len(failed) - len(rows)}
