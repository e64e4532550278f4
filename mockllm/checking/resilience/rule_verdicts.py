"""The verdict of each rule in a case, from the journal and from what the client reports. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from mockllm.checking.cases.case import Case, CaseFault
from mockllm.checking.outcome import Outcome
from mockllm.checking.policy import ResiliencePolicy
from mockllm.checking.resilience.outcomes import (
    GROWS,
    RIGHT,
    Ruling,
    asked_too_early,
    call_not_executed,
    cause_named,
    cut_reported,
    different_requests,
    fault_of,
    is_whole,
    nothing_left,
    nothing_twice,
    only_last_calls,
    ruling,
    useless_repeats,
    waits,
    wrong_body,
)
from mockllm.checking.rules import RULE_COSTS, Cost, Verdict
from mockllm.play.replay.sessions.exchange import Exchange


@dataclass(frozen=True, slots=True)
class Finding:
    """A rule in a case.

    Args:
        cost: of a mistake, where it is not that of the rule.
    """

    rule: str
    verdict: Verdict
    text: str = ""
    cost: Cost | None = None

    @property
    def costs(self) -> Cost:
        """The cost of a mistake."""
        return self.cost or RULE_COSTS[self.rule]


def judge(
    case: Case,
    exchanges: Sequence[Exchange],
    outcomes: Sequence[Outcome],
    policy: ResiliencePolicy,
) -> list[Finding]:
    """The findings of a case, one for each rule of it.

    Args:
        outcomes: what it has after each request of its user, in their order; at least one.
    """
    # Other requests, such as for a list of models, are no tries.
    tries = [exchange for exchange in exchanges if exchange.outcome != "unknown route"]
    reason = _not_played(case, exchanges)
    play = _Play(case, tries, outcomes, policy)
    found: list[Finding] = []
    for rule in case.rules:
        if reason and (rule != "leaves-nothing" or not tries):
            found.append(Finding(rule, "not judged", reason))
        else:
            found.append(Finding(rule, *_RULES[rule](play)))
    return found


def _not_played(case: Case, exchanges: Sequence[Exchange]) -> str:
    """Why the case did not happen to the client; "" where it did."""
    if not exchanges:
        return "the client sent no request to the base URL of the case"
    answered = [entry for entry in exchanges if entry.outcome in ("played", "error")]
    if not answered:
        first = exchanges[0]
        problem = f": {first.problems[0]}" if first.problems else ""
        return f"no request of the client was answered ({first.outcome}{problem})"
    if not _breaks(case) or any(exchange.sent.struck is not None for exchange in answered):
        return ""
    missed = [exchange.fault_missed for exchange in answered if exchange.fault_missed]
    return f"a fault did not strike: {missed[0] if missed else 'the client left before'}"


def _breaks(case: Case) -> bool:
    """Whether a fault is due in any answer; one of an idle connection needs a second request."""
    tries = case.scenario.turns[0].attempts
    own = [fault for attempt in tries for fault in attempt.fault]
    return bool(fault_of(case).texts) or any(fault.name != _IDLE for fault in own)


_IDLE = "keepalive-closed"


@dataclass(frozen=True, slots=True)
class _Play:
    """A case that was played."""

    case: Case
    exchanges: Sequence[Exchange]
    outcomes: Sequence[Outcome]
    policy: ResiliencePolicy

    @property
    def fault(self) -> CaseFault:
        return fault_of(self.case)

    @property
    def last(self) -> Outcome:
        return self.outcomes[-1]

    @property
    def tries(self) -> int:
        return self.case.tries if self.policy.tries is None else self.policy.tries

    @property
    def idle_timeout(self) -> float:
        idle = self.policy.idle_timeout
        return self.case.idle_timeout if idle is None else idle


def _retry_bounded(play: _Play) -> Ruling:
    count = len(play.exchanges)
    if count > play.tries * play.case.requests:
        declares = "it is set to" if play.policy.tries is None else "it declares"
        return ruling("too-many-requests", count=count, declares=declares, tries=play.tries)
    if not play.last.answered:
        return ruling("no-answer")
    if play.last.errors:
        return RIGHT
    if "cut-reported" in play.case.rules:
        return ruling("no-error-yet")
    return ruling("no-error-after-tries", count=count)


def _retry_after(play: _Play) -> Ruling:
    early = [text for one, two in pairwise(play.exchanges) if (text := asked_too_early(one, two))]
    limit, said = play.policy.longest_wait, play.fault.wait
    if early:
        return ruling("too-early", text=early[0])
    if said > 60:  # no case lasts as long: to give up and to wait on are both right
        return RIGHT
    if len(play.exchanges) > 1:
        waited = waits(play.exchanges)[0]
        late = waited > 3 * said + 5
        return ruling("too-late", waited=waited, said=said) if late else RIGHT
    gives_up = limit is not None and limit < said
    return RIGHT if gives_up else ruling("no-second-try-after-status")


def _backoff(play: _Play) -> Ruling:
    """The last wait of a request is longer than its first, and each request waits differently."""
    requests = len(play.outcomes)
    if not play.last.answered:
        return ruling("no-answer")
    if len(play.exchanges) % requests:
        return ruling("uneven-tries")
    size = len(play.exchanges) // requests
    if size < 2:
        return ruling("no-second-try-after-503")
    each = [
        waits(play.exchanges[begin : begin + size]) for begin in range(0, len(play.exchanges), size)
    ]
    shown = "; ".join(", ".join(f"{wait:.3f}" for wait in series) for series in each)
    if all(wait < _AT_ONCE for series in each for wait in series):
        return ruling("at-once", shown=shown)
    if size > 2 and all(series[-1] <= series[0] * GROWS for series in each):
        return ruling("waits-stay", shown=shown)
    if size == 2:  # and two random waits may be the same
        return ruling("one-wait")
    if len(each) > 1 and all(
        _equal(one, two) for pair in pairwise(each) for one, two in zip(*pair, strict=True)
    ):
        return ruling("same-waits", shown=shown)
    return RIGHT


_AT_ONCE = 0.01
"""Seconds; a wait below is none."""


def _equal(one: float, two: float) -> bool:
    """Whether two waits are the same, but for the delays of a machine."""
    return abs(one - two) < 0.01 + 0.01 * one


def _no_useless_retry(play: _Play) -> Ruling:
    final, count = play.fault.final, len(play.exchanges)
    if final and final not in play.policy.final_errors:
        return ruling("not-declared-final", final=final)
    if final and count > 1:
        return ruling("final-repeated", count=count, final=final)
    repeats = [text for one, two in pairwise(play.exchanges) if (text := useless_repeats(one, two))]
    return ("wrong", repeats[0]) if repeats else RIGHT


def _same(play: _Play) -> Ruling:
    pairs = pairwise(play.exchanges)
    differences = [text for first, second in pairs if (text := different_requests(first, second))]
    if differences:
        return "wrong", differences[0]
    return RIGHT if len(play.exchanges) > 1 else ruling("no-second-try")


def _stall(play: _Play) -> Ruling:
    gave_up = any(exchange.sent.client_gone for exchange in play.exchanges)
    timeout, last = play.idle_timeout, play.last
    if not play.fault.texts:  # a slow stream that still moves
        if timeout < _SLOW:
            return ruling("timeout-too-short", timeout=timeout)
        if gave_up and last.errors:
            return ruling("gave-up-slow-stream", error=_first_error(last))
        if not last.answered:
            return ruling("no-answer")
        return RIGHT if is_whole(play.case, last) else ruling("slow-stream-not-whole")
    deadline, late = play.case.deadline, _waited_too_long(play)
    if not play.policy.has_idle_timeout:
        return ruling("no-idle-timeout")
    if timeout > deadline / 2:
        return ruling("timeout-too-long", timeout=timeout)
    if not last.answered and gave_up:
        return ruling("gives-up-unanswered")
    if not last.answered:
        return ruling("waits-on", deadline=deadline, timeout=timeout)
    if not last.errors:
        return ruling("stall-unreported")
    return ruling("waits-too-long", waited=late, timeout=timeout) if late else RIGHT


_SLOW = 1.0
"""Seconds; less is too near to the pauses of a slow stream that still moves."""


def _waited_too_long(play: _Play) -> float:
    """The time that it waited for the next byte of a stream, where that is far above its idle
    timeout; otherwise 0."""
    waited = [
        exchange.sent.duration - exchange.sent.struck
        for exchange in play.exchanges
        if exchange.sent.client_gone and exchange.sent.struck is not None
    ]
    longest = max(waited, default=0.0)
    return longest if longest > 2 * play.idle_timeout + 2 else 0.0


def _first_error(outcome: Outcome) -> str:
    return outcome.errors[0].message[:120] if outcome.errors else ""


def _cancel(play: _Play) -> Ruling:
    if play.case.cancel not in play.policy.cancel:
        return ruling("no-such-cancel")
    gone = [exchange.sent.duration for exchange in play.exchanges if exchange.sent.client_gone]
    if gone:
        return RIGHT if min(gone) < _SOON else ruling("closes-late", seconds=min(gone))
    return ruling("stays-open" if play.last.answered else "reads-on")


_SOON = 5.0
"""Seconds in which a connection is to be closed; the first piece, after which the client is
cancelled, comes at once."""


def _recovers(play: _Play) -> Ruling:
    if is_whole(play.case, play.last):
        return RIGHT
    if not play.policy.retries and not _breaks(play.case):
        return ruling("no-retries-declared")
    if not play.last.answered:
        came = len(play.exchanges) >= play.case.requests
        return ruling("next-unanswered" if came else "never-came")
    error = _first_error(play.last)
    return ruling("next-fails", text=play.last.text[:80], error=f": {error}" if error else "")


def _isolation(play: _Play) -> Ruling:
    if any(is_whole(play.case, outcome) for outcome in play.outcomes):
        return RIGHT
    if len(play.outcomes) < play.case.requests:
        return ruling("one-outcome")
    return ruling("other-stream-fails", error=_first_error(play.last))


def _of_outcome(
    judged: Callable[[Case, Outcome], Ruling],
) -> Callable[[_Play], Ruling]:
    return lambda play: judged(play.case, play.last) if play.last.answered else ruling("no-answer")


_RULES: dict[str, Callable[[_Play], Ruling]] = {
    "cut-reported": _of_outcome(cut_reported),
    "cut-call-not-executed": _of_outcome(call_not_executed),
    "wrong-body-reported": _of_outcome(wrong_body),
    "no-duplicate-output": _of_outcome(nothing_twice),
    "no-phantom-call": _of_outcome(only_last_calls),
    "retry-bounded": _retry_bounded,
    "retry-after-honoured": _retry_after,
    "backoff-grows": _backoff,
    "no-retry-where-useless": _no_useless_retry,
    "retry-same": _same,
    "stall-times-out": _stall,
    "cancel-closes": _cancel,
    "error-names-cause": _of_outcome(cause_named),
    "recovers": _recovers,
    "isolated": _isolation,
    "leaves-nothing": _of_outcome(nothing_left),
}
