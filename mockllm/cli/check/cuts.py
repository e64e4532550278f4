"""`--cuts`: streams that are cut at every place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial
from typing import cast

from mockllm.checking.cases.case import Case
from mockllm.checking.cuts import CUT_RULES, CutAnswer, CutReport, cut_report
from mockllm.checking.cuts.examine import planned
from mockllm.checking.cuts.prefixes import Level, cut_of
from mockllm.checking.cuts.report import row_name
from mockllm.cli.check.options import CheckOptions
from mockllm.cli.check.plan import (
    Interruptible,
    Plan,
    attached,
    chosen,
    empty_results,
)
from mockllm.cli.options.parameters import read_scenarios
from mockllm.cli.terminal.progress import ProgressLine
from mockllm.conformance.attachments.runner import Runner
from mockllm.conformance.cuts import cut_answers, cut_results
from mockllm.conformance.results import Results


def plan_cuts(options: CheckOptions) -> Plan:
    """The plan of a run with `--cuts`."""
    level = cast("Level", options.measured_level)
    scenarios = read_scenarios(options.paths) if options.paths else ()
    listed = list(planned(options.api, level, scenarios))
    prefixes = [case for case in listed if not _is_whole(case)]
    run = set(map(id, chosen(prefixes, options.only, _forms, "sample, place or rule")))
    # The whole streams show what a client reads at all.
    cases = [case for case in listed if _is_whole(case) or id(case) in run]

    def judge(runner: Runner, line: ProgressLine, interrupted: Interruptible) -> Results:
        answers = _answered(options, runner, cases, line)
        report = _only(cut_report(options.api, level, interrupted.until(answers)), options)
        stopped = "interrupted before the last prefix" if interrupted.happened else ""
        return cut_results(report, empty_results(options, runner.hello, stopped), options.setting)

    names = dict.fromkeys(name for case in prefixes for name in _names(case))
    return Plan(tuple(names), partial(attached, options), judge)


def _is_whole(case: Case) -> bool:
    return cut_of(case).place == "whole"


def _answered(
    options: CheckOptions, runner: Runner, cases: Sequence[Case], line: ProgressLine
) -> Iterator[tuple[Case, CutAnswer]]:
    for done, pair in enumerate(cut_answers(runner, cases, options.command)):
        line("prefixes", done, len(cases))
        yield pair


def _names(case: Case) -> list[str]:
    """The names of the lines of a results file that a prefix belongs to."""
    cut = cut_of(case)
    return [row_name(cut.whole, cut.place, cut.ending, rule) for rule in CUT_RULES]


def _forms(case: Case) -> Iterator[str]:
    return (form for name in _names(case) for form in _forms_of(name))


def _forms_of(name: str) -> tuple[str, ...]:
    """The line, its place, and its sample, with its API or without."""
    sample = name.partition("@")[0]
    return name, name.rpartition(":")[0], sample, sample.partition("/")[2]


def _only(report: CutReport, options: CheckOptions) -> CutReport:
    """The report without the rows that `--only` does not name."""
    if not options.only:
        return report
    rows = [
        row
        for row in report.rows
        if any(fnmatchcase(form, one) for form in _forms_of(row.name) for one in options.only)
    ]
    return replace(report, rows=tuple(rows))
