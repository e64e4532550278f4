"""The sources of cases: streams as real servers send them, streams that are cut, and faults."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import cast

from mockllm.checking.cases.case import Case
from mockllm.checking.cases.compile import cases, plain_forms
from mockllm.checking.resilience.cases import fault_cases
from mockllm.checking.rules import RESILIENCE
from mockllm.cli.check.options import CheckOptions
from mockllm.cli.check.plan import Plan, attach_client, empty_results
from mockllm.cli.options.parameters import read_scenarios
from mockllm.cli.terminal.output import echo
from mockllm.conformance.case_names import choose
from mockllm.conformance.clients.client_results import AdapterFrames, client_results, with_smallest
from mockllm.conformance.clients.fault_check import check_faults, fault_case_names
from mockllm.conformance.clients.http_clients import HttpClients, fault_limit
from mockllm.conformance.clients.process import Program
from mockllm.conformance.clients.runner import AnswerFile, Runner, write_cases
from mockllm.conformance.cuts import cut_answers, cut_results, line_names, planned_cuts
from mockllm.conformance.driver import Driver, interruption
from mockllm.conformance.results import Results
from mockllm.core.errors import UsageError
from mockllm.core.text import did_you_mean
from mockllm.serve.server.options import ServerOptions


def plan_of(options: CheckOptions) -> Plan:
    """The plan of a run."""
    if options.faults:
        return _plan_faults(options)
    return _plan_cuts(options) if options.cuts else _plan_streams(options)


def _plan_streams(options: CheckOptions) -> Plan:
    listed = _all_cases(options)
    run = _chosen_cases(listed, options.only)

    def attach() -> Runner:
        if options.judge is not None:
            return Runner(AnswerFile(options.judge, run, options.level))
        return attach_client(options)

    names = (case.name for case in (*listed, *plain_forms(listed)))
    return Plan(tuple(names), attach, partial(_judge, options, run))


def emit(options: CheckOptions, path: Path) -> None:
    """Writes the cases to a file."""
    run = _chosen_cases(_all_cases(options), options.only)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as stream:
        count, unseen = write_cases(run, options.api, options.level, stream)
    echo(f"{count} cases in {path}; judge the answers with --judge and the same arguments")
    if unseen:
        echo(f"{len(unseen)} cases show in bytes only and are left out")


def _all_cases(options: CheckOptions) -> list[Case]:
    """The cases of the scenarios, whether they are chosen or not."""
    return list(
        cases(
            options.api,
            read_scenarios(options.paths),
            variations=options.variations,
            quirks=not options.no_quirks,
            seed=options.seed,
            level=options.level,
        )
    )


def _chosen_cases(listed: Sequence[Case], patterns: Sequence[str]) -> list[Case]:
    """The cases that any pattern names: the case, its quirk, or its quirk with the variant."""
    forms = plain_forms(listed) if patterns else []
    return choose([*forms, *listed], patterns, _names, "case or quirk")


def _names(case: Case) -> Iterator[str]:
    name, quirk = case.name, case.quirk
    yield from filter(None, (name, name.partition("/")[2], quirk, quirk.partition(":")[0]))


def _judge(options: CheckOptions, run: Sequence[Case], runner: Runner, driver: Driver) -> Results:
    file, given, stopped = runner.attachment, run, ""
    if isinstance(file, AnswerFile) and file.missing:
        given = [case for case in run if case.name in file.answers]
        stopped = f"the file has no answer to {len(file.missing)} cases"
    report = runner.examine(given, options.policy, driver)
    interrupted = not driver.goes_on()
    if interrupted:
        stopped = interruption(len(report.results), len(run))
    empty = empty_results(options, runner.hello, stopped)
    cases = () if interrupted else run
    results = client_results(report, runner, empty, options.policy, options.setting, cases)
    if options.no_shrink or options.judge is not None or interrupted:
        return results
    return with_smallest(results, report, runner, options.policy, driver)


# `--cuts`: streams that are cut at every place


def _plan_cuts(options: CheckOptions) -> Plan:
    level = options.measured_level
    scenarios = read_scenarios(options.paths) if options.paths else ()
    listed = list(planned_cuts(options.api, level, scenarios))
    prefixes = [case for case in listed if case.rules]
    run = set(map(id, choose(prefixes, options.only, _cut_forms, "sample, place or rule")))
    # The whole streams show what a client reads at all.
    cases = [case for case in listed if not case.rules or id(case) in run]

    def judge(runner: Runner, driver: Driver) -> Results:
        answers = cut_answers(runner, cases, options.command, driver)
        results = cut_results(empty_results(options, runner.hello), answers, options.setting)
        stopped = "" if driver.goes_on() else "interrupted before the last prefix"
        named = (case for case in results.cases if _is_named(case.case, options.only))
        return replace(results, cases=tuple(named), stopped=stopped)

    names = dict.fromkeys(name for case in prefixes for name in line_names(case))
    return Plan(tuple(names), partial(attach_client, options), judge)


def _is_named(line: str, patterns: Sequence[str]) -> bool:
    return not patterns or any(
        fnmatchcase(form, pattern) for form in _forms_of(line) for pattern in patterns
    )


def _cut_forms(case: Case) -> Iterator[str]:
    return (form for name in line_names(case) for form in _forms_of(name))


def _forms_of(name: str) -> tuple[str, ...]:
    """The line, its place, and its sample, with its API or without."""
    sample = name.partition("@")[0]
    return name, name.rpartition(":")[0], sample, sample.partition("/")[2]


# `--http --faults`: how a whole client takes faults


def _plan_faults(options: CheckOptions) -> Plan:
    rules = _rules(options.rules)
    listed = fault_cases(options.api)
    cases = [case for case in listed if set(case.rules) & set(rules)]
    cases = choose(cases, options.only, fault_case_names, "case")
    if options.rules:
        _check_judged(rules, cases)
    if options.limit is not None:
        cases = [replace(case, deadline=options.limit) for case in cases]

    def attach() -> Runner:
        program = Program(command=options.command, limit=fault_limit(cases), jobs=options.jobs)
        served = ServerOptions(grace=0)
        return Runner(HttpClients(program, options.api, options=served, per_case=options.per_case))

    def judge(runner: Runner, driver: Driver) -> Results:
        return check_faults(
            cast("HttpClients", runner.attachment).play,
            cases,
            runner.hello.resilience,
            empty_results(options, runner.hello),
            rules,
            adapter=AdapterFrames(runner.hello.client.adapter, options.command),
            setting=options.setting,
            driver=driver,
        )

    names = tuple(f"{case.name}:{rule}" for case in listed for rule in case.rules)
    return Plan(names, attach, judge)


def _rules(names: Sequence[str]) -> tuple[str, ...]:
    """The rules of these names; all of them for none."""
    for name in names:
        if name not in RESILIENCE:
            hint = did_you_mean(name, RESILIENCE, f"there are: {', '.join(RESILIENCE)}")
            raise UsageError(f"--rule {name}: there is no such rule; {hint}")
    return tuple(name for name in RESILIENCE if not names or name in names)


def _check_judged(rules: Sequence[str], cases: Sequence[Case]) -> None:
    """Checks that each rule can be judged."""
    for rule in rules:
        if not any(rule in case.rules for case in cases):
            raise UsageError(
                f"--rule {rule}: none of the cases that --only names can judge it; leave out --only"
            )
