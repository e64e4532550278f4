"""Results about faults as lines of a terminal: a line for each rule, the mistakes with the raw log
of their connections, and what was not judged. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from mockllm.conformance.fault_results import FaultCaseResult, LoggedRequest, RuleResult
from mockllm.conformance.known import Standing
from mockllm.conformance.results import Results
from mockllm.conformance.terminal import listed_lines
from mockllm.core.text import shorten

__all__ = ["fault_exit_code", "fault_lines", "log_line"]

_WIDEST = 150
_MOST_REQUESTS = 8
_MOST_CASES = 6


def fault_exit_code(results: Results, standing: Standing) -> int:
    """0 if every rule is kept or broken as listed, 1 for mistakes, 2 if not every rule could be
    judged."""
    verdicts = {one.verdict for one in results.rules}
    if not standing.good:
        return 1
    judged = verdicts & {"right", "wrong"}
    return 2 if results.stopped or not judged or "not judged" in verdicts else 0


def fault_lines(results: Results, standing: Standing) -> Iterator[str]:
    """The lines of a report."""
    yield _title(results)
    yield ""
    yield from _table(results)
    yield from _mistakes(results)
    yield from listed_lines(standing)
    yield from _not_judged(results)


def _title(results: Results) -> str:
    client = results.client
    name = " ".join(filter(None, (client.name, client.version)))
    language = f" ({client.language})" if client.language else ""
    rules, cases = len(results.rules), len(results.faults)
    return (
        f"{name}{language} over {results.api}, faults: {rules} {_plural(rules, 'rule')} in "
        f"{cases} {_plural(cases, 'case')}"
    )


def _plural(number: int, noun: str) -> str:
    return noun if number == 1 else f"{noun}s"


def _table(results: Results) -> Iterator[str]:
    rows: list[tuple[str, ...]] = [("RULE", "VERDICT", "JUDGED", "WRONG", "NOT JUDGED")]
    rows += [
        (
            one.rule,
            one.verdict,
            *(str(count or "") for count in (one.judged, one.wrong, one.not_judged)),
        )
        for one in results.rules
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    for row in rows:
        name, verdict, *numbers = (
            text.rjust(width) if column > 1 else text.ljust(width)
            for column, (text, width) in enumerate(zip(row, widths, strict=True))
        )
        yield "  ".join((name, verdict, *numbers)).rstrip()


def _mistakes(results: Results) -> Iterator[str]:
    broken = [one for one in results.rules if one.verdict == "wrong"]
    if not broken:
        return
    cases = {one.case: one for one in results.faults}
    yield ""
    yield f"MISTAKES: {len(broken)} {_plural(len(broken), 'rule')}"
    for rule in broken:
        yield f"{rule.rule}: a client {rule.promise}" if rule.promise else rule.rule
        yield from _broken(rule, cases)


def _broken(rule: RuleResult, cases: dict[str, FaultCaseResult]) -> Iterator[str]:
    """The first case in full, the names of the others."""
    first = cases[rule.cases[0]]
    yield f"  {first.case}: {first.about}"
    for one in first.wrong:
        if one.rule == rule.rule:
            yield f"    {_short(one.text)}"
    yield from (f"      {log_line(one)}" for one in first.log[:_MOST_REQUESTS])
    if len(first.log) > _MOST_REQUESTS:
        yield f"      and {len(first.log) - _MOST_REQUESTS} more requests"
    more = rule.cases[1:]
    if more:
        names = ", ".join(more[:_MOST_CASES])
        rest = f" and {len(more) - _MOST_CASES} more" if len(more) > _MOST_CASES else ""
        yield f"    also in {names}{rest}"
    yield from (f"    again: {line}" for line in first.reproduce[:1])


def _short(text: str) -> str:
    return shorten(" ".join(text.split()), _WIDEST, keep=_WIDEST - 41, tail=40)


def log_line(one: LoggedRequest) -> str:
    """A request of the log of a case."""
    words = [
        f"{one.number}. at {one.at:.3f} s, connection {one.connection}: {one.request} ->",
        f"{one.status}, {one.bytes_sent:,} bytes" if one.status else "no answer",
    ]
    if one.fault:
        struck = f" after {one.struck:.3f} s" if one.struck is not None else " did not strike"
        after = f" and {one.struck_after:,} bytes" if one.struck_after is not None else ""
        words[-1] += f"; {one.fault}{struck}{after}"
    took = f" after {one.duration:.3f} s" if one.duration is not None else ""
    ends = {"client": "the client closed it", "server": "mockllm closed it"}
    words[-1] += f"; {ends.get(one.closed_by, one.closed_by)}{took}"
    return " ".join(words)


def _not_judged(results: Results) -> Iterator[str]:
    lines = [f"the remaining cases: {results.stopped}"] if results.stopped else []
    lines += [f"{one.rule}: {one.reason}" for one in results.rules if one.verdict == "not judged"]
    if lines:
        yield ""
        yield "NOT JUDGED"
        yield from (f"  {line}" for line in lines)
    apart = [
        f"{one.rule}: {one.reason}" for one in results.rules if one.verdict == "not applicable"
    ]
    if apart:
        yield ""
        yield "NOT APPLICABLE"
        yield from (f"  {line}" for line in apart)
    unsure = [(one, case) for case in results.faults for one in case.unconfirmed]
    if unsure:
        yield ""
        yield "SEEN ONCE in three times, so not counted"
        yield from (f"  {case.case}: {one.rule}: {_short(one.text)}" for one, case in unsure)
