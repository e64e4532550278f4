"""Judges a client's conversations by the requests in the journal of a session.

A violation is reported only if no correct client could have sent these requests. What a journal
cannot show, such as what a client did with a result, is not judged.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from mockllm.checking.conversations.invariants import JUDGES, ON_REQUEST, REMARKS
from mockllm.checking.conversations.retries import RETRY_RULES, maybe_counted
from mockllm.checking.conversations.session_history import JudgedSession, SessionHistory, Violation
from mockllm.checking.rules import CONVERSATION_INVARIANTS
from mockllm.core.errors import RequestError, UsageError
from mockllm.core.jsontext import parse_object
from mockllm.core.text import did_you_mean, quantity
from mockllm.play.replay.sessions.exchange import Exchange
from mockllm.play.replay.sessions.session import Session
from mockllm.scenario.model import Scenario
from mockllm.wire.protocols import PROTOCOLS

_NAMES = (*CONVERSATION_INVARIANTS, *RETRY_RULES)

_OF_ONE_REQUEST = frozenset(("depth-bounded", "request-valid"))
"""The invariants that one request breaks by itself, whatever came before it."""


@dataclass(frozen=True, slots=True)
class Verification:
    """The result for one session.

    Args:
        violations: in the order of the requests that show them.
        remarks: what may be a mistake, and is none of the verdict (`REMARKS`).
        unplayed: the turns that were not played, of scenarios that were begun: name and index.
        unmatched: the numbers of the requests that no scenario matched, unknown routes included.
        invalid: the numbers of the requests that were rejected.
        not_judged: the numbers of the requests whose body was too large to be kept.
        missed_faults: the numbers of the requests whose answer had a fault that did not strike.
        dropped: how many entries the journal has dropped; the verdict covers them.
        forgotten: how many of these the verdict does not cover.
        evicted: whether the server dropped an earlier session of this name, with all it knew.
        failed: the numbers of the requests that mockllm could not answer, because of a mistake of
            its own; no option allows them.
        gaps: why requests may be missing that other server processes answered.
        maybe_counted: the numbers of the requests that were refused because a state store was away,
            and which it may have counted all the same, so that an answer may have been left out.
        doubtful: what would be in the first four lists if no request were missing. A missing one
            may be its cause.
    """

    violations: tuple[Violation, ...] = ()
    remarks: tuple[Violation, ...] = ()
    unplayed: tuple[tuple[str, int], ...] = ()
    unmatched: tuple[int, ...] = ()
    invalid: tuple[int, ...] = ()
    failed: tuple[int, ...] = ()
    not_judged: tuple[int, ...] = ()
    missed_faults: tuple[int, ...] = ()
    dropped: int = 0
    forgotten: int = 0
    evicted: bool = False
    gaps: tuple[str, ...] = ()
    maybe_counted: tuple[int, ...] = ()
    doubtful: tuple[str, ...] = ()

    @property
    def good(self) -> bool:
        """Whether all requests were judged, and there is nothing to report."""
        return self.verdict == "good"

    @property
    def verdict(self) -> Literal["good", "bad", "unknown"]:
        """`bad` if there is anything to report; `unknown` if there is not, and some requests
        could not be judged, may be missing, had a fault that did not strike, or may have been
        counted although they were refused."""
        if self.violations or self.unplayed or self.unmatched or self.invalid or self.failed:
            return "bad"
        known = not (self.evicted or self.forgotten or self.not_judged or self.gaps)
        played = not (self.missed_faults or self.maybe_counted)
        return "good" if known and played else "unknown"

    def as_json(self) -> dict[str, Any]:
        """The JSON value that the control route sends; turns count from 0."""
        values = {slot.name: getattr(self, slot.name) for slot in fields(self)}
        for name in ("doubtful", "maybe_counted"):
            if not values[name]:
                del values[name]
        return {
            "good": self.good,
            "verdict": self.verdict,
            **{
                name: list(value) if isinstance(value, tuple) else value
                for name, value in values.items()
            },
            "violations": [violation.as_json() for violation in self.violations],
            "remarks": [remark.as_json() for remark in self.remarks],
            "unplayed": [{"scenario": name, "turn": index} for name, index in self.unplayed],
        }


def why_unknown(verification: Verification) -> Iterator[str]:
    """Why a verdict does not cover all requests of its session, a sentence for each reason. A fault
    that did not strike is none: that request was judged."""
    if verification.evicted:
        yield "it was dropped once, as there were too many; its earlier requests are not judged"
    if verification.forgotten:
        requests = quantity(verification.forgotten, "request")
        yield f"its first {requests} exceeded its memory; not judged"
    if verification.not_judged:
        numbers = ", ".join(map(str, verification.not_judged))
        yield f"too large to be kept and judged: request {numbers}"
    for gap in verification.gaps:
        yield f"requests may be missing: {gap}"
    if verification.maybe_counted:
        numbers = ", ".join(map(str, verification.maybe_counted))
        yield (
            "the state store may have counted a request that was refused because it was away, so "
            f"an answer of the scenario may have been left out: request {numbers}"
        )
    for what in verification.doubtful:
        yield f"a request that is missing may be the cause: {what}"


def check_names(names: Iterable[str]) -> None:
    """Checks that each name is that of a conversation invariant."""
    for name in sorted(set(names) - set(_NAMES)):
        hint = did_you_mean(name, _NAMES, f"there are: {', '.join(_NAMES)}")
        raise UsageError(f"there is no conversation invariant {name!r}; {hint}")


def verify(
    session: Session,
    scenarios: Mapping[str, Scenario],
    *,
    depth: int = 50,
    leave_out: frozenset[str] = frozenset(),
    once: bool = False,
    require: frozenset[str] = frozenset(),
    allow_unplayed: bool = False,
) -> Verification:
    """Judges the conversations of a session.

    Args:
        depth: how many requests in a row a client may make for a model that never stops
            calling tools.
        leave_out: names of invariants that are not judged.
        once: whether each answer may be requested only once; short for `extra-request` in
            `require`.
        require: names of invariants that are not judged otherwise (`ON_REQUEST`).
        allow_unplayed: whether turns of scenarios that were begun may remain without a request.

    Raises:
        UsageError: a name in `leave_out` or `require` is not the name of an invariant.
    """
    check_names(leave_out | require)
    required = require | {"extra-request"} if once else require
    journal = tuple(session.exchanges())
    judged = JudgedSession(journal, SessionHistory(journal, scenarios), depth)
    remarked = REMARKS - required
    shown = [
        violation
        for violation in _each_once(judged, ON_REQUEST - REMARKS - required, remarked)
        if violation.invariant not in leave_out
    ]

    def numbers(*outcomes: str) -> tuple[int, ...]:
        return tuple(entry.number for entry in journal if entry.outcome in outcomes)

    return _without_doubtful(
        Verification(
            tuple(violation for violation in shown if violation.invariant not in remarked),
            remarks=tuple(violation for violation in shown if violation.invariant in remarked),
            unplayed=() if allow_unplayed else tuple(session.unplayed_turns(scenarios)),
            unmatched=numbers("unmatched", "unknown route"),
            invalid=numbers("invalid"),
            failed=numbers("failed"),
            not_judged=tuple(entry.number for entry in journal if _is_not_judged(entry)),
            missed_faults=tuple(entry.number for entry in journal if entry.fault_missed),
            dropped=session.dropped,
            forgotten=session.forgotten,
            evicted=session.evicted,
            gaps=session.gaps,
            maybe_counted=tuple(entry.number for entry in maybe_counted(journal, scenarios)),
        ),
        frozenset(entry.number for entry in journal if _may_need_another(entry)),
    )


def _each_once(
    judged: JudgedSession, ignored: Collection[str], remarked: Collection[str]
) -> list[Violation]:
    """The violations in the order of their requests, equal ones at one location once.

    An invariant that the caller leaves out is judged, too: otherwise its violations would be
    attributed to `request-valid`, which judges only the requests without a violation.

    Args:
        ignored: the invariants that are not judged.
        remarked: those whose violations are remarks.
    """
    apis = {exchange.number: exchange.played.api for exchange in judged.journal}
    violations: dict[Hashable, Violation] = {}
    for violation in (violation for judge in JUDGES for violation in judge(judged)):
        name, number = violation.invariant, violation.exchange
        if name in ignored:
            continue
        if name not in remarked:
            judged.reported.add(number)
        key = (name, apis.get(number), violation.location, violation.message)
        violations.setdefault(key, violation)
    order = _NAMES.index
    return sorted(
        violations.values(), key=lambda violation: (violation.exchange, order(violation.invariant))
    )


def _without_doubtful(found: Verification, needing: Collection[int]) -> Verification:
    """The result without what may have its cause in a request of which nothing is known.

    Args:
        needing: the requests that are refused where an earlier answer is not known.
    """
    missing = bool(found.evicted or found.forgotten or found.gaps)
    if not (missing or found.not_judged):
        return found
    certain = [
        violation for violation in found.violations if violation.invariant in _OF_ONE_REQUEST
    ]
    unplayed = () if missing else found.unplayed
    doubtful = [
        str(violation)
        for violation in found.violations
        if violation.invariant not in _OF_ONE_REQUEST
    ]
    if missing:
        doubtful += [f"turn {index + 1} of {name} was not played" for name, index in found.unplayed]
    for what, numbers in (("was not matched", found.unmatched), ("was refused", found.invalid)):
        doubtful += [f"request {number} {what}" for number in numbers if number in needing]
    return replace(
        found,
        violations=tuple(certain),
        unplayed=unplayed,
        unmatched=tuple(number for number in found.unmatched if number not in needing),
        invalid=tuple(number for number in found.invalid if number not in needing),
        doubtful=tuple(doubtful),
    )


def _may_need_another(exchange: Exchange) -> bool:
    """Whether the API of a request stores answers, so that it may refer to one."""
    protocol = PROTOCOLS.get(exchange.played.api or "")
    return protocol is not None and protocol.stored is not None


def _is_not_judged(exchange: Exchange) -> bool:
    """Whether too little is kept of a request for an answer to judge it."""
    if exchange.body_size is None or exchange.received.target is None:
        return False
    try:
        parse_object(exchange.body)
    except RequestError:
        return True
    return False
