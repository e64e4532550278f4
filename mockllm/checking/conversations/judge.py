"""Judges a client's conversations by the requests in the journal of a session.

A violation is reported only if no correct client could have sent these requests. What a journal
cannot show, such as what a client did with a result, is not judged.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from mockllm.checking.conversations.call_results import mistakes
from mockllm.checking.conversations.invariants import (
    CONVERSATION_INVARIANTS,
    JudgedSession,
    Violation,
)
from mockllm.checking.conversations.session_history import SessionHistory
from mockllm.errors import UsageError
from mockllm.replay.session import Session
from mockllm.scenario.model import Scenario

__all__ = ["CONVERSATION_INVARIANTS", "Verification", "Violation", "verify"]


@dataclass(frozen=True, slots=True)
class Verification:
    """The result for one session.

    Args:
        violations: in the order of the requests that show them.
        unplayed: the turns that were not played, of scenarios that were begun: name and index.
        unmatched: the numbers of the requests that no scenario matched.
        invalid: the numbers of the requests that were rejected.
    """

    violations: tuple[Violation, ...] = ()
    unplayed: tuple[tuple[str, int], ...] = ()
    unmatched: tuple[int, ...] = ()
    invalid: tuple[int, ...] = ()

    @property
    def good(self) -> bool:
        """Whether there is nothing to report."""
        return not (self.violations or self.unplayed or self.unmatched or self.invalid)

    def as_json(self) -> dict[str, Any]:
        """The JSON value that the control route sends; turns count from 0."""
        return {
            "good": self.good,
            "violations": [
                {"invariant": one.invariant, "exchange": one.exchange, "message": one.message}
                for one in self.violations
            ],
            "unplayed": [{"scenario": name, "turn": index} for name, index in self.unplayed],
            "unmatched": list(self.unmatched),
            "invalid": list(self.invalid),
        }


def verify(
    session: Session,
    scenarios: Mapping[str, Scenario],
    *,
    depth: int = 50,
    leave_out: frozenset[str] = frozenset(),
) -> Verification:
    """Judges the conversations of a session.

    Args:
        scenarios: those that were served, by name.
        depth: how many requests in a row a client may make for a model that never stops
            calling tools.
        leave_out: names of invariants that are not judged.

    Raises:
        UsageError: a name in `leave_out` is not the name of an invariant.
    """
    for name in sorted(leave_out - CONVERSATION_INVARIANTS.keys()):
        near = get_close_matches(name, CONVERSATION_INVARIANTS, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        names = ", ".join(CONVERSATION_INVARIANTS)
        raise UsageError(f"there is no conversation invariant {name!r}.{hint} There are: {names}")
    journal = tuple(session.journal)
    history = SessionHistory(journal, scenarios)
    found = [mistake for step in history.steps for mistake in mistakes(step, history)]
    judged = JudgedSession(journal, history, depth, found)
    apis = {exchange.number: exchange.api for exchange in journal}
    # An invariant that is left out is judged, too: otherwise its violations would be attributed to
    # `request-valid`, which judges only the requests without a violation.
    violations: dict[Hashable, Violation] = {}
    for name, judge in CONVERSATION_INVARIANTS.items():
        for location, violation in judge(judged):
            judged.reported.add(violation.exchange or 0)
            key = (name, apis.get(violation.exchange or 0), location, violation.message)
            violations.setdefault(key, violation)
    kept = [one for one in violations.values() if one.invariant not in leave_out]
    return Verification(
        tuple(sorted(kept, key=lambda one: one.exchange or 0)),
        tuple(session.unplayed(scenarios)),
        tuple(one.number for one in journal if one.outcome == "unmatched"),
        tuple(one.number for one in journal if one.outcome == "invalid"),
    )
