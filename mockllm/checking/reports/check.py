"""`check`, which a test calls to check an accumulator; the text of a report, with the files that
reproduce a failure: a scenario that plays the same bytes, and a short test.

It reads scenario files, and writes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import fields, replace
from os import PathLike
from pathlib import Path
from typing import Any

from mockllm.checking.cases.case import Case, Level
from mockllm.checking.cases.compile import cases
from mockllm.checking.judging.examination import Failure, Report
from mockllm.checking.judging.examine import examine
from mockllm.checking.judging.running import Factory
from mockllm.checking.policy import Policy
from mockllm.checking.reports.shrinking import TRIES, shrink
from mockllm.checking.reports.stream_text import format_stream
from mockllm.core.text import quantity
from mockllm.play.replay.loading import load, shipped_scenarios
from mockllm.scenario.dump import dump
from mockllm.scenario.model import Scenario


def reproduction(
    failure: Failure,
    client: Callable[..., Any],
    *,
    level: Level = "payloads",
    policy: Policy | None = None,
) -> dict[str, str]:
    """The two files that reproduce a failure, a scenario and a test: their texts by their names.

    Args:
        client: the function or class that makes the probe.
    """
    case = failure.shrunk or failure.case
    module, name = client.__module__, client.__qualname__
    stem = re.sub(r"[^a-z0-9]+", "-", f"{failure.invariant} {case.name}".lower()).strip("-")[:80]
    # The scenario keeps its name: the ids in the stream are derived from it.
    scenario = replace(case.scenario, apis=(case.api,))
    argument = _policy_argument(policy)
    names = "check, Policy" if argument else "check"
    test_name = f"test_{stem.replace('-', '_')}"
    test = (
        f"from pathlib import Path\n\n"
        f"import {module}\n"
        f"from mockllm.checking import {names}\n\n\n"
        f"def {test_name}():\n"
        f'    file = Path(__file__).with_name("{stem}.yaml")\n'
        f'    check({module}.{name}, file, api="{case.api}", level="{level}"{argument})\n'
    )
    return {f"{stem}.yaml": dump(scenario), f"{test_name}.py": test}


def _policy_argument(policy: Policy | None) -> str:
    """The policy as source code of an argument; empty for the default policy."""
    if policy is None or policy == Policy():
        return ""
    arguments = []
    for field in fields(policy):
        value = getattr(policy, field.name)
        if value != getattr(Policy(), field.name):
            source = f"frozenset({sorted(value)})" if isinstance(value, frozenset) else repr(value)
            arguments.append(f"{field.name}={source}")
    return f", policy=Policy({', '.join(arguments)})"


_OF_BODIES = "stream-equals-body"
"""Its failures are of answers that are not streamed: no stream shows them."""

Scenarios = str | PathLike[str] | Scenario | Iterable[str | PathLike[str] | Scenario]


def check(
    client: Factory,
    scenarios: Scenarios | None = None,
    *,
    api: str,
    level: Level = "payloads",
    policy: Policy | None = None,
    variations: int = 0,
    quirks: bool = False,
    seed: str = "0",
) -> Report:
    """Runs an accumulator through the cases of scenarios; the report, if all of them pass.

    Args:
        client: makes a new probe (`Probe`, or `ByteProbe` with `level="bytes"`) for each stream.
        scenarios: files, folders or scenarios; default: those that come with mockllm.
        variations: how many further ways of cutting each answer, drawn from `seed`.
        quirks: also run the quirks of the protocol.

    Raises:
        AssertionError: a case failed; the message names each broken invariant, with the smallest
            stream found that shows it.
        ScenarioError: a file cannot be loaded; with every problem in it.
        UsageError: there is no such API.
    """
    found = cases(
        api,
        scenarios_of(scenarios),
        variations=variations,
        quirks=quirks,
        seed=seed,
        level=level,
    )
    report = examine(client, found, policy, level=level)
    if not report.good:
        small = shrunk(report, lambda some: examine(client, some, policy, level=level))
        raise AssertionError(report_text(small, client, level=level, policy=policy))
    return report


def scenarios_of(given: Scenarios | None) -> tuple[Scenario, ...]:
    """The scenarios of files, folders and scenarios; for None, those that come with mockllm."""
    if given is None:
        return load([shipped_scenarios()])
    several = [given] if isinstance(given, str | PathLike | Scenario) else list(given)
    found: list[Scenario] = []
    for source in several:
        found += [source] if isinstance(source, Scenario) else load([Path(source)])
    return tuple(found)


def shrunk(
    report: Report, examine_cases: Callable[[Iterable[Case]], Report], *, tries: int = TRIES
) -> Report:
    """The report, with the first failure of each invariant shrunk to the smallest case found.

    Args:
        examine_cases: runs the same client through other cases.
    """
    failures: list[Failure] = []
    for invariant, (first, *rest) in report.broken().items():

        def same(case: Case, invariant: str = invariant) -> Failure | None:
            found = examine_cases([case]).failures
            return next((failure for failure in found if failure.invariant == invariant), None)

        if invariant == _OF_BODIES:
            failures += [first, *rest]
            continue
        small = shrink(first.case, lambda case: same(case) is not None, tries=tries)
        smaller = None if small is first.case else same(small)
        failures += [replace(smaller or first, case=first.case, shrunk=small), *rest]
    return replace(report, failures=tuple(failures))


def report_text(
    report: Report,
    client: Factory | None = None,
    *,
    level: Level = "payloads",
    policy: Policy | None = None,
) -> str:
    """A report as text: each broken invariant, with the case, the stream and how to reproduce it.

    Args:
        client: for the files that reproduce a failure; without it they are left out.
        level, policy: how the client was examined, for these files.
    """
    broken = report.broken()
    if not broken:
        return "\n".join([f"{report.runs} cases, none is wrong", *summary(report)])
    are = "invariants are" if len(broken) > 1 else "invariant is"
    lines = [f"{report.runs} cases; {len(broken)} {are} broken: {', '.join(broken)}"]
    first = next((some[0].exception for some in broken.values() if some[0].exception), "")
    if first:
        lines.insert(0, first)
    lines += summary(report)
    for failures in broken.values():
        lines += ["", *_failure_lines(failures, client, level, policy)]
    return "\n".join(lines)


def summary(report: Report) -> list[str]:
    """The counts of a report: the verdicts, what was not judged, and the excuses, one line each."""
    verdicts = ", ".join(f"{count} {name}" for name, count in report.verdicts.items())
    lines = [f"  verdicts: {verdicts}"] if verdicts else []
    fields = ", ".join(f"{name} ({count})" for name, count in sorted(report.not_judged.items()))
    if fields:
        lines.append(f"  not judged, with the number of cases: {fields}")
    if report.skipped:
        lines.append(f"  not judged: {len(report.skipped)} cases that show in bytes only")
    if report.stopped:
        lines.append(f"  not judged: the other cases, since {report.stopped}")
    reasons = {result.excuse: result.reason for result in report.excused}
    for name, reason in reasons.items():
        count = sum(result.excuse == name for result in report.excused)
        lines.append(f"  excused: {name} ({count} cases): {reason}")
    lines += [f"  the excuse for {name} is not needed: all are right" for name in report.needless]
    return lines


def _failure_lines(
    failures: list[Failure], client: Factory | None, level: Level, policy: Policy | None
) -> list[str]:
    first = failures[0]
    small = first.shrunk or first.case
    lines = str(first).splitlines()
    others = len(failures) - 1
    if others:
        lines.append(f"  and {quantity(others, 'more case')}")
    lines.append("  the smallest stream that shows it:" if first.shrunk else "  the stream:")
    lines += [f"    {line}" for line in format_stream(small, level, first.at).splitlines()]
    if client is not None and first.invariant != _OF_BODIES:
        scenario, test = reproduction(first, client, level=level, policy=policy).items()
        for what, (name, text) in (("to play it again,", scenario), ("and", test)):
            lines.append(f"  {what} {name}:")
            lines += [f"    {line}" for line in text.splitlines()]
    return lines
