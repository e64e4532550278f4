"""Makes the contents of a results file from what the kit judged and what the client answered, and
finds the smallest stream that shows each mistake, by running the client again and again.
"""

from __future__ import annotations

import math
import re
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mockllm.checking.cases.case import Case
from mockllm.checking.judging.compare import CLEAR_ERROR, Judgement
from mockllm.checking.judging.difference import Difference
from mockllm.checking.judging.examination import Failure, Report, Result
from mockllm.checking.judging.examine import examine_outcomes
from mockllm.checking.outcome import Outcome
from mockllm.checking.policy import Policy
from mockllm.checking.reports.shrinking import shrink
from mockllm.checking.rules import RULE_COSTS, Cost, Verdict
from mockllm.conformance.case_names import Setting, check_command, show_command
from mockllm.conformance.clients.costs import (
    cost_of,
    fields_about,
    group_of,
    uncounted_verdict,
    unjudged_fields,
)
from mockllm.conformance.clients.messages import Answer, as_json
from mockllm.conformance.clients.runner import Runner
from mockllm.conformance.driver import UNWATCHED, Driver
from mockllm.conformance.results import CaseResult, QuirkInfo, Results, Smallest, Stream
from mockllm.play.quirks import find
from mockllm.scenario.dump import dump


def rule_line(
    name: str,
    rule: str,
    verdict: Verdict,
    mistakes: tuple[str, ...],
    cost: Cost | None = None,
    **fields: Any,
) -> CaseResult:
    """The line of a results file for a rule of resilience that was judged in a case.

    Args:
        cost: of the mistakes; None: that of the rule.
    """
    return CaseResult(
        case=name,
        group=rule,
        verdict=verdict,
        cost=(cost or RULE_COSTS[rule]) if mistakes else None,
        invariant=rule if mistakes else "",
        differences=mistakes,
        **fields,
    )


def client_results(
    report: Report,
    runner: Runner,
    run: Results,
    policy: Policy,
    setting: Setting,
    cases: Iterable[Case] = (),
) -> Results:
    """The results of a client, without the smallest streams (`with_smallest`).

    Args:
        run: the results but for the cases.
        cases: all that were to be run; needed for those that were not.
    """
    judging = _Judging(report, runner, run.level, policy, setting)
    rows = [*map(judging.case, (*report.results, *report.plain_forms))]
    rows += _not_run(cases, set(report.skipped), runner.answers)
    stopped = report.stopped or run.stopped
    quirks = {name: _quirk_info(name) for name in dict.fromkeys(row.quirk for row in rows) if name}
    return replace(run, cases=tuple(rows), stopped=stopped, quirks=quirks)


