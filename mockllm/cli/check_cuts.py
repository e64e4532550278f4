"""`mockllm check --cuts`: streams that are cut at every place, for a client in any language."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any, cast

import click

from mockllm.checking.cuts import CUT_RULES, CutAnswer, CutReport, Prefix, cut_report
from mockllm.checking.cuts.examine import planned
from mockllm.checking.cuts.judging import NO_PLACE
from mockllm.checking.cuts.prefixes import Level
from mockllm.checking.cuts.report import row_name
from mockllm.checking.cuts.report_text import cut_lines
from mockllm.cli.check_options import CheckOptions
from mockllm.cli.check_run import Lists, measurement_of, write_all, write_reports
from mockllm.cli.options.common import read_scenarios
from mockllm.cli.terminal.progress import progress_line
from mockllm.conformance.cuts import cut_answers, cut_results
from mockllm.conformance.http_cases import HTTP_LIMIT, HttpRunner
from mockllm.conformance.known import Standing
from mockllm.conformance.pool import LIMIT, PipeRunner
from mockllm.conformance.pool import Level as PipeLevel
from mockllm.errors import UsageError

__all__ = ["run_cuts"]


def run_cuts(options: CheckOptions) -> int:
    """Judges a client by cut streams; returns the exit code.

    0: right, or as `--known-failing` lists it. 1: there are mistakes. 2: not all was judged.

    Raises:
        MockLLMError: the client cannot be judged.
    """
    level = cast("Level", options.measured_level)
    scenarios = read_scenarios(options.paths) if options.paths else ()
    found = list(planned(options.api, level, scenarios))
    lists = Lists.of(options, tuple(dict.fromkeys(_names(found))))
    found = _chosen(found, options.only)
    with _runner(options) as runner:
        report = _only(cut_report(options.api, level, _answered(options, runner, found)), options)
        results = cut_results(report, runner, measurement_of(options))
        for remark in runner.remarks:
            click.echo(f"mockllm: {remark}", err=True)
    standing = write_all(options, results, lists)
    for line in cut_lines(report):
        click.echo(line)
    for line in _listed(standing):
        click.echo(line)
    write_reports(options, results, standing)
    return _exit_code(report, standing)


def _runner(options: CheckOptions) -> PipeRunner | HttpRunner:
    settings: dict[str, Any] = {"jobs": options.jobs, "window": options.window}
    if options.http:
        limit, per_case = options.limit or HTTP_LIMIT, options.per_case
        return HttpRunner(options.command, options.api, per_case=per_case, limit=limit, **settings)
    level = cast("PipeLevel", options.level)
    limit = options.limit or LIMIT
    return PipeRunner(options.command, options.api, level, limit=limit, **settings)


def _answered(
    options: CheckOptions, runner: PipeRunner | HttpRunner, found: Sequence[Prefix]
) -> Iterator[tuple[Prefix, CutAnswer]]:
    with progress_line() as line:
        level = cast("Level", options.measured_level)
        for done, pair in enumerate(cut_answers(runner, found, level, options.command)):
            line("prefixes", done, len(found))
            yield pair


def _exit_code(report: CutReport, standing: Standing) -> int:
    if not standing.good:
        return 1
    unknown = report.not_judged.keys() - {NO_PLACE}
    return 2 if unknown or not report.judged else 0


def _listed(standing: Standing) -> Iterator[str]:
    if standing.listed or standing.flaky:
        yield ""
        known, flaky = len(standing.listed), len(standing.flaky)
        yield f"KNOWN: {known} failing as listed, {flaky} of the flaky ones failing"
    if standing.passing:
        yield ""
        yield "PASSING, and on the list of failing cases; take them off the list, or use --update:"
        yield from (f"  {one.case}" for one in standing.passing)


# --only


def _names(found: Sequence[Prefix]) -> Iterator[str]:
    """The names of all lines that a results file may have."""
    for prefix in found:
        if prefix.place != "whole":
            yield from _names_of(prefix)


def _names_of(prefix: Prefix) -> list[str]:
    return [row_name(prefix.case, prefix.place, prefix.ending, rule) for rule in CUT_RULES]


def _matches(name: str, patterns: Sequence[str]) -> bool:
    """Whether a pattern names a line: whole, or its sample, with its API or without."""
    sample = name.partition("@")[0]
    forms = (name, name.rpartition(":")[0], sample, sample.partition("/")[2])
    return any(fnmatchcase(form, pattern) for form in forms for pattern in patterns)


def _chosen(found: list[Prefix], patterns: Sequence[str]) -> list[Prefix]:
    """The prefixes that `--only` names, with the whole streams: those show what a client reads.

    Raises:
        UsageError: a pattern names none.
    """
    names = list(dict.fromkeys(_names(found)))
    for pattern in patterns:
        if not any(_matches(name, [pattern]) for name in names):
            near = get_close_matches(pattern, names, n=1, cutoff=0.4)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise UsageError(f"--only {pattern}: there is no such sample, place or rule{hint}")
    if not patterns:
        return found
    return [
        one
        for one in found
        if one.place == "whole" or any(_matches(name, patterns) for name in _names_of(one))
    ]


def _only(report: CutReport, options: CheckOptions) -> CutReport:
    """The report without the rows that `--only` does not name."""
    if not options.only:
        return report
    rows = [row for row in report.rows if _matches(row.name, options.only)]
    return replace(report, rows=tuple(rows))
