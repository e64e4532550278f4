"""Clients as columns, the rules of resilience as rows: the values of the second matrix. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mockllm.conformance.fault_results import FaultCaseResult, RuleResult
from mockllm.conformance.fault_terminal import log_line
from mockllm.conformance.results import Results
from mockllm.conformance.site.addresses import addresses
from mockllm.conformance.site.words import Mark
from mockllm.protocols import PROTOCOLS

__all__ = ["RULE_MARKS", "FaultColumn", "fault_columns", "fault_matrix", "fault_pages"]

RULE_MARKS: dict[str, Mark] = {
    "wrong": Mark("wrong-call", "✖", "broken", 0, "the client breaks the rule in a case or more"),
    "not judged": Mark(
        "not-judged", "–", "not judged", 1, "nothing was judged; this is not a pass"
    ),
    "not applicable": Mark(
        "as-plain", "·", "does not apply", 2, "the client has nothing that the rule is about"
    ),
    "right": Mark("right", "✓", "kept", 3, "the client keeps the rule in every case"),
}
"""How a verdict is shown; the worst first."""


@dataclass(frozen=True, slots=True)
class FaultColumn:
    """A client over one API.

    Args:
        key: in addresses.
        rules: by name.
    """

    results: Results
    key: str
    rules: Mapping[str, RuleResult]

    @property
    def api(self) -> str:
        """The title of the API."""
        known = PROTOCOLS.get(self.results.api)
        return known.title if known else self.results.api

    def count(self, verdict: str) -> int:
        """How many rules have a verdict."""
        return sum(one.verdict == verdict for one in self.rules.values())

    @property
    def summary(self) -> str:
        """How many rules the client keeps."""
        broken, kept = self.count("wrong"), self.count("right")
        return f"It breaks {broken} of the {broken + kept} rules that were judged."


def fault_columns(results: Iterable[Results]) -> list[FaultColumn]:
    """The columns of the results that have rules, those that break the fewest first."""
    found = [one for one in results if one.rules]
    names = [f"{one.client.name} {one.api} {one.client.version} {one.date}" for one in found]
    names = [
        name if names.count(name) == 1 else f"{name} {names[:n].count(name) + 1}"
        for n, name in enumerate(names)
    ]
    keys = addresses(names)
    columns = [
        FaultColumn(one, keys[name], {rule.rule: rule for rule in one.rules})
        for one, name in zip(found, names, strict=True)
    ]
    columns.sort(
        key=lambda one: (one.count("wrong"), -one.count("right"), one.results.client.name.lower())
    )
    return columns


def fault_matrix(columns: Sequence[FaultColumn], *, alone: bool) -> dict[str, Any]:
    """The values of the matrix.

    Args:
        alone: whether the page has to do without other pages.
    """
    rules = {name: one.promise for column in columns for name, one in column.rules.items()}
    used = {one.verdict for column in columns for one in column.rules.values()}
    return {
        "fault_columns": columns,
        "fault_rules": rules,
        "fault_marks": RULE_MARKS,
        "fault_legend": [mark for name, mark in RULE_MARKS.items() if name in used],
        "fault_href": _anchor if alone else _page,
        "fault_details": [_details(one) for one in columns] if alone else [],
        "rule_words": rule_words,
    }


def _page(column: FaultColumn) -> str:
    return f"faults/{column.key}.html"


def _anchor(column: FaultColumn) -> str:
    return f"#f-{column.key}"


def rule_words(rule: RuleResult | None) -> str:
    """A cell in words."""
    if rule is None:
        return "not run"
    more = f", not judged in {rule.not_judged}" if rule.not_judged else ""
    if rule.verdict == "wrong":
        return f"broken in {rule.wrong} of {rule.judged} cases{more}"
    if rule.verdict == "right":
        return f"kept in {rule.judged} {'case' if rule.judged == 1 else 'cases'}{more}"
    return f"{rule.verdict}: {rule.reason}" if rule.reason else rule.verdict


def _details(column: FaultColumn) -> dict[str, Any]:
    """The rules that a client breaks, each with its plainest case."""
    return {"column": column, "rows": [row for row in _rows(column) if row["first"]]}


def fault_pages(columns: Sequence[FaultColumn]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The page of each client: each rule, and the cases with a mistake with their logs."""
    for column in columns:
        rows = sorted(_rows(column), key=lambda row: row["mark"].rank)
        accused = [one for one in column.results.faults if one.wrong or one.unconfirmed]
        keys = addresses(one.case for one in accused)
        values = {
            "column": column,
            "rows": rows,
            "keys": keys,
            "accused": [_case(one) for one in accused],
        }
        yield f"faults/{column.key}.html", values


def _rows(column: FaultColumn) -> Iterator[dict[str, Any]]:
    cases = {one.case: one for one in column.results.faults}
    for rule in column.rules.values():
        first = cases.get(rule.cases[0]) if rule.cases else None
        texts = [one.text for one in first.wrong if one.rule == rule.rule] if first else []
        yield {
            "rule": rule,
            "mark": RULE_MARKS[rule.verdict],
            "words": rule_words(rule),
            "first": first,
            "texts": texts,
        }


def _case(case: FaultCaseResult) -> dict[str, Any]:
    return {"case": case, "log": [(one, log_line(one)) for one in case.log]}
