"""The verdict of each rule in a case, from the journal and from what the client reports. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from mockllm.checking.outcome import Outcome
from mockllm.checking.resilience.model import FaultCase, Finding, ResiliencePolicy, Ruling
from mockllm.checking.resilience.outcomes import (
    call_not_executed,
    cause_named,
    cut_reported,
    is_whole,
    nothing_left,
    nothing_twice,
    only_last_calls,
    wrong_body,
)
from mockllm.checking.resilience.retries import (
    asked_too_early,
    different_requests,
    useless_repeats,
    waits,
)
from mockllm.replay.sessions.exchange import Exchange


def judge(
    case: FaultCase,
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


def _not_played(case: FaultCase, exchanges: Sequence[Exchange]) -> str:
    """Why the case did not happen to the client; "" where it did."""
    if not exchanges:
        return "the client sent no request to the base URL of the case"
    answered = [one for one in exchanges if one.outcome in ("played", "error")]
    if not answered:
        first = exchanges[0]
        problem = f": {first.problems[0]}" if first.problems else ""
        return f"no request of the client was answered ({first.outcome}{problem})"
    if not _breaks(case) or any(one.sent.struck is not None for one in answered):
        return ""
    missed = [exchange.fault_missed for exchange in answered if exchange.fault_missed]
    return f"a fault did not strike: {missed[0] if missed else 'the client left before'}"


def _breaks(case: FaultCase) -> bool:
    """Whether a fault is due in any answer; one of an idle connection needs a second request."""
    tries = case.scenario.turns[0].attempts
    own = [fault for attempt in tries if attempt.reply is not None for fault in attempt.reply.fault]
    return bool(case.faults) or any(fault.name != _IDLE for fault in own)


_IDLE = "keepalive-closed"
_NO_ANSWER: Ruling = ("not judged", "the client had not answered by its deadline")


@dataclass(frozen=True, slots=True)
class _Play:
    """A case that was played."""

    case: FaultCase
    exchanges: Sequence[Exchange]
    outcomes: Sequence[Outcome]
    policy: ResiliencePolicy

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
        text = f"{count} requests, and {declares} {play.tries} tries"
        return "wrong", text
    if not play.last.answered:
        return _NO_ANSWER
    if not play.last.errors and "cut-reported" in play.case.rules:
        return "not judged", "it reports no error, which cut-reported judges"
    if not play.last.errors:
        return "wrong", f"no error after {count} requests that all failed"
    return "right", ""


def _retry_after(play: _Play) -> Ruling:
    early = [text for one, two in pairwise(play.exchanges) if (text := asked_too_early(one, two))]
    long = play.case.wait > 60
    limit = play.policy.longest_wait
    if early:
        return "wrong", early[0]
    if long:
        return "right", ""
    if len(play.exchanges) > 1:
        waited = waits(play.exchanges)[0]
        if waited > 3 * play.case.wait + 5:
            text = f"the next request came after {waited:.1f} s, and {play.case.wait:g} s were said"
            return "wrong", text
        return "right", ""
    if limit is not None and limit < play.case.wait:
        return "right", ""
    return "not applicable", "it does not try again after such a status"


def _backoff(play: _Play) -> Ruling:
    """The last wait of a request is longer than its first, and each request waits differently."""
    requests = len(play.outcomes)
    if not play.last.answered:
        return _NO_ANSWER
    if len(play.exchanges) % requests:
        return "not judged", "its requests were tried a different number of times"
    size = len(play.exchanges) // requests
    if size < 2:
        return "not applicable", "it does not try again after status 503"
    each = [
        waits(play.exchanges[begin : begin + size]) for begin in range(0, len(play.exchanges), size)
    ]
    shown = "; ".join(", ".join(f"{wait:.3f}" for wait in one) for one in each)
    if all(wait < _AT_ONCE for one in each for wait in one):
        return "wrong", f"it tries again at once: after {shown} s"
    if size > 2 and all(one[-1] <= one[0] * _GROWS for one in each):
        return "wrong", f"its waits do not grow: {shown} s"
    if size == 2:  # and two random waits may be the same
        return "not judged", "it tries once more only, so no wait can grow"
    if len(each) > 1 and all(
        _equal(one, two) for pair in pairwise(each) for one, two in zip(*pair, strict=True)
    ):
        return "wrong", f"its waits are the same each time, without jitter: {shown} s"
    return "right", ""


_AT_ONCE = 0.01
"""Seconds; a wait below is none."""

_GROWS = 1.05


def _equal(one: float, two: float) -> bool:
    """Whether two waits are the same, but for the delays of a machine."""
    return abs(one - two) < 0.01 + 0.01 * one


def _no_useless_retry(play: _Play) -> Ruling:
    case = play.case
    if case.final and case.final not in play.policy.final_errors:
        return "not applicable", f"it does not declare {case.final} as final"
    repeats = [text for one, two in pairwise(play.exchanges) if (text := useless_repeats(one, two))]
    if case.final and len(play.exchanges) > 1:
        return "wrong", f"{len(play.exchanges)} requests, and {case.final} is final"
    if repeats:
        return "wrong", repeats[0]
    return "right", ""


def _same(play: _Play) -> Ruling:
    pairs = pairwise(play.exchanges)
    differences = [text for first, second in pairs if (text := different_requests(first, second))]
    if differences:
        return "wrong", differences[0]
    if len(play.exchanges) < 2:
        return "not applicable", "it does not try again"
    return "right", ""


def _stall(play: _Play) -> Ruling:
    if not play.case.faults:  # a slow stream that still moves
        gave_up = [exchange for exchange in play.exchanges if exchange.sent.client_gone]
        if play.idle_timeout < _SLOW:
            text = f"its idle timeout is {play.idle_timeout:g} s, too short for this stream"
            return "not judged", text
        if gave_up and play.last.errors:
            text = "it gave up a stream that had a word each 250 ms"
            return "wrong", f"{text}: {_first_error(play.last)}"
        if not play.last.answered:
            return _NO_ANSWER
        whole = is_whole(play.case, play.last)
        text = "" if whole else "it has not the whole answer, and did not give it up"
        return "right" if whole else "not judged", text
    if not play.policy.has_idle_timeout:
        return "wrong", "it declares that it has no idle timeout"
    if play.idle_timeout > play.case.deadline / 2:
        text = f"its idle timeout of {play.idle_timeout:g} s is longer than the case"
        return "not judged", text
    if not play.last.answered and any(exchange.sent.client_gone for exchange in play.exchanges):
        return "not judged", "it gives up streams, and had not answered at its end"
    if not play.last.answered:
        text = f"it waits on after {play.case.deadline:g} s without a byte"
        return "wrong", f"{text}; its idle timeout is {play.idle_timeout:g} s"
    if not play.last.errors:
        return "wrong", "it ends without an error, although the stream stalled"
    if late := _waited_too_long(play):
        text = f"it waits for {late:.1f} s without a byte"
        return "wrong", f"{text}; its idle timeout is {play.idle_timeout:g} s"
    return "right", ""


_SLOW = 1.0
"""Seconds; less is too near to the pauses of a slow stream that still moves."""


def _waited_too_long(play: _Play) -> float:
    """How long it waited for the next byte of a stream, where that is far above its idle timeout;
    otherwise 0."""
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
    gone = [exchange.sent.duration for exchange in play.exchanges if exchange.sent.client_gone]
    if gone and min(gone) < _SOON:
        return "right", ""
    if gone:
        text = f"its connection is open for {min(gone):.1f} s after it was cancelled"
        return "wrong", text
    if not play.last.answered:
        return "wrong", "it reads on after it was cancelled"
    return "wrong", "its connection stays open after it was cancelled"


_SOON = 5.0
"""Seconds in which a connection is to be closed; the first piece, after which the client is
cancelled, comes at once."""


def _recovers(play: _Play) -> Ruling:
    if is_whole(play.case, play.last):
        return "right", ""
    if not play.policy.retries and not _breaks(play.case):
        reason = "it declares that it does not try again, and its connection was closed"
        return "not applicable", reason
    if not play.last.answered and len(play.exchanges) < play.case.requests:
        return "not judged", "it never came to the request after the failure"
    if not play.last.answered:
        return "wrong", "the request after the failure has no answer in time"
    error = _first_error(play.last)
    text = f"the request after the failure gives {play.last.text[:80]!r}"
    return "wrong", f"{text}: {error}" if error else text


def _isolated(play: _Play) -> Ruling:
    if any(is_whole(play.case, outcome) for outcome in play.outcomes):
        return "right", ""
    if len(play.outcomes) < play.case.requests:
        return "not judged", "the runner does not report both requests"
    error = _first_error(play.last)
    return "wrong", f"the stream beside the one that failed fails, too: {error}"


def _of_outcome(
    judged: Callable[[FaultCase, Outcome], Ruling],
) -> Callable[[_Play], Ruling]:
    return lambda play: judged(play.case, play.last) if play.last.answered else _NO_ANSWER


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
    "isolated": _isolated,
    "leaves-nothing": _of_outcome(nothing_left),
}
