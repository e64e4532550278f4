"""Judges how a client takes faults: cases side by side, and accusations once more by themselves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace

from mockllm.checking.cases.case import Case
from mockllm.checking.policy import ResiliencePolicy
from mockllm.checking.resilience.outcomes import fault_of
from mockllm.checking.resilience.rule_verdicts import Finding, judge
from mockllm.checking.rules import RESILIENCE
from mockllm.conformance.case_names import Setting, check_command
from mockllm.conformance.clients.client_results import (
    AdapterFrames,
    json_value,
    rule_line,
    stream_of,
)
from mockllm.conformance.clients.http_sessions import PlayedCase
from mockllm.conformance.driver import UNWATCHED, Driver, interruption
from mockllm.conformance.results import CaseResult, Play, Results, request_log
from mockllm.core.errors import ProbeError
from mockllm.scenario.dump import dump

NO_ADAPTER = AdapterFrames("", ())

SIDE_BY_SIDE = 16
"""Cases that are played at the same time."""

_AGAIN_SIDE_BY_SIDE = 4
"""The same when they are played again: fewer, so that a busy machine delays none of them."""


def fault_case_names(case: Case) -> Iterator[str]:
    """The names by which a case can be chosen: with its API or without, and with each rule."""
    yield case.name
    yield case.name.partition("/")[2]
    yield from (f"{case.name}:{rule}" for rule in case.rules)


def check_faults(
    play: Callable[[Case], PlayedCase],
    cases: Sequence[Case],
    policy: ResiliencePolicy,
    run: Results,
    rules: Iterable[str] = RESILIENCE,
    *,
    adapter: AdapterFrames = NO_ADAPTER,
    setting: Setting | None = None,
    driver: Driver = UNWATCHED,
) -> Results:
    """Plays the cases that rules need, and judges the rules.

    A mistake counts where the client makes it again when the case is played once more, with few
    others beside it; where the two times differ, a third time by itself decides.

    Args:
        play: plays a case to the client; it is called in several threads.
        run: the results but for the cases.
        adapter: what is raised in its files is no mistake of the client.
        setting: how the client was attached, for the lines that reproduce a case.

    Raises:
        ProbeError: the client cannot be run, or sends no request in any case.
    """
    names = tuple(rules)
    chosen = [case for case in cases if set(case.rules) & set(names)]

    def judgements(played: Mapping[str, PlayedCase]) -> dict[str, Judged]:
        return {name: Judged.of(case, policy, names, adapter) for name, case in played.items()}

    with ThreadPoolExecutor(SIDE_BY_SIDE, thread_name_prefix="mockllm-fault") as pool:

        def submit(case: Case) -> Future[PlayedCase]:
            return pool.submit(play, case)

        first = driver.play(chosen, submit, SIDE_BY_SIDE)
        _check_requests(first)
        judged = judgements(first)
        accused = [case for case in chosen if case.name in judged and judged[case.name].wrong]
        second = judgements(driver.play(accused, submit, _AGAIN_SIDE_BY_SIDE, "mistakes again"))
        undecided = [
            case
            for case in accused
            if case.name in second and judged[case.name].differs(second[case.name])
        ]
        third = judgements(driver.play(undecided, submit, 1, "mistakes once more"))
    for name, judgement in second.items():
        judged[name] = judged[name].confirm(judgement, third.get(name))
    listed = [judged[case.name] for case in chosen if case.name in judged]
    return replace(
        run,
        cases=tuple(row for judgement in listed for row in _rows(judgement, setting)),
        plays={judgement.played.case.name: _play_of(judgement) for judgement in listed},
        stopped=interruption(len(listed), len(chosen)),
        settings=json_value(_settings(policy)),
    )


def _settings(policy: ResiliencePolicy) -> dict[str, object]:
    return {
        name: sorted(value) if isinstance(value, frozenset) else value
        for name, value in asdict(policy).items()
    }


def _check_requests(played: Mapping[str, PlayedCase]) -> None:
    """Checks that the client is attached at all."""
    if not played or any(attempt.exchanges for attempt in played.values()):
        return
    first = next(iter(played.values()))
    errors = [error.message for error in first.answer.outcome.errors]
    ends = f"; in {first.case.name} it ends with: {errors[0]}" if errors else ""
    raise ProbeError(
        f"the client sent no request to the base URL of any of {len(played)} cases{ends}. "
        "Have it send its requests to the base URL that it gets"
    )


@dataclass(frozen=True, slots=True)
class Judged:
    """A case and what was found in it.

    Args:
        unconfirmed: mistakes that were made the first time only.
    """

    played: PlayedCase
    findings: tuple[Finding, ...]
    unconfirmed: tuple[Finding, ...] = ()

    @classmethod
    def of(
        cls,
        played: PlayedCase,
        policy: ResiliencePolicy,
        rules: Sequence[str],
        adapter: AdapterFrames,
    ) -> Judged:
        """The findings about some rules; none is judged where the runner gave no valid answer."""
        broken = _broken_runner(played, adapter)
        if broken:
            names = (rule for rule in played.case.rules if rule in rules)
            return cls(played, tuple(Finding(rule, "not judged", broken) for rule in names))
        findings = judge(
            played.case, played.exchanges, played.answer.outcomes(late=played.late), policy
        )
        return cls(played, tuple(judgement for judgement in findings if judgement.rule in rules))

    @property
    def wrong(self) -> tuple[Finding, ...]:
        """The mistakes."""
        return tuple(finding for finding in self.findings if finding.verdict == "wrong")

    def differs(self, again: Judged) -> bool:
        """Whether other rules were broken the second time."""
        return {finding.rule for finding in self.wrong} != {finding.rule for finding in again.wrong}

    def confirm(self, second: Judged, third: Judged | None) -> Judged:
        """The verdict of most times. The log is that of the last time with all mistakes that
        count."""
        times = [self, second] if third is None else [self, second, third]
        counts = Counter(rule for time in times for rule in {found.rule for found in time.wrong})
        certain = {rule for rule, count in counts.items() if count > 1}
        shown = next(
            (time for time in reversed(times) if certain <= {found.rule for found in time.wrong}),
            second,
        )
        kept = [
            finding
            for finding in shown.findings
            if finding.verdict != "wrong" or finding.rule in certain
        ]
        once = {
            found.rule: found for time in times for found in time.wrong if found.rule not in certain
        }
        judged = {found.rule for found in kept}
        kept += [
            replace(wrong, verdict="right") for wrong in once.values() if wrong.rule not in judged
        ]
        return Judged(shown.played, tuple(kept), tuple(once.values()))


def _broken_runner(played: PlayedCase, adapter: AdapterFrames) -> str:
    """Why an answer says nothing about the client; "" if it does."""
    answer = played.answer
    if played.late:
        return ""
    if answer.invalid:
        return f"the answer of the runner is not valid: {answer.invalid}"
    raised = adapter.raised_in(answer)
    return f"the adapter raised an exception: {raised}" if raised else answer.ended


def _rows(judged: Judged, setting: Setting | None) -> Iterator[CaseResult]:
    """The lines of a results file for a case, one for each rule."""
    case = judged.played.case
    reproduce = () if setting is None else (check_command(setting, case.name),)
    once = {found.rule: found.text for found in judged.unconfirmed}
    for finding in judged.findings:
        wrong = finding.verdict == "wrong"
        yield rule_line(
            f"{case.name}:{finding.rule}",
            finding.rule,
            finding.verdict,
            (finding.text,) if wrong else (),
            reaction="either",
            reason="" if wrong else finding.text,
            reproduce=reproduce if wrong else (),
            stream=stream_of(case, "http") if wrong else None,
            unconfirmed=once.get(finding.rule, ""),
        )


def _play_of(judged: Judged) -> Play:
    """The played case, in full where the client made a mistake."""
    played = judged.played
    case = played.case
    if not (judged.wrong or judged.unconfirmed):
        return Play(fault_of(case).title)
    return Play(
        title=fault_of(case).title,
        scenario=dump(case.scenario),
        faults=fault_of(case).texts,
        log=request_log(played.exchanges),
        answer=played.answer.raw or {"crash": played.answer.ended or played.answer.invalid},
    )
