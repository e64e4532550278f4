"""Runs `mockllm check`: judges the client, and writes what was requested."""

from __future__ import annotations

import re
from pathlib import Path

from mockllm.cli.check.options import CheckOptions, ReportOptions
from mockllm.cli.check.plan import Interruptible
from mockllm.cli.terminal.output import echo
from mockllm.cli.terminal.progress import progress_line
from mockllm.conformance.driver import Driver
from mockllm.conformance.reports.terminal import exit_code, terminal_lines
from mockllm.conformance.results import Results
from mockllm.conformance.results.file import write_report, write_results
from mockllm.conformance.results.known import (
    KnownList,
    Standing,
    check_patterns,
    read_known,
    updated_text,
)


def run_check(options: CheckOptions) -> int:
    """Does what the options describe; returns the exit code.

    0: right, or as `--known-failing` lists it. 1: there are mistakes. 2: not all was judged.
    """
    if options.self_test:
        return _self_test(options)
    if options.emit is not None:
        from mockllm.cli.check.sources import emit

        emit(options, options.emit)
        return 0
    from mockllm.cli.check.sources import plan_of

    if options.reporting.html is not None:
        from mockllm.conformance.site.rendering import environment

        environment()  # a missing Jinja2 is an error before the first case, not after the last one
    plan = plan_of(options)
    lists = known_lists(options.reporting, plan.names)
    with progress_line() as line, Interruptible() as interrupted, plan.attach() as runner:
        results = plan.judge(runner, Driver(line, interrupted.goes_on))
        for remark in runner.attachment.remarks:
            echo(f"mockllm: {remark}", err=True)
    kind = "-faults" if options.faults else ""
    return report(options.reporting, results, plan.names, *lists, kind=kind)


def _self_test(options: CheckOptions) -> int:
    from mockllm.conformance.clients.runner import LIMIT
    from mockllm.conformance.clients.self_test import self_test

    limit = options.limit or LIMIT
    findings = self_test(options.command, options.api, options.measured_level, limit=limit)
    for finding in findings:
        echo(str(finding))
    if not findings:
        echo("the runner speaks the protocol")
    return 2 if findings else 0


def known_lists(options: ReportOptions, names: tuple[str, ...]) -> tuple[KnownList, KnownList]:
    """The lists of failing and of flaky cases; each line has to match one of the names."""
    failing = flaky = KnownList()
    if options.known_failing:
        failing = read_known(options.known_failing, missing=options.update)
    if options.known_flaky:
        flaky = read_known(options.known_flaky)
    for known in (flaky, *(() if options.update else (failing,))):
        check_patterns(known, names)
    return failing, flaky


# What is written


def report(
    options: ReportOptions,
    results: Results,
    names: tuple[str, ...],
    failing: KnownList,
    flaky: KnownList,
    *,
    kind: str = "",
) -> int:
    """Writes and prints results; the exit code.

    Args:
        kind: of the check, for the name of the results file.
    """
    path = options.results or Path("mockllm-results", _file_name(results, kind))
    write_results(results, path)
    standing = Standing.of(results.cases, failing, flaky)
    if options.update and options.known_failing is not None:
        write_report(options.known_failing, updated_text(failing, standing, names))
        standing = Standing.of(results.cases, read_known(options.known_failing), flaky)
    for line in terminal_lines(results, standing):
        echo(line)
    echo(f"\nRESULTS: {path}")
    _write_reports(options, results, standing)
    return exit_code(results, standing)


def _file_name(results: Results, kind: str) -> str:
    client = re.sub(r"[^A-Za-z0-9._]+", "-", results.client.name).strip("-.") or "client"
    return f"{client}-{results.api}{kind}.json"


def _write_reports(options: ReportOptions, results: Results, standing: Standing) -> None:
    if options.junit is not None:
        from mockllm.conformance.reports.junit import junit_xml

        _write(options.junit, junit_xml(results, standing), "JUNIT")
    if options.badge is not None:
        from mockllm.conformance.reports.badge import badge_svg

        _write(options.badge, badge_svg(results), "BADGE")
    if options.html is not None:
        from mockllm.conformance.site import build_site

        build_site([results], options.html)
        echo(f"PAGES: {options.html / 'index.html'}")


def _write(path: Path, text: str, name: str) -> None:
    """Writes a report, and prints where it is."""
    write_report(path, text)
    echo(f"{name}: {path}")