class _Judging:
    """One report, and the answers that it was made from."""

    def __init__(
        self, report: Report, runner: Runner, level: str, policy: Policy, setting: Setting
    ) -> None:
        self._report, self._runner, self._level = report, runner, level
        self._ignore, self._setting = policy.ignore, setting
        self._failures: dict[str, list[Failure]] = defaultdict(list)
        for failure in report.failures:
            self._failures[failure.case.name].append(failure)
        self._frames = AdapterFrames(runner.hello.client.adapter, setting.command)

    def _absent(self, case: Case) -> frozenset[str]:
        """The fields of the outcome of a case that are not judged."""
        answer = self._runner.answers[case.name]
        return self._ignore | answer.absent | self._runner.hello.unsupported

    def _not_judged(self, case: Case, judgement: Judgement) -> tuple[str, ...]:
        """The fields that were not judged; those that an error leaves out are not meant."""
        crash = any(error.crash for error in self._runner.answers[case.name].outcome.errors)
        if crash or judgement.tolerated == CLEAR_ERROR:
            ignored = self._ignore | self._runner.hello.unsupported
            return unjudged_fields(case, ignored, ())
        return unjudged_fields(case, self._absent(case), judgement.not_judged)

    def case(self, result: Result) -> CaseResult:
        """The line of a results file for one result."""
        case, judgement = result.case, result.judgement
        name = case.name
        answer = self._runner.answers[case.name]
        row = CaseResult(
            case=name,
            group=group_of(case),
            verdict=judgement.verdict,
            quirk=case.quirk,
            reaction=case.reaction,
            differences=tuple(
                dict.fromkeys(difference.description for difference in judgement.differences)
            ),
            fields=tuple(dict.fromkeys(map(outcome_field, judgement.differences))),
            exception=_exception(answer, judgement),
            reason=f"accepted: {judgement.tolerated}" if judgement.verdict == "tolerated" else "",
            not_judged=self._not_judged(case, judgement),
            expected=json_value(as_json(case.expected)),
            actual=json_value(as_json(answer.outcome, answer.absent)),
            stream=stream_of(case, self._level),
            reproduce=self._reproduce(name),
        )
        return self._with_cost(row, result, answer)

    def _with_cost(self, row: CaseResult, result: Result, answer: Answer) -> CaseResult:
        """The line with what the mistake costs, or why it costs nothing."""
        case, judgement = result.case, result.judgement
        if answer.invalid:
            return replace(row, verdict="adapter", reason=answer.invalid)
        if self._report.stopped:
            return self._of_stopped(row, case)
        if not judgement.differences:
            return _judged_or_not(row, case)
        frame = self._frames.of(answer, judgement)
        if frame:
            return replace(row, verdict="adapter", reason=_IN_ADAPTER.format(frame))
        if result.excuse:
            return replace(row, reason=f"allowed by the policy: {result.reason}")
        failures = self._failures.get(row.case, [])
        # Those that the plain form of the case does not have.
        texts = {text for failure in failures for text in failure.descriptions}
        own = [found for found in judgement.differences if found.description in texts]
        cost = cost_of(case, answer.outcome, judgement, own or judgement.differences)
        baseline = case.name if case.plain is None else case.plain.name
        # A scenario that cuts its own answer has no plain form among the cases.
        if not failures and case.plain is not None and baseline != row.case:
            reason = "the plain form of this stream gives the same mistakes"
            invariant = judgement.differences[0].invariant
            return replace(row, cost=cost, baseline=baseline, reason=reason, invariant=invariant)
        first = failures[0].invariant if failures else judgement.differences[0].invariant
        verdict, reason = uncounted_verdict(row.quirk, cost) or (row.verdict, row.reason)
        return replace(row, verdict=verdict, reason=reason, cost=cost, invariant=first)

    def _of_stopped(self, row: CaseResult, case: Case) -> CaseResult:
        """The line where streams share state: only the case that shows it is judged."""
        failures = self._failures.get(row.case, [])
        if not failures:
            return replace(row, verdict="not judged", reason=self._report.stopped)
        return replace(
            row,
            verdict="wrong",
            cost="wrong call" if case.expected.tool_calls else "data lost",
            invariant=failures[0].invariant,
            differences=failures[0].descriptions,
            fields=("tool_calls",),
        )

    def _reproduce(self, name: str) -> tuple[str, ...]:
        lines = [check_command(self._setting, name)] if self._setting.command else []
        return (*lines, show_command(self._setting, name))


_IN_ADAPTER = (
    "{} raised it, which is in the adapter and not in the client; where the client is in that "
    'file, too, name another file as "adapter" in the first answer of the runner'
)


def _judged_or_not(row: CaseResult, case: Case) -> CaseResult:
    about = fields_about(case)
    if not about or not set(about) <= set(row.not_judged):
        return row
    reason = f"{' and '.join(about)} cannot be compared: the client has no place for it"
    return replace(row, verdict="not judged", reason=reason)


_FIELDS = {
    **dict.fromkeys(("crash", "error_message", "unreported"), "errors"),
    **dict.fromkeys(("chunk", "raw_arguments"), "tool_calls"),
}


def outcome_field(difference: Difference) -> str:
    """The field of the outcome that a difference is about."""
    name = difference.subject.partition(".")[0]
    return _FIELDS.get(name, name)


def _exception(answer: Answer, judgement: Judgement) -> str:
    """The client's own error, whole, with the place that raised it."""
    if judgement.exception or not judgement.differences or not answer.outcome.errors:
        return judgement.exception
    return str(answer.outcome.errors[0])


