"""`--http --faults`: how a whole client takes faults."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import cast

from mockllm.checking.resilience.cases import fault_cases
from mockllm.checking.resilience.model import FaultCase
from mockllm.checking.rules import RESILIENCE
from mockllm.cli.check.options import CheckOptions
from mockllm.cli.check.plan import Interruptible, Plan, chosen, empty_results
from mockllm.cli.terminal.progress import ProgressLine
from mockllm.conformance.attachments.http_clients import HttpClients, fault_limit
from mockllm.conformance.attachments.process import Program
from mockllm.conformance.attachments.runner import Runner
from mockllm.conformance.fault_check import check_faults, fault_results
from mockllm.conformance.measured import AdapterFrames
from mockllm.conformance.results import Results
from mockllm.core.text import did_you_mean
from mockllm.errors import UsageError
from mockllm.server.options import ServerOptions


def plan_faults(options: CheckOptions) -> Plan:
    """The plan of a run with `--faults`."""
    rules = _rules(options.rules)
    listed = fault_cases(options.api)
    cases = [one for one in listed if set(one.rules) & set(rules)]
    cases = chosen(cases, options.only, _forms, "case")
    if options.rules:
        _check_judged(rules, cases)
    if options.limit is not None:
        cases = [replace(planned, deadline=options.limit) for planned in cases]

    def attach() -> Runner:
        program = Program(command=options.command, limit=fault_limit(cases), jobs=options.jobs)
        served = ServerOptions(grace=0)
        return Runner(HttpClients(program, options.api, options=served, per_case=options.per_case))

    def judge(runner: Runner, line: ProgressLine, interrupted: Interruptible) -> Results:
        policy = runner.hello.resilience
        check = check_faults(
            cast("HttpClients", runner.attachment),
            cases,
            policy,
            rules,
            adapter=AdapterFrames(runner.hello.client.adapter, options.command),
            setting=options.setting,
            progress=line,
            goes_on=lambda: not interrupted.happened,
        )
        return fault_results(check, empty_results(options, runner.hello), policy)

    names = tuple(f"{case.name}:{rule}" for case in listed for rule in case.rules)
    return Plan(names, attach, judge)


def _rules(names: Sequence[str]) -> tuple[str, ...]:
    """The rules of these names; all of them for none."""
    for name in names:
        if name not in RESILIENCE:
            hint = did_you_mean(name, RESILIENCE, f"there are: {', '.join(RESILIENCE)}")
            raise UsageError(f"--rule {name}: there is no such rule; {hint}")
    return tuple(name for name in RESILIENCE if not names or name in names)


def _check_judged(rules: Sequence[str], cases: Sequence[FaultCase]) -> None:
    """Checks that each rule can be judged."""
    for rule in rules:
        if not any(rule in case.rules for case in cases):
            raise UsageError(
                f"--rule {rule}: none of the cases that --only names can judge it; leave out --only"
            )


def _forms(case: FaultCase) -> Iterator[str]:
    """The name of a case, with its API or without, and with each of its rules."""
    yield case.name
    yield case.name.partition("/")[2]
    yield from (f"{case.name}:{rule}" for rule in case.rules)
