"""Judges how a client takes faults: cases side by side, and accusations once more by themselves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from typing import Protocol

from mockllm.checking.resilience.judge import judge
from mockllm.checking.resilience.model import RULES, FaultCase, Finding, Verdict
from mockllm.checking.resilience.policy import ResiliencePolicy
from mockllm.conformance.adapter_frames import AdapterFrames
from mockllm.conformance.commands import Setting, check_command
from mockllm.conformance.fault_outcomes import outcomes_of
from mockllm.conformance.fault_results import Accusation, FaultCaseResult, RuleResult, RuleVerdict
from mockllm.conformance.fault_runner import Played
from mockllm.conformance.fault_sessions import logged
from mockllm.errors import ProbeError
from mockllm.scenario.dump import dump

__all__ = ["SIDE_BY_SIDE", "CasePlayer", "FaultCheck", "Judged", "check_faults"]

NO_ADAPTER = AdapterFrames("", ())

SIDE_BY_SIDE = 16
"""Cases that are played at the same time."""

_AGAIN_SIDE_BY_SIDE = 4
"""The same when they are played again: fewer, so that a busy machine delays none of them."""

Progress = Callable[[str, int, int], None]


class CasePlayer(Protocol):
    """What plays cases to a client; `play` is called in several threads."""

    def play(self, case: FaultCase) -> Played: ...


@dataclass(frozen=True, slots=True)
class FaultCheck:
    """How a client takes faults.

    Args:
        stopped: why the remaining cases were not judged; "" if all were.
    """

    rules: tuple[RuleResult, ...]
    cases: tuple[FaultCaseResult, ...]
    stopped: str = ""


def check_faults(
    player: CasePlayer,
    cases: Sequence[FaultCase],
    policy: ResiliencePolicy,
    rules: Iterable[str] = RULES,
    *,
    adapter: AdapterFrames = NO_ADAPTER,
    setting: Setting | None = None,
    progress: Progress | None = None,
    goes_on: Callable[[], bool] = lambda: True,
) -> FaultCheck:
    """Plays the cases that rules need, and judges the rules.

    A mistake counts where the client makes it again when the case is played once more, with few
    others beside it; where the two times differ, a third time by itself decides.

    Args:
        rules: the names of those that are judged.
        adapter: what is raised in its files is no mistake of the client.
        setting: how the client was attached, for the lines that reproduce a case.
        progress: called with what is done, how much of it, and of how much.
        goes_on: called before each case; once it is false, no further case is played.

    Raises:
        ProbeError: the client cannot be run, or sends no request in any case.
    """
    wanted = tuple(rules)
    chosen = [one for one in cases if set(one.rules) & set(wanted)]
    first = _play(player, chosen, SIDE_BY_SIDE, "cases", progress, goes_on)
    _check_requests(first)
    judged = {name: Judged.of(one, policy, wanted, adapter) for name, one in first.items()}
    accused = [one for one in chosen if one.name in judged and judged[one.name].wrong]
    again = _play(player, accused, _AGAIN_SIDE_BY_SIDE, "mistakes again", progress, goes_on)
    second = {name: Judged.of(one, policy, wanted, adapter) for name, one in again.items()}
    open_ = [
        one for one in accused if one.name in second and judged[one.name].differs(second[one.name])
    ]
    last = _play(player, open_, 1, "mistakes once more", progress, goes_on)
    for name, one in second.items():
        third = Judged.of(last[name], policy, wanted, adapter) if name in last else None
        judged[name] = judged[name].confirmed(one, third)
    rows = [_row(judged[one.name], setting) for one in chosen if one.name in judged]
    missing = len(chosen) - len(rows)
    stopped = f"interrupted after {len(rows)} of {len(chosen)} cases" if missing else ""
    return FaultCheck(tuple(_rules(wanted, rows, judged)), tuple(rows), stopped)


def _check_requests(played: Mapping[str, Played]) -> None:
    """Checks that the client is attached at all.

    Raises:
        ProbeError: it sent no request in any case.
    """
    if not played or any(one.exchanges for one in played.values()):
        return
    first = next(iter(played.values()))
    errors = [one.message for one in first.answer.outcome.errors]
    ends = f"; in {first.case.name} it ends with: {errors[0]}" if errors else ""
    raise ProbeError(
        f"the client sent no request to the base URL of any of {len(played)} cases{ends}. "
        "Have it send its requests to the base URL that it gets"
    )


def _play(
    player: CasePlayer,
    cases: Sequence[FaultCase],
    side_by_side: int,
    what: str,
    progress: Progress | None,
    goes_on: Callable[[], bool],
) -> dict[str, Played]:
    """The cases that were played, by name."""
    found: dict[str, Played] = {}

    def play(case: FaultCase) -> Played | None:
        return player.play(case) if goes_on() else None

    with ThreadPoolExecutor(side_by_side, thread_name_prefix="mockllm-fault") as pool:
        futures = [pool.submit(play, case) for case in cases]
        try:
            for done in as_completed(futures):
                played = done.result()
                if played is not None:
                    found[played.case.name] = played
                if progress is not None:
                    progress(what, len(found), len(cases))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return found


@dataclass(frozen=True, slots=True)
class Judged:
    """A case and what was found in it.

    Args:
        unconfirmed: mistakes that were made the first time only.
    """

    played: Played
    findings: tuple[Finding, ...]
    unconfirmed: tuple[Finding, ...] = ()

    @classmethod
    def of(
        cls,
        played: Played,
        policy: ResiliencePolicy,
        rules: Sequence[str],
        adapter: AdapterFrames,
    ) -> Judged:
        """The findings about some rules; none is judged where the runner gave no valid answer."""
        broken = _broken_runner(played, adapter)
        if broken:
            names = (rule for rule in played.case.rules if rule in rules)
            return cls(played, tuple(Finding(rule, "not judged", broken) for rule in names))
        found = judge(
            played.case, played.exchanges, outcomes_of(played.answer, late=played.late), policy
        )
        return cls(played, tuple(one for one in found if one.rule in rules))

    @property
    def wrong(self) -> tuple[Finding, ...]:
        """The mistakes."""
        return tuple(one for one in self.findings if one.verdict == "wrong")

    def differs(self, again: Judged) -> bool:
        """Whether other rules were broken the second time."""
        return {one.rule for one in self.wrong} != {one.rule for one in again.wrong}

    def confirmed(self, second: Judged, third: Judged | None) -> Judged:
        """What most times say. The log is that of the last time with all mistakes that count."""
        times = [self, second] if third is None else [self, second, third]
        counts = Counter(rule for one in times for rule in {found.rule for found in one.wrong})
        certain = {rule for rule, count in counts.items() if count > 1}
        shown = next(
            (one for one in reversed(times) if certain <= {found.rule for found in one.wrong}),
            second,
        )
        kept = [one for one in shown.findings if one.verdict != "wrong" or one.rule in certain]
        once = {
            found.rule: found for one in times for found in one.wrong if found.rule not in certain
        }
        judged = {found.rule for found in kept}
        kept += [replace(one, verdict="right") for one in once.values() if one.rule not in judged]
        return Judged(shown.played, tuple(kept), tuple(once.values()))


def _broken_runner(played: Played, adapter: AdapterFrames) -> str:
    """Why an answer says nothing about the client; "" if it does."""
    answer = played.answer
    if played.late:
        return ""
    if answer.invalid:
        return f"the answer of the runner is not valid: {answer.invalid}"
    raised = adapter.raised_in(answer)
    return f"the adapter raised an exception: {raised}" if raised else answer.ended


def _row(judged: Judged, setting: Setting | None) -> FaultCaseResult:
    """The line of a results file for a case."""
    played = judged.played
    case = played.case
    found = FaultCaseResult(
        case=case.name,
        about=case.about,
        rules=tuple(
            dict.fromkeys(one.rule for one in judged.findings if one.verdict in ("right", "wrong"))
        ),
        wrong=tuple(Accusation(one.rule, one.text) for one in judged.wrong),
        not_judged={one.rule: one.text for one in judged.findings if one.verdict == "not judged"},
        unconfirmed=tuple(Accusation(one.rule, one.text) for one in judged.unconfirmed),
    )
    if not (judged.wrong or judged.unconfirmed):
        return found
    return replace(
        found,
        scenario=dump(case.scenario),
        faults=tuple(case.faults),
        log=logged(played.exchanges),
        actual=played.answer.fault.raw or {"crash": played.answer.ended or played.answer.invalid},
        reproduce=() if setting is None else (check_command(setting, case.name),),
    )


def _rules(
    wanted: Sequence[str], rows: Sequence[FaultCaseResult], judged: Mapping[str, Judged]
) -> Iterator[RuleResult]:
    """The verdict of each rule over all cases."""
    for rule in wanted:
        found = [one for two in judged.values() for one in two.findings if one.rule == rule]
        verdicts = Counter(one.verdict for one in found)
        wrong = [row for row in rows if any(one.rule == rule for one in row.wrong)]
        verdict = _verdict(verdicts)
        reasons = Counter(one.text for one in found if one.verdict == verdict)
        yield RuleResult(
            rule,
            verdict,
            RULES[rule],
            "" if verdict in ("right", "wrong") else _reason(reasons),
            verdicts["right"] + verdicts["wrong"],
            len(wrong),
            verdicts["not judged"],
            tuple(row.case for row in wrong),
        )


def _verdict(cases: Counter[Verdict]) -> RuleVerdict:
    """The verdict of a rule by those of its cases. One mistake breaks it. It is kept where it was
    judged in at least half of the cases: a few easy ones say little of the others."""
    if cases["wrong"]:
        return "wrong"
    if cases["right"] and cases["right"] >= cases["not judged"]:
        return "right"
    return "not applicable" if cases["not applicable"] and not cases["not judged"] else "not judged"


def _reason(reasons: Counter[str]) -> str:
    if not reasons:
        return "no case was played for it"
    (first, count), more = reasons.most_common(1)[0], len(reasons) - 1
    cases = f" ({count} cases)" if count > 1 else ""
    return f"{first}{cases}" + (f", and {more} other reasons" if more else "")