def _not_run(
    cases: Iterable[Case], skipped: Collection[str], answers: Collection[str]
) -> Iterator[CaseResult]:
    for case in cases:
        reason = "it shows in bytes only, and the client was given decoded events"
        if case.name not in skipped:
            reason = "the client gave no answer to it"
        if case.name in skipped or case.name not in answers:
            yield CaseResult(case.name, group_of(case), "not judged", case.quirk, reason=reason)


def stream_of(case: Case, level: str) -> Stream:
    """The stream as it was sent: at the level of bytes the client's reads, else the server's
    writes."""
    answer = case.answer
    writes = case.chunks if level == "bytes" else answer.data
    times = answer.times if len(writes) == len(answer.times) and any(answer.times) else ()
    return Stream(writes, times, answer.headers, answer.ending, answer.status)


def json_value(value: Any) -> Any:
    """A value as JSON can hold it: what is none, such as NaN, as text."""
    if isinstance(value, Mapping):
        return {str(key): json_value(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [json_value(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    known = value is None or isinstance(value, str | int | float)
    return value if known else repr(value)


def _quirk_info(name: str) -> QuirkInfo:
    quirk, variant = find(name)
    prose = quirk.prose
    return QuirkInfo(
        prose.title,
        prose.variants[variant.name],
        prose.servers,
        prose.sources,
        prose.correct,
        prose.faults,
    )


class AdapterFrames:
    """The files of an adapter.

    Args:
        adapter: as the runner names it in its first answer; "" if it does not.
        command: of the runner. Its files count where the runner names no adapter.
    """

    def __init__(self, adapter: str, command: Sequence[str]) -> None:
        words = adapter.split() if adapter else [name for name in command if Path(name).is_file()]
        self._files = {_base_name(word) for word in words}

    def of(self, answer: Answer, judgement: Judgement) -> str:
        """The innermost frame of the exception that makes a case fail, if it is in the adapter."""
        if not any(difference.field in ("crash", "errors") for difference in judgement.differences):
            return ""
        return self.raised_in(answer)

    def raised_in(self, answer: Answer) -> str:
        """The innermost frame of the exception of an answer, if it is in the adapter."""
        first = next((error.raised for error in answer.outcome.errors if error.raised), "")
        file = _base_name(re.split(r":\d+", first)[0])
        return first if file and file in self._files else ""


def _base_name(path: str) -> str:
    return re.split(r"[\\/]", path)[-1]


_LIMIT = 10.0
"""Seconds that the search for one smallest stream may take."""


def with_smallest(
    results: Results,
    report: Report,
    runner: Runner,
    policy: Policy,
    driver: Driver = UNWATCHED,
) -> Results:
    """The results, with the smallest stream for the first case of each broken invariant: the
    smallest one that was found in `_LIMIT` seconds."""
    failed = {case.case for case in results.cases if case.failed}
    smallest: dict[str, Smallest] = {}
    broken = report.broken().values()
    for number, failures in enumerate(broken):
        first = next((failure for failure in failures if failure.case.name in failed), None)
        if first is not None and first.case.name not in smallest:
            driver.progress("smallest streams", number, len(broken))
            until = time.monotonic() + _LIMIT
            smallest[first.case.name] = _smallest(first, runner, policy, results.level, until)
    cases = tuple(replace(case, smallest=smallest.get(case.case)) for case in results.cases)
    return replace(results, cases=cases)


def _smallest(
    failure: Failure, runner: Runner, policy: Policy, level: str, until: float
) -> Smallest:
    """The smallest case that fails in the same way; none runs too late."""
    # A list of cases that may fail is about those cases, not about smaller ones.
    policy = replace(policy, allow={})

    def reply(case: Case) -> tuple[Outcome, frozenset[str]]:
        answer = runner.answer(case)
        return answer.outcome, answer.absent | runner.hello.unsupported

    def breaks(case: Case) -> bool:
        if (level == "payloads" and case.events is None) or time.monotonic() > until:
            return False
        failures = examine_outcomes(reply, [case], policy).failures
        return any(shown.invariant == failure.invariant for shown in failures)

    case = shrink(failure.case, breaks)
    answer = runner.answer(case)
    return Smallest(
        stream_of(case, level),
        dump(replace(case.scenario, apis=(case.api,))),
        json_value(as_json(case.expected)),
        json_value(as_json(answer.outcome, answer.absent)),
    )
