"""Runs `mockllm check`: attaches the client, judges it, writes what was requested."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any, Self, cast

import click

import mockllm
from mockllm.checking.cases.case import Case
from mockllm.checking.judging.report import Report
from mockllm.cli.check_cases import all_cases, chosen, names_of
from mockllm.cli.check_options import CheckOptions
from mockllm.cli.terminal.progress import ProgressLine, progress_line
from mockllm.conformance.case_files import FileRunner, write_cases
from mockllm.conformance.http_cases import HTTP_LIMIT, HttpRunner
from mockllm.conformance.known import (
    KnownList,
    Standing,
    check_patterns,
    read_known,
    updated,
)
from mockllm.conformance.measured import Measurement, measured
from mockllm.conformance.pool import LIMIT, Level, PipeRunner
from mockllm.conformance.results import Results
from mockllm.conformance.results_file import write_results
from mockllm.conformance.smallest import with_smallest
from mockllm.conformance.source import source_commit
from mockllm.conformance.terminal import exit_code, terminal_lines
from mockllm.errors import UsageError

__all__ = [
    "Interruptible",
    "Lists",
    "measurement_of",
    "report_results",
    "run_check",
    "slug",
    "update_known",
    "write_all",
    "write_reports",
    "write_text",
]

AnyRunner = PipeRunner | HttpRunner | FileRunner


def run_check(options: CheckOptions) -> int:
    """Does what the options describe; returns the exit code.

    Raises:
        MockLLMError: the client cannot be judged.
    """
    if options.self_test:
        return _self_test(options)
    if options.faults:
        from mockllm.cli.check_faults import run_faults

        return run_faults(options)
    if options.cuts:
        from mockllm.cli.check_cuts import run_cuts

        return run_cuts(options)
    cases = all_cases(options)
    run = chosen(cases, options.only)
    lists = Lists.of(options, names_of(cases))
    if options.emit is not None:
        return _emit(options, run, options.emit)
    with _runner(options, run) as runner:
        results = _judge(options, runner, run)
        for remark in runner.remarks:
            click.echo(f"mockllm: {remark}", err=True)
    return report_results(options, results, lists)


@dataclass(frozen=True, slots=True)
class Lists:
    """The lists of known mistakes, and the names of all cases that they may list."""

    failing: KnownList
    flaky: KnownList
    names: tuple[str, ...]

    @classmethod
    def of(cls, options: CheckOptions, names: tuple[str, ...]) -> Lists:
        """The lists of the options; each line has to match one of the names."""
        failing, flaky = options.known_failing, options.known_flaky
        found = cls(
            read_known(failing, missing=options.update) if failing else KnownList(),
            read_known(flaky) if flaky else KnownList(),
            names,
        )
        for known in (found.flaky, *(() if options.update else (found.failing,))):
            check_patterns(known, names)
        return found


def _self_test(options: CheckOptions) -> int:
    from mockllm.conformance.self_test import self_test

    limit = options.limit or LIMIT
    findings = self_test(options.command, options.api, options.measured_level, limit=limit)
    for finding in findings:
        click.echo(str(finding))
    if not findings:
        click.echo("the runner speaks the protocol")
    return 2 if findings else 0


def _emit(options: CheckOptions, cases: Sequence[Case], path: Path) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as stream:
        level = cast("Level", options.level)
        count, left_out = write_cases(cases, options.api, level, stream)
    click.echo(f"{count} cases in {path}; judge the answers with --judge and the same arguments")
    if left_out:
        click.echo(f"{len(left_out)} cases show in bytes only and are left out")
    return 0


# The client


def _runner(options: CheckOptions, cases: Sequence[Case]) -> AnyRunner:
    if options.judge is not None:
        return FileRunner(options.judge, cases, cast("Level", options.level))
    settings: dict[str, Any] = {"jobs": options.jobs, "window": options.window}
    if options.http:
        limit = options.limit or HTTP_LIMIT
        return HttpRunner(
            options.command, options.api, per_case=options.per_case, limit=limit, **settings
        )
    level = cast("Level", options.level)
    limit = options.limit or LIMIT
    return PipeRunner(options.command, options.api, level, limit=limit, **settings)


def _judge(options: CheckOptions, runner: AnyRunner, cases: Sequence[Case]) -> Results:
    """The results of the client; after Ctrl-C, of the cases until then."""
    with progress_line() as line, Interruptible() as interrupted:
        done = 0

        def progress(_: object) -> None:
            nonlocal done
            done += 1
            line("cases", done, len(cases))

        report = runner.examine(interrupted.until(cases), options.policy, progress)
        stopped = interrupted.stopped(done, len(cases)) or _unanswered(runner)
        measurement = measurement_of(options, stopped)
        found = measured(report, runner, measurement, () if interrupted.happened else cases)
        if options.no_shrink or options.judge is not None or interrupted.happened:
            return found
        return _shrunk(options, runner, report, found, line)


def measurement_of(options: CheckOptions, stopped: str = "") -> Measurement:
    """What is to be known of a run besides its cases."""
    return Measurement(
        api=options.api,
        level=options.measured_level,
        policy=options.policy,
        setting=options.setting,
        mockllm=mockllm.__version__,
        commit=source_commit(),
        date=datetime.now(UTC).date().isoformat(),
        arguments=options.arguments,
        stopped=stopped,
    )


def _shrunk(
    options: CheckOptions,
    runner: AnyRunner,
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


def _unanswered(runner: AnyRunner) -> str:
    missing = runner.missing if isinstance(runner, FileRunner) else ()
    return f"the file has no answer to {len(missing)} cases" if missing else ""


class Interruptible:
    """While it is entered, the first Ctrl-C ends the list of cases, and the second the program."""

    def __init__(self) -> None:
        self.happened = False

    def until(self, cases: Sequence[Case]) -> Iterator[Case]:
        """The cases until Ctrl-C."""
        for case in cases:
            if self.happened:
                return
            yield case

    def stopped(self, done: int, count: int) -> str:
        """Why the remaining cases were not judged."""
        return f"interrupted after {done} of {count} cases" if self.happened else ""

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        if self.happened:
            raise KeyboardInterrupt
        self.happened = True
        click.echo("mockllm: stopping; again to stop at once", err=True)

    def __enter__(self) -> Self:
        self._before = signal.signal(signal.SIGINT, self._interrupt)
        return self

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGINT, self._before)


# What is written


def report_results(options: CheckOptions, results: Results, lists: Lists) -> int:
    """Writes and prints results; the exit code."""
    standing = write_all(options, results, lists)
    for line in terminal_lines(results, standing):
        click.echo(line)
    write_reports(options, results, standing)
    return exit_code(results, standing)


def write_all(options: CheckOptions, results: Results, lists: Lists) -> Standing:
    """Writes the results file, and the list of known mistakes; how the results stand to it."""
    standing = Standing.of(results.cases, lists.failing, lists.flaky)
    write_results(results, results_path(options, results))
    if options.update and options.known_failing is not None:
        standing = update_known(options.known_failing, standing, results, lists)
    return standing


def results_path(options: CheckOptions, results: Results) -> Path:
    """Where the results file goes."""
    name = f"{slug(results.client.name)}-{results.api}.json"
    return options.results or Path("mockllm-results", name)


def slug(name: str) -> str:
    """A name for a file."""
    return re.sub(r"[^A-Za-z0-9._]+", "-", name).strip("-.") or "client"


def update_known(path: Path, standing: Standing, results: Results, lists: Lists) -> Standing:
    """Writes the list of failing cases; the comparison with the new list."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(updated(lists.failing, standing, lists.names), encoding="utf-8")
    return Standing.of(results.cases, read_known(path), lists.flaky)


def write_reports(options: CheckOptions, results: Results, standing: Standing) -> None:
    """Prints where the results file is, and writes the other reports."""
    click.echo(f"\nRESULTS: {results_path(options, results)}")
    if options.junit is not None:
        from mockllm.conformance.junit import junit_xml

        write_text(options.junit, junit_xml(results, standing), "JUNIT")
    if options.badge is not None:
        from mockllm.conformance.badge import badge_svg

        write_text(options.badge, badge_svg(results), "BADGE")
    if options.html is not None:
        from mockllm.conformance.site import build_site

        build_site([results], options.html)
        click.echo(f"PAGES: {options.html / 'index.html'}")


def write_text(path: Path, text: str, name: str) -> None:
    """Writes a report, and prints where it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    click.echo(f"{name}: {path}")
