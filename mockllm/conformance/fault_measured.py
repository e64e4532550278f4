"""Makes the contents of a results file from what a check with faults found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from mockllm.checking.resilience.policy import ResiliencePolicy
from mockllm.conformance.fault_check import FaultCheck
from mockllm.conformance.fault_results import RULE_GROUP, FaultCaseResult, RuleResult
from mockllm.conformance.measured import Measurement, json_value
from mockllm.conformance.messages import Hello
from mockllm.conformance.results import CaseResult, Results

__all__ = ["fault_results", "rule_rows"]


def fault_results(
    check: FaultCheck, hello: Hello, measurement: Measurement, policy: ResiliencePolicy
) -> Results:
    """The results of a client."""
    return Results(
        client=hello.client,
        api=measurement.api,
        level="http",
        mockllm=measurement.mockllm,
        date=measurement.date,
        commit=measurement.commit,
        arguments=json_value(measurement.arguments),
        unsupported=tuple(sorted(hello.unsupported)),
        stopped=check.stopped,
        rules=check.rules,
        faults=check.cases,
        settings=json_value(_plain(asdict(policy))),
    )


def rule_rows(results: Results) -> tuple[CaseResult, ...]:
    """The rules in the form of cases, `API/RULE`, for lists of known mistakes and for JUnit."""
    cases = {one.case: one for one in results.faults}
    return tuple(_rule_row(one, results.api, cases) for one in results.rules)


def _rule_row(rule: RuleResult, api: str, cases: Mapping[str, FaultCaseResult]) -> CaseResult:
    row = CaseResult(f"{api}/{rule.rule}", RULE_GROUP, "not judged", reason=rule.reason)
    if rule.verdict == "right":
        return replace(row, verdict="right")
    if rule.verdict == "not applicable":
        return replace(row, reason=f"does not apply: {rule.reason}")
    if rule.verdict == "not judged":
        return row
    accused = [cases[name] for name in rule.cases]
    texts = [
        f"{case.case}: {one.text}"
        for case in accused
        for one in case.wrong
        if one.rule == rule.rule
    ]
    # Every mistake needs a cost to count; that of a rule is not shown.
    return replace(
        row,
        verdict="wrong",
        cost="data lost",
        differences=tuple(texts),
        reproduce=accused[0].reproduce,
    )


def _plain(settings: dict[str, Any]) -> dict[str, Any]:
    return {
        name: sorted(value) if isinstance(value, frozenset) else value
        for name, value in settings.items()
    }
