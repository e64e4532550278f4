"""Judges a client's conversations by the requests in the journal of a session.

A violation is reported only if no correct client could have sent these requests. What a journal
cannot show, such as what a client did with a result, is not judged.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import replace
from itertools import chain

from mockllm.checking.conversations.invariants import JUDGES, ON_REQUEST, REMARKS
from mockllm.checking.conversations.mcp.executed_calls import ExecutedCall, executed_calls
from mockllm.checking.conversations.mcp.operations import traffic_of
from mockllm.checking.conversations.retries import RETRY_RULES, maybe_counted
from mockllm.checking.conversations.session_history import JudgedSession, SessionHistory, Violation
from mockllm.checking.conversations.unplayed import missing_turns
from mockllm.checking.conversations.verification import (
    NO_REQUESTS,
    SessionMistake,
    Verification,
    request_mistakes,
)
from mockllm.checking.rules import CONVERSATION_INVARIANTS
from mockllm.core.errors import RequestError, UsageError
from mockllm.core.jsontext import parse_object
from mockllm.core.text import did_you_mean
from mockllm.play.replay.sessions.exchange import Exchange
from mockllm.play.replay.sessions.session import Session
from mockllm.scenario.model import Scenario
from mockllm.wire.protocols import PROTOCOLS

_NAMES = (*CONVERSATION_INVARIANTS, *RETRY_RULES)

_OF_ONE_REQUEST = frozenset(
    {"depth-bounded", "request-valid", "message-known", "one-response", "sound-in-turn"}
    | {"truncation-heard", "turn-repeated"}
)
"""The invariants that one request breaks by itself, whatever came before it."""


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
    allow_no_requests: bool = False,
    must_begin: Iterable[str] = (),
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
        allow_no_requests: whether it is right that no request came.
        must_begin: the names of scenarios that must have been begun, unless that is allowed.

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

    found = [
        SessionMistake("violations", str(violation), violation.exchange, subject=violation)
        for violation in shown
        if violation.invariant not in remarked
    ]
    found += chain.from_iterable(map(request_mistakes, journal))
    asked = session.count - session.outcomes()["auxiliary"]
    if not (asked or session.evicted or session.gaps):
        found += () if allow_no_requests else (NO_REQUESTS,)
    elif not allow_unplayed:
        found += missing_turns(session, scenarios, must_begin)
    return _without_doubtful(
        Verification(
            tuple(found),
            remarks=tuple(violation for violation in shown if violation.invariant in remarked),
            not_judged=tuple(entry.number for entry in journal if _is_not_judged(entry)),
            dropped=session.dropped,
            forgotten=session.forgotten,
            evicted=session.evicted,
            gaps=session.gaps,
            maybe_counted=tuple(entry.number for entry in maybe_counted(journal, scenarios)),
            calls=_calls(session, judged),
        ),
        frozenset(entry.number for entry in journal if _may_need_another(entry)),
    )


def calls_of(session: Session, scenarios: Mapping[str, Scenario]) -> tuple[ExecutedCall, ...]:
    """The calls of the model in a session that operations of MCP servers executed."""
    journal = tuple(session.exchanges())
    if not any(entry.played.mcp for entry in journal):
        return ()
    return _calls(session, JudgedSession(journal, SessionHistory(journal, scenarios), 0))


def _calls(session: Session, judged: JudgedSession) -> tuple[ExecutedCall, ...]:
    if session.evicted or session.forgotten or session.gaps:
        return ()  # an operation may be of a call that is missing
    if any(_is_not_judged(entry) for entry in judged.journal):
        return ()
    return tuple(executed_calls(traffic_of(judged)))


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


def _without_doubtful(found: Verification, needing: Collection[float]) -> Verification:
    """The result without what may have its cause in a request of which nothing is known.

    Args:
        needing: the requests that are refused where an earlier answer is not known.
    """
    missing = bool(found.evicted or found.forgotten or found.gaps)
    if not (missing or found.not_judged):
        return found

    certain: list[SessionMistake] = []
    doubtful: list[SessionMistake] = []
    for mistake in found.certain:
        may_be_explained = (
            (mistake.kind == "violations" and mistake.rule not in _OF_ONE_REQUEST)
            or (mistake.kind == "unplayed" and missing)
            or (mistake.kind in ("unmatched", "invalid") and mistake.number in needing)
        )
        (doubtful if may_be_explained else certain).append(mistake)
    return replace(
        found, certain=tuple(certain), doubtful=tuple(mistake.text for mistake in doubtful)
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
