"""Runs `mockllm check`: judges the client, and writes what was requested."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import click

from mockllm.cli.check.options import CheckOptions
from mockllm.cli.check.plan import Interruptible, Plan
from mockllm.cli.terminal.progress import progress_line
from mockllm.conformance.reports.terminal import exit_code, terminal_lines
from mockllm.conformance.results import Results
from mockllm.conformance.results.file import write_report, write_results
from mockllm.conformance.results.known import (
    KnownList,
    Standing,
    check_patterns,
    read_known,
    updated,
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
    plan = _plan(options)
    lists = _Lists.read(options, plan.names)
    with progress_line() as line, Interruptible() as interrupted, plan.attach() as runner:
        results = plan.judge(runner, line, interrupted)
        for remark in runner.attachment.remarks:
            click.echo(f"mockllm: {remark}", err=True)
    return _report(options, results, lists)


def _plan(options: CheckOptions) -> Plan:
    from mockllm.cli.check.sources import plan_cuts, plan_faults, plan_streams

    if options.faults:
        return plan_faults(options)
    return plan_cuts(options) if options.cuts else plan_streams(options)


def _self_test(options: CheckOptions) -> int:
    from mockllm.conformance.attachments.runner import LIMIT
    from mockllm.conformance.attachments.self_test import self_test

    limit = options.limit or LIMIT
    findings = self_test(options.command, options.api, options.measured_level, limit=limit)
    for finding in findings:
        click.echo(str(finding))
    if not findings:
        click.echo("the runner speaks the protocol")
    return 2 if findings else 0


@dataclass(frozen=True, slots=True)
class _Lists:
    """The lists of known mistakes, and the names of all lines that they may list."""

    failing: KnownList
    flaky: KnownList
    names: tuple[str, ...]

    @classmethod
    def read(cls, options: CheckOptions, names: tuple[str, ...]) -> _Lists:
        """The lists of the options; each line has to match one of the names."""
        failing, flaky = options.known_failing, options.known_flaky
        lists = cls(
            read_known(failing, missing=options.update) if failing else KnownList(),
            read_known(flaky) if flaky else KnownList(),
            names,
        )
        for known in (lists.flaky, *(() if options.update else (lists.failing,))):
            check_patterns(known, names)
        return lists


# What is written


def _report(options: CheckOptions, results: Results, lists: _Lists) -> int:
    """Writes and prints results; the exit code."""
    path = options.results or Path("mockllm-results", _file_name(options, results))
    write_results(results, path)
    standing = Standing.of(results.cases, lists.failing, lists.flaky)
    if options.update and options.known_failing is not None:
        standing = _update(options.known_failing, standing, results, lists)
    for line in terminal_lines(results, standing):
        click.echo(line)
    click.echo(f"\nRESULTS: {path}")
    _write_reports(options, results, standing)
    return exit_code(results, standing)


def _file_name(options: CheckOptions, results: Results) -> str:
    client = re.sub(r"[^A-Za-z0-9._]+", "-", results.client.name).strip("-.") or "client"
    return f"{client}-{results.api}{'-faults' if options.faults else ''}.json"


def _update(path: Path, standing: Standing, results: Results, lists: _Lists) -> Standing:
    """Writes the list of failing cases; the comparison with the new list."""
    write_report(path, updated(lists.failing, standing, lists.names))
    return Standing.of(results.cases, read_known(path), lists.flaky)


def _write_reports(options: CheckOptions, results: Results, standing: Standing) -> None:
    if options.junit is not None:
        from mockllm.conformance.reports.junit import junit_xml

        _write(options.junit, junit_xml(results, standing), "JUNIT")
    if options.badge is not None:
        from mockllm.conformance.reports.badge import badge_svg

        _write(options.badge, badge_svg(results), "BADGE")
    if options.html is not None:
        from mockllm.conformance.site import build_site

        build_site([results], options.html)
        click.echo(f"PAGES: {options.html / 'index.html'}")


def _write(path: Path, text: str, name: str) -> None:
    """Writes a report, and prints where it is."""
    write_report(path, text)
    click.echo(f"{name}: {path}")
