"""The smallest stream that shows each mistake of a client, found by running it again and again."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from mockllm.checking.cases.case import Case
from mockllm.checking.judging.examine import examine_outcomes
from mockllm.checking.judging.report import Failure, Report
from mockllm.checking.outcome import Outcome
from mockllm.checking.policy import Policy
from mockllm.checking.reports.shrinking import shrink
from mockllm.conformance.attachments.messages import answer_json
from mockllm.conformance.attachments.outcome_json import as_json
from mockllm.conformance.case_names import name_of
from mockllm.conformance.measured import AnsweredCases, json_value, stream_of
from mockllm.conformance.results import Results, Smallest
from mockllm.scenario.dump import dump

LIMIT = 10.0
"""Seconds that the search for one smallest stream may take."""


def with_smallest(
    results: Results,
    report: Report,
    runner: AnsweredCases,
    policy: Policy,
    *,
    limit: float = LIMIT,
    progress: Callable[[str], None] = lambda _: None,
) -> Results:
    """The results, with the smallest stream for the first case of each broken invariant.

    Args:
        limit: seconds for each; what was found until then is the result.
    """
    failed = {case.case for case in results.cases if case.failed}
    found: dict[str, Smallest] = {}
    for invariant, failures in report.broken().items():
        first = next((failure for failure in failures if name_of(failure.case) in failed), None)
        if first is not None and name_of(first.case) not in found:
            progress(invariant)
            until = time.monotonic() + limit
            found[name_of(first.case)] = _smallest(first, runner, policy, results.level, until)
    cases = tuple(replace(case, smallest=found.get(case.case)) for case in results.cases)
    return replace(results, cases=cases)


def _smallest(
    failure: Failure, runner: AnsweredCases, policy: Policy, level: str, until: float
) -> Smallest:
    """The smallest case that fails in the same way; each runs once, and none too late."""
    # A list of cases that may fail is about those cases, not about smaller ones.
    policy = replace(policy, allow={})
    known: dict[str, bool] = {}

    def reply(case: Case) -> tuple[Outcome, frozenset[str]]:
        answer = runner.answer(case)
        return answer.outcome, answer.absent | runner.hello.unsupported

    def breaks(case: Case) -> bool:
        key = f"{case.variation} {case.quirk} {case.scenario!r}"
        late = time.monotonic() > until
        if (level == "payloads" and case.events is None) or (key not in known and late):
            return False
        if key not in known:
            failures = examine_outcomes(reply, [case], policy).failures
            known[key] = any(shown.invariant == failure.invariant for shown in failures)
        return known[key]

    case = shrink(failure.case, breaks)
    return Smallest(
        stream_of(case, level),
        dump(replace(case.scenario, apis=(case.api,))),
        json_value(as_json(case.expected)),
        json_value(answer_json(runner.answer(case))),
    )
