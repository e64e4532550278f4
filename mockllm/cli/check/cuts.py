"""`--cuts`: streams that are cut at every place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import cast

from mockllm.checking.cuts import CUT_RULES, CutAnswer, CutReport, Prefix, cut_report
from mockllm.checking.cuts.examine import planned
from mockllm.checking.cuts.prefixes import Level
from mockllm.checking.cuts.report import row_name
from mockllm.cli.check.options import CheckOptions
from mockllm.cli.check.plan import (
    Interruptible,
    Plan,
    attached,
    chosen,
    measurement_of,
    print_remarks,
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
    cut = [prefix for prefix in listed if prefix.place != "whole"]
    run = set(map(id, chosen(cut, options.only, _forms, "sample, place or rule")))
    # The whole streams show what a client reads at all.
    prefixes = [prefix for prefix in listed if prefix.place == "whole" or id(prefix) in run]

    def judge(line: ProgressLine, interrupted: Interruptible) -> Results:
        with attached(options) as runner:
            answers = _answered(options, runner, prefixes, line)
            report = _only(cut_report(options.api, level, interrupted.until(answers)), options)
            results = cut_results(report, runner, measurement_of(options, _stopped(interrupted)))
            print_remarks(runner.remarks)
            return results

    return Plan(tuple(dict.fromkeys(name for one in cut for name in _names(one))), judge)


def _stopped(interrupted: Interruptible) -> str:
    return "interrupted before the last prefix" if interrupted.happened else ""


def _answered(
    options: CheckOptions,
    runner: Runner,
    prefixes: Sequence[Prefix],
    line: ProgressLine,
) -> Iterator[tuple[Prefix, CutAnswer]]:
    level = cast("Level", options.measured_level)
    for done, pair in enumerate(cut_answers(runner, prefixes, level, options.command)):
        line("prefixes", done, len(prefixes))
        yield pair


def _names(prefix: Prefix) -> list[str]:
    """The names of the lines of a results file that a prefix belongs to."""
    return [row_name(prefix.case, prefix.place, prefix.ending, rule) for rule in CUT_RULES]


def _forms(prefix: Prefix) -> Iterator[str]:
    return (form for name in _names(prefix) for form in _forms_of(name))


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
