"""Streams as real servers send them: scenarios, their variations, and quirks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import cast

import click

from mockllm.checking.cases.case import Case
from mockllm.checking.cases.compile import cases
from mockllm.checking.judging.report import Report
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
from mockllm.conformance.attachments.case_files import AnswerFile, file_runner, write_cases
from mockllm.conformance.attachments.runner import Level, Runner
from mockllm.conformance.case_names import name_of
from mockllm.conformance.measured import measured
from mockllm.conformance.results import Results
from mockllm.conformance.smallest import with_smallest
from mockllm.errors import UsageError


def plan_streams(options: CheckOptions) -> Plan:
    """The plan of a run without `--cuts` and `--faults`."""
    listed = _all_cases(options)
    run = chosen_cases(listed, options.only)

    def attach() -> Runner:
        if options.judge is not None:
            return file_runner(options.judge, run, cast("Level", options.level))
        return attached(options)

    names = map(name_of, (*listed, *_plain_forms(listed)))
    return Plan(tuple(names), attach, partial(_judge, options, run))


def emit(options: CheckOptions, path: Path) -> None:
    """Writes the cases to a file."""
    run = chosen_cases(_all_cases(options), options.only)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as stream:
        level = cast("Level", options.level)
        count, unseen = write_cases(run, options.api, level, stream)
    click.echo(f"{count} cases in {path}; judge the answers with --judge and the same arguments")
    if unseen:
        click.echo(f"{len(unseen)} cases show in bytes only and are left out")


def _all_cases(options: CheckOptions) -> list[Case]:
    """The cases of the scenarios, whether they are chosen or not."""
    return list(
        cases(
            options.api,
            read_scenarios(options.paths),
            variations=options.variations,
            quirks=not options.no_quirks,
            seed=options.seed,
            level=cast("Level", options.level),
        )
    )


def chosen_cases(listed: Sequence[Case], patterns: Sequence[str]) -> list[Case]:
    """The cases that any pattern names: the case, its quirk, or its quirk with the variant."""
    forms = _plain_forms(listed) if patterns else []
    return chosen([*forms, *listed], patterns, _names, "case or quirk")


def _plain_forms(listed: Sequence[Case]) -> list[Case]:
    """The plain forms that are no cases themselves: those of the samples of quirks."""
    names = {name_of(case) for case in listed}
    forms = {name_of(case.plain): case.plain for case in listed if case.plain is not None}
    return [form for name, form in forms.items() if name not in names]


def _names(case: Case) -> Iterator[str]:
    name = name_of(case)
    yield from filter(
        None, (name, name.partition("/")[2], case.quirk, case.quirk.partition(":")[0])
    )


def _judge(
    options: CheckOptions,
    run: Sequence[Case],
    runner: Runner,
    line: ProgressLine,
    interrupted: Interruptible,
) -> Results:
    done = 0

    def progress(_: object) -> None:
        nonlocal done
        done += 1
        line("cases", done, len(run))

    given = interrupted.until(_answered(runner, run))
    report = runner.examine(given, options.policy, progress)
    stopped = interrupted.stopped(done, len(run)) or _unanswered(runner)
    empty = empty_results(options, runner.hello, stopped)
    cases = () if interrupted.happened else run
    results = measured(report, runner, empty, options.policy, options.setting, cases)
    if not (options.no_shrink or options.judge is not None or interrupted.happened):
        results = _shrunk(options, runner, report, results, line)
    return results


def _answered(runner: Runner, run: Sequence[Case]) -> list[Case]:
    """The cases that the client can be judged by: those of a file need an answer there."""
    file = runner.attachment
    return [case for case in run if not isinstance(file, AnswerFile) or case.name in file.answers]


def _unanswered(runner: Runner) -> str:
    file = runner.attachment
    missing = file.missing if isinstance(file, AnswerFile) else ()
    return f"the file has no answer to {len(missing)} cases" if missing else ""


def _shrunk(
    options: CheckOptions,
    runner: Runner,
    report: Report,
    results: Results,
    line: ProgressLine,
) -> Results:
    """The results with the smallest streams, if hypothesis is installed."""
    broken = list(report.broken())

    def progress(invariant: str) -> None:
        line("smallest streams", broken.index(invariant), len(broken))

    try:
        return with_smallest(results, report, runner, options.policy, progress=progress)
    except UsageError as error:
        click.echo(f"mockllm: no smallest streams: {error}", err=True)
        return results
