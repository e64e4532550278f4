"""Results as lines of a terminal: a line for each group, the worst mistakes, and what was not
judged. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from mockllm.conformance.commands import Setting, show_command
from mockllm.conformance.known import Standing, passes
from mockllm.conformance.results import COSTS, CaseResult, Results
from mockllm.core.text import shorten
from mockllm.quirks.prose import TOPICS

__all__ = ["exit_code", "listed_lines", "terminal_lines"]

_WORST = 10
_WIDEST = 150
_MOST_DIFFERENCES = 3

_EXPLAINED = {
    "wrong call": "a call is executed that the model did not make",
    "data lost": "text, a call or an error is lost silently",
    "wrong metadata": "ids, usage, finish or role are wrong",
    "loud failure": "the client fails with an error where the stream can be read",
}


def exit_code(results: Results, standing: Standing) -> int:
    """0 if all is right or as listed, 1 for mistakes, 2 if not all cases could be judged."""
    if not standing.good:
        return 1
    judged = any(one.failed or passes(one) or one.differences for one in results.cases)
    adapter = any(one.verdict == "adapter" for one in results.cases)
    return 2 if results.stopped or adapter or not judged else 0


def terminal_lines(results: Results, standing: Standing) -> Iterator[str]:
    """The lines of a report."""
    yield _title(results)
    yield ""
    yield from _table(results)
    yield from _worst(standing.new)
    yield from listed_lines(standing)
    yield from _not_judged(results)


def _title(results: Results) -> str:
    client = results.client
    name = " ".join(filter(None, (client.name, client.version)))
    language = f" ({client.language})" if client.language else ""
    cases = _count(len(results.cases), "case")
    return f"{name}{language} over {results.api}, level {results.level}: {cases}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _table(results: Results) -> Iterator[str]:
    groups = results.groups
    order = {name: number for number, name in enumerate(("plain", "cuts", *TOPICS))}
    rows: list[tuple[str, ...]] = [("GROUP", "CASES", "RIGHT", "WRONG", "OTHER", "WORST MISTAKE")]
    for group in sorted(groups, key=lambda name: order.get(name, len(order))):
        cases = groups[group]
        right, wrong = sum(map(passes, cases)), sum(one.failed for one in cases)
        other = len(cases) - right - wrong
        counts = (str(number or "") for number in (len(cases), right, wrong, other))
        rows.append((group, *counts, results.worst(group) or ""))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        numbers = (text.rjust(width) for text, width in zip(row[1:5], widths[1:5], strict=True))
        yield "  ".join((row[0].ljust(widths[0]), *numbers, row[5])).rstrip()
    yield from _other(results.cases)


def _other(cases: Sequence[CaseResult]) -> Iterator[str]:
    """What the column OTHER counts."""
    rest = [one for one in cases if not (one.failed or passes(one))]
    counts = Counter(map(_why_other, rest))
    if counts:
        yield "OTHER: " + ", ".join(f"{count} {why}" for why, count in counts.items())


def _why_other(case: CaseResult) -> str:
    if case.verdict == "adapter":
        return "raised by the adapter"
    if case.verdict == "not judged":
        return "not judged"
    return "wrong in their plain form, too" if case.baseline else "allowed by the policy"


def _worst(new: Sequence[CaseResult]) -> Iterator[str]:
    """The worst mistakes, each once: variants and samples of a quirk are one mistake."""
    found: dict[tuple[str, str, str], list[CaseResult]] = {}
    for one in sorted(new, key=_severity):
        about = one.quirk.partition(":")[0] or (one.group if one.group == "cuts" else one.case)
        found.setdefault((one.cost or "", about, one.invariant), []).append(one)
    if not found:
        return
    shown = list(found.values())[:_WORST]
    yield ""
    yield f"MISTAKES: {len(found)}, in {_count(len(new), 'case')}" + (
        f"; the worst {_WORST}:" if len(found) > _WORST else ""
    )
    cost = None
    for cases in shown:
        first = cases[0]
        if first.cost != cost:
            cost = first.cost
            yield f"{cost}: {_EXPLAINED[cost or 'loud failure']}"
        yield from _mistake(first, len(cases) - 1)
    yield f"To see the bytes: {show_command(Setting((), ()), shown[0][0].case)}"


def _severity(case: CaseResult) -> tuple[int, bool, str]:
    rank = COSTS.index(case.cost) if case.cost else len(COSTS)
    return rank, "~" in case.case, ""


def _mistake(case: CaseResult, more: int) -> Iterator[str]:
    also = f" (and {more} more like it)" if more else ""
    yield f"  {case.case}{also}"
    texts = [case.exception] if case.exception else []
    texts += [text for text in case.differences if not case.exception or case.exception not in text]
    for text in texts[:_MOST_DIFFERENCES]:
        line = " ".join(text.split())
        yield f"    {shorten(line, _WIDEST, keep=_WIDEST - 41, tail=40)}"


def listed_lines(standing: Standing) -> Iterator[str]:
    """What is known of the list of failing cases, and what passes although it is on it."""
    if standing.listed or standing.flaky:
        yield ""
        known, flaky = len(standing.listed), len(standing.flaky)
        yield f"KNOWN: {known} failing as listed, {flaky} of the flaky ones failing"
    if standing.passing:
        yield ""
        yield "PASSING, and on the list of failing cases; take them off the list, or use --update:"
        for one in standing.passing:
            yield f"  {one.case}"


def _not_judged(results: Results) -> Iterator[str]:
    lines = list(_reasons(results))
    if lines:
        yield ""
        yield "NOT JUDGED"
        yield from (f"  {line}" for line in lines)


def _reasons(results: Results) -> Iterable[str]:
    if results.stopped:
        yield f"the remaining cases: {results.stopped}"
    fields = Counter(name for one in results.cases for name in one.not_judged)
    for name, count in fields.most_common():
        cases = _count(count, "case")
        yield f"{name} in {cases}: the client has no place for it, or the policy ignores it"
    reasons = [one.reason for one in results.cases if one.verdict == "not judged"]
    for reason, count in Counter(reasons).most_common():
        yield f"{_count(count, 'case')}: {reason}"
    adapter = [one for one in results.cases if one.verdict == "adapter"]
    if adapter:
        yield f"{_count(len(adapter), 'case')}, {adapter[0].case} first: {adapter[0].reason}"
