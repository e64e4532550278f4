"""The symbols and words of cells, and the first page: clients as columns, groups as rows. Pure.

Numbers count groups. A colour never stands alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mockllm.checking.rules import CASE_RULES, COST_MEANINGS, COSTS, STREAM_COSTS, promise
from mockllm.conformance.results import CaseResult, QuirkInfo, Results, rule_verdict
from mockllm.conformance.site.rendering import addresses, slug
from mockllm.core.text import shorten
from mockllm.play.quirks.base import TOPICS
from mockllm.wire.protocols import PROTOCOLS


@dataclass(frozen=True, slots=True)
class CellMark:
    """The sign of a kind of result."""

    key: str
    symbol: str
    word: str
    rank: int
    meaning: str


_OTHERS = (
    ("non-strict", "◇", "non-strict", "an error on a stream that breaks its own protocol"),
    ("as-plain", "≈", "as in the plain stream", "the same mistake as without the quirk"),
    ("allowed", "△", "allowed", "wrong, and excused by the policy of this run"),
    ("adapter", "⚙", "adapter", "the adapter failed, not the client; not judged"),
    ("informational", "i", "informational", "wrong with a stream that no source shows"),
    ("not-judged", "–", "not judged", "nothing was compared; this is not a pass"),
    ("not-applicable", "·", "does not apply", "the client has nothing the rule is about"),
    ("tolerated", "✓", "tolerated", "not the expected outcome, but an acceptable one"),
    ("right", "✓", "right", "the expected outcome"),
)

MISTAKES: tuple[CellMark, ...] = tuple(
    CellMark(cost.replace(" ", "-"), symbol, cost, rank, COST_MEANINGS[cost])
    for rank, (cost, symbol) in enumerate(zip(COSTS, "✖⊘⊠⊟∅⇄≠!↯", strict=True))
)
"""The marks of `rules.COSTS`, in the same order."""

_ALL = (
    *MISTAKES,
    *(
        CellMark(key, symbol, word, rank, meaning)
        for rank, (key, symbol, word, meaning) in enumerate(_OTHERS, len(MISTAKES))
    ),
)

MARKS: dict[str, CellMark] = {each.key: each for each in _ALL}
"""By key, the worst first."""


_UNJUDGED = ("not-judged", "not-applicable", "adapter", "informational")


def mark_of(case: CaseResult) -> CellMark:
    """The mark of one case."""
    if case.failed:
        assert case.cost is not None
        return MARKS[case.cost.replace(" ", "-")]
    if case.baseline and case.cost is not None:
        return MARKS["as-plain"]
    key = case.verdict.replace(" ", "-")
    return MARKS.get(key, MARKS["allowed"])


def worst(cases: Iterable[CaseResult]) -> CellMark | None:
    """The mark of a cell that stands for several cases; None without cases.

    A mistake is shown before anything else. Without one, the cell is right as soon as one case was
    judged and is right: what was not judged beside it is counted in the text of the cell. Of a rule
    of resilience, at least half of the cases have to be judged.
    """
    rows = list(cases)
    marks = sorted({mark_of(row) for row in rows}, key=lambda mark: mark.rank)
    if not marks:
        return None
    if marks[0].rank <= MARKS["allowed"].rank:
        return marks[0]
    if rows[0].group in CASE_RULES:
        return MARKS[rule_verdict(rows).replace(" ", "-")]
    return max(marks, key=lambda mark: mark.rank)


_LONGEST = 180


def sentence(case: CaseResult) -> str:
    """The behaviour of the client in a case.

    Its own error says the most. Otherwise it is the first difference: the others follow from it.
    """
    if case.verdict in ("crash", "rejected") and case.group not in CASE_RULES:
        return _of_error(case)
    if case.differences and case.verdict != "adapter":
        text = _short(case.differences[0].rstrip("."))
        return f"{text[:1].upper()}{text[1:]}."
    if case.verdict == "right" and case.reason:
        return f"The expected outcome, {case.reason}."
    reason = (case.reason or "no reason is recorded").removeprefix("accepted: ").rstrip(".")
    text = _WITHOUT_MISTAKE[case.group in CASE_RULES].get(case.verdict, "Not judged: {}.")
    once = f" Once in three times it was not: {case.unconfirmed}." if case.unconfirmed else ""
    return text.format(reason) + once


_WITHOUT_MISTAKE = {
    False: {
        "right": "The client ends with the expected outcome.",
        "tolerated": "The client ends with another outcome that is acceptable: {}.",
        "not judged": "This case was not judged: {}.",
        "adapter": "The adapter failed, and not the client, so that nothing is known of the "
        "client.",
    },
    True: {
        "right": "The rule is kept.",
        "not applicable": "The rule does not apply: {}.",
    },
}
"""By the verdict; of cases in which a rule of resilience was judged, and of the others."""


def _of_error(case: CaseResult) -> str:
    error = _short(case.exception or next(iter(case.differences), case.reason))
    if case.reaction != "same":
        return f"The client crashes instead of reporting a clear error: {error}"
    does = "crashes" if case.verdict == "crash" else "reports an error"
    return f"The client {does} where the stream can be read: {error}"


def _short(text: str) -> str:
    return shorten(" ".join(text.split()), _LONGEST, keep=_LONGEST)


@dataclass(frozen=True, slots=True)
class Cell:
    """A client and a group, or a client and a quirk.

    Args:
        mark: None where the client has no case.
        count: how many quirks (or plain streams) the client gets wrong; variants of a quirk count
            once.
        several: of how many.
        cases: its cases in words, such as `3 right, 1 loud failure`.
    """

    mark: CellMark | None
    count: int = 0
    several: int = 0
    cases: str = ""

    @property
    def text(self) -> str:
        """The same in words."""
        if self.mark is None:
            return "no case"
        wrong = f": {self.count} of {self.several} wrong" if self.count else ""
        return f"{self.mark.word}{wrong} (cases: {self.cases})"


@dataclass(frozen=True, slots=True)
class Column:
    """A client over one API, and its place in the ranking.

    Args:
        key: in addresses.
        place: from 1, among the clients of its API; those with the same mistakes share it; 0 where
            less than 80 % of its cases were judged.
        counts: the groups whose worst mistake has each cost, in the order of `MISTAKES`.
        right: the groups that were judged and have no mistake.
        unjudged: the groups in which nothing was judged.
    """

    results: Results
    key: str
    place: int
    counts: tuple[int, ...]
    right: int
    unjudged: int
    cells: Mapping[str, Cell]

    @property
    def api(self) -> str:
        """The title of the API."""
        known = PROTOCOLS.get(self.results.api)
        return known.address.title if known else self.results.api

    @property
    def severities(self) -> list[str]:
        """The keys of the marks in its cells."""
        return sorted({cell.mark.key for cell in self.cells.values() if cell.mark})


@dataclass(frozen=True, slots=True)
class QuirkRow:
    """A quirk, and the clients that it breaks.

    Args:
        name: without a variant.
        mark: the worst of all clients.
        broken, judged: columns.
    """

    name: str
    key: str
    info: QuirkInfo
    group: str
    mark: CellMark
    broken: tuple[Column, ...]
    judged: tuple[Column, ...]

    @property
    def share(self) -> float:
        """The part of the judged clients that it breaks."""
        return len(self.broken) / len(self.judged)


def column_of(results: Results, key: str) -> Column:
    """The column of a client, without its place."""
    cells = {name: cell_of(cases) for name, cases in results.groups.items()}
    marks = [cell.mark for cell in cells.values()]
    nothing = {MARKS[name] for name in _UNJUDGED}
    right = {MARKS[name] for name in ("right", "tolerated", "as-plain", "allowed", "non-strict")}
    return Column(
        results,
        key,
        0,
        tuple(marks.count(mark) for mark in MISTAKES),
        sum(mark in right for mark in marks),
        sum(mark in nothing for mark in marks),
        cells,
    )


def cell_of(cases: Iterable[CaseResult]) -> Cell:
    """The cell of several cases of one client."""
    rows = list(cases)
    mark = worst(rows)
    if mark is None:
        return Cell(None)
    wrong = len({_unit(case) for case in rows if case.failed})
    several = len({_unit(case) for case in rows})
    counts = dict.fromkeys(MARKS.values(), 0)
    for row in rows:
        counts[mark_of(row)] += 1
    parts = ", ".join(f"{count} {kind.word}" for kind, count in counts.items() if count)
    return Cell(mark, wrong, several, parts)


def _unit(case: CaseResult) -> str:
    return case.quirk.partition(":")[0] or case.case


def groups_of(columns: Iterable[Column]) -> list[str]:
    """The groups in the order of reports; those that are not known here come last."""
    known = ("plain", *TOPICS, "cuts", *CASE_RULES)
    names = dict.fromkeys(name for column in columns for name in column.results.groups)
    return [*(name for name in known if name in names), *(n for n in names if n not in known)]


def quirk_rows(columns: Sequence[Column]) -> list[QuirkRow]:
    """The quirks that break a client, those that break the most first."""
    cases: dict[str, list[tuple[Column, CaseResult]]] = {}
    for column in columns:
        for case in column.results.cases:
            if case.quirk:
                cases.setdefault(case.quirk.partition(":")[0], []).append((column, case))
    keys = addresses(cases)
    rows = [row for name, pairs in cases.items() for row in _quirk_row(name, keys[name], pairs)]
    return sorted(rows, key=lambda row: (-len(row.broken), row.mark.rank, -row.share, row.name))


def _quirk_row(
    name: str, key: str, pairs: Sequence[tuple[Column, CaseResult]]
) -> Iterator[QuirkRow]:
    unjudged = [MARKS[name] for name in _UNJUDGED]
    failed = [(column, case) for column, case in pairs if case.failed]
    judged = {column.key: column for column, case in pairs if mark_of(case) not in unjudged}
    if not judged:
        return
    mark = worst(case for _, case in (failed or pairs))
    first, case = (failed or list(pairs))[0]
    info = first.results.quirks.get(case.quirk) or QuirkInfo(name)
    broken = {column.key: column for column, _ in failed}
    assert mark is not None
    yield QuirkRow(
        name, key, info, case.group, mark, tuple(broken.values()), tuple(judged.values())
    )


# The values of the first page


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
        "languages": [(name, name) for name in sorted(set(map(_language, columns)))],
        "empty": Cell(None),
        "client_href": _anchor if alone else (lambda column: f"clients/{column.key}.html"),
        "cell_href": (lambda column, _: _anchor(column)) if alone else _cell,
        "quirk_href": None if alone else (lambda row: f"quirks/{row.key}.html"),
    }


def rules_section(columns: Sequence[Column]) -> dict[str, Any]:
    """The values of the second matrix: clients, and the rules of resilience."""
    return {
        "rule_columns": columns,
        "rule_groups": [(rule, promise(rule)) for rule in groups_of(columns)],
        "rule_legend": _legend(columns),
    }


def _used_marks(columns: Sequence[Column]) -> set[CellMark | None]:
    return {cell.mark for column in columns for cell in column.cells.values()}


def _mistakes(columns: Sequence[Column]) -> list[CellMark]:
    """The marks of mistakes; without faults and gateways, some cannot be."""
    rare = {MARKS[cost.replace(" ", "-")] for cost in COSTS if cost not in STREAM_COSTS}
    unseen = rare - _used_marks(columns)
    return [mark for mark in MISTAKES if mark not in unseen]


def _legend(columns: Sequence[Column]) -> list[CellMark]:
    always = {*_mistakes(columns), MARKS["right"], MARKS["not-judged"]}
    return [mark for mark in MARKS.values() if mark in always | _used_marks(columns)]


def _language(column: Column) -> str:
    return column.results.client.language or "unknown"


def _cell(column: Column, group: str) -> str:
    return f"clients/{column.key}.html#group={slug(group)}"


def _anchor(column: Column) -> str:
    return f"#c-{column.key}"


def overview_details(columns: Sequence[Column], most: int) -> Iterator[dict[str, Any]]:
    """For a page that stands alone, the mistakes of each client, at most `most` of each."""
    for column in columns:
        failed = [case for case in column.results.cases if case.failed]
        failed.sort(key=lambda case: mark_of(case).rank)
        rows = [
            {"case": case, "mark": mark_of(case), "sentence": sentence(case)}
            for case in failed[:most]
        ]
        yield {"column": column, "rows": rows, "more": len(failed) - len(rows)}
