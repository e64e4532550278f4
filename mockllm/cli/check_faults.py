"""`mockllm check --http --faults`: how a whole client takes faults."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path

import click

from mockllm.checking.resilience.cases import fault_cases
from mockllm.checking.resilience.model import RULES, FaultCase
from mockllm.cli.check_options import CheckOptions
from mockllm.cli.check_run import (
    Interruptible,
    Lists,
    measurement_of,
    slug,
    update_known,
    write_text,
)
from mockllm.cli.terminal.progress import progress_line
from mockllm.conformance.adapter_frames import AdapterFrames
from mockllm.conformance.fault_check import check_faults
from mockllm.conformance.fault_measured import fault_results, rule_rows
from mockllm.conformance.fault_outcomes import declared_policy
from mockllm.conformance.fault_runner import FaultRunner
from mockllm.conformance.fault_terminal import fault_exit_code, fault_lines
from mockllm.conformance.known import Standing
from mockllm.conformance.results import Results
from mockllm.conformance.results_file import write_results
from mockllm.errors import UsageError

__all__ = ["run_faults"]


def run_faults(options: CheckOptions) -> int:
    """Judges how a client takes faults; returns the exit code.

    0: it keeps every rule. 1: it breaks one. 2: not every rule could be judged.

    Raises:
        MockLLMError: the client cannot be judged.
    """
    rules = _rules(options.rules)
    cases = _chosen(fault_cases(options.api), options.only, rules)
    if not options.rules:
        rules = tuple(rule for rule in rules if any(rule in one.rules for one in cases))
    if options.limit is not None:
        cases = [replace(one, deadline=options.limit) for one in cases]
    lists = Lists.of(options, tuple(f"{options.api}/{rule}" for rule in RULES))
    longest = max(one.deadline for one in cases)
    with FaultRunner(
        options.command,
        options.api,
        longest=longest,
        jobs=options.jobs,
        per_case=options.per_case,
    ) as runner:
        results = _judge(options, runner, cases, rules)
        for remark in runner.remarks:
            click.echo(f"mockllm: {remark}", err=True)
    path = options.results or _path(results)
    write_results(results, path)
    rows = replace(results, cases=rule_rows(results))
    standing = Standing.of(rows.cases, lists.failing, lists.flaky)
    if options.update and options.known_failing is not None:
        standing = update_known(options.known_failing, standing, rows, lists)
    for line in fault_lines(results, standing):
        click.echo(line)
    click.echo(f"\nRESULTS: {path}")
    if options.junit is not None:
        from mockllm.conformance.junit import junit_xml

        write_text(options.junit, junit_xml(rows, standing), "JUNIT")
    if options.html is not None:
        from mockllm.conformance.site import build_site

        build_site([results], options.html)
        click.echo(f"PAGES: {options.html / 'index.html'}")
    return fault_exit_code(results, standing)


def _path(results: Results) -> Path:
    return Path("mockllm-results", f"{slug(results.client.name)}-{results.api}-faults.json")


def _judge(
    options: CheckOptions, runner: FaultRunner, cases: Sequence[FaultCase], rules: Sequence[str]
) -> Results:
    """The results of the client; after Ctrl-C, of the cases until then."""
    policy = declared_policy(runner.hello.resilience)
    with progress_line() as line, Interruptible() as interrupted:
        found = check_faults(
            runner,
            cases,
            policy,
            rules,
            adapter=AdapterFrames(runner.hello.client.adapter, options.command),
            setting=options.setting,
            progress=line,
            goes_on=lambda: not interrupted.happened,
        )
    return fault_results(found, runner.hello, measurement_of(options), policy)


def _rules(names: Sequence[str]) -> tuple[str, ...]:
    """The rules of these names; all of them for none.

    Raises:
        UsageError: there is no such rule.
    """
    for name in names:
        if name not in RULES:
            near = get_close_matches(name, RULES, n=1)
            hint = f"did you mean {near[0]}? " if near else ""
            raise UsageError(
                f"--rule {name}: there is no such rule; {hint}there are: {', '.join(RULES)}"
            )
    return tuple(name for name in RULES if not names or name in names)


def _chosen(
    cases: Sequence[FaultCase], patterns: Sequence[str], rules: Sequence[str]
) -> list[FaultCase]:
    """The cases of some rules that any pattern names.

    Raises:
        UsageError: a pattern names none.
    """
    found = [one for one in cases if set(one.rules) & set(rules)]
    for pattern in patterns:
        if not any(_matches(one, pattern) for one in found):
            names = [one.name for one in found]
            near = get_close_matches(pattern, names, n=3, cutoff=0.5)
            hint = f"did you mean {' or '.join(near)}?" if near else f"such as {names[0]}"
            raise UsageError(f"--only {pattern}: none of {len(names)} cases has this name; {hint}")
    if not patterns:
        return found
    return [one for one in found if any(_matches(one, pattern) for pattern in patterns)]


def _matches(case: FaultCase, pattern: str) -> bool:
    return any(fnmatchcase(name, pattern) for name in (case.name, case.name.partition("/")[2]))
