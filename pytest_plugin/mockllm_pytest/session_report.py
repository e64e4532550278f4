"""The verdict on the session of a test: which mistakes its marker allows, and which marker would
allow the others.

Nothing here depends on pytest, except for the marker that a verdict suggests.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mockllm.checking.conversations.journal_text import format_exchanges
from mockllm.checking.conversations.judge import verify
from mockllm.checking.conversations.verification import SessionMistake, each_once
from mockllm.checking.rules import CONVERSATION_INVARIANTS
from mockllm.core.text import printable_lines
from mockllm.play.replay.sessions.session import Session
from mockllm.scenario.model import Scenario
from mockllm_pytest.marks import Allowed, MockllmMark

_CHANGED = "request-unchanged"


@dataclass(frozen=True, slots=True)
class SessionReport:
    """Whether a test's requests were correct.

    Args:
        mistakes: what was not correct, in the order of the requests.
        exchanges: all exchanges as text.
        allow: the marker that would allow the mistakes.
        hints: lines about other ways out, such as the commands that record the test again.
        remarks: what may be a mistake, and is none of the verdict.
        changed: which requests were others than were recorded, remarks or mistakes.
    """

    mistakes: tuple[str, ...]
    exchanges: str
    allow: str
    hints: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()

    @property
    def good(self) -> bool:
        """Whether there are no mistakes."""
        return not self.mistakes

    def __str__(self) -> str:
        first, *more = self.mistakes
        lines = [f"mockllm: {first}", "", self.exchanges, ""]
        if more:
            lines += [f"Also: {more[0]}", *(f"      {mistake}" for mistake in more[1:]), ""]
        lines += [*self.hints, f"To allow it: {self.allow}"]
        return printable_lines("\n".join(lines))


def judge(
    session: Session,
    scenarios: Mapping[str, Scenario],
    required: Sequence[str],
    mark: MockllmMark,
    allowed: Allowed,
) -> SessionReport:
    """The report of a session.

    Args:
        scenarios: those that were served, by name.
        required: the names of the scenarios that must be played.
        mark: the marker of the test, for the suggestion.
        allowed: the mistakes that are allowed.
    """
    every = allowed.violations is True
    leave_out = frozenset(CONVERSATION_INVARIANTS) if every else allowed.violations
    assert not isinstance(leave_out, bool)
    verification = verify(
        session,
        scenarios,
        depth=allowed.depth,
        leave_out=leave_out,
        once=not allowed.extra_requests,
        require=allowed.require,
        allow_unplayed=allowed.unplayed,
        allow_no_requests=allowed.no_requests,
        must_begin=required,
    )
    shown = (*verification.violations, *verification.remarks)
    changed = tuple(
        f"request {violation.exchange}: {violation.message}"
        for violation in shown
        if violation.invariant == _CHANGED
    )
    remarks = tuple(str(remark) for remark in verification.remarks if remark.invariant != _CHANGED)
    mistakes = (*verification.mistakes, *_not_passed_on(session))
    kept = sorted(
        (wrong for wrong in mistakes if getattr(allowed, _argument(wrong), False) is not True),
        key=lambda mistake: mistake.number,
    )
    if not kept:
        return SessionReport((), "", "", remarks=remarks, changed=changed)
    return SessionReport(
        tuple(mistake.text for mistake in each_once((mistake, "") for mistake in kept)),
        format_exchanges(session.name, list(session.journal), scenarios),
        _marker(mark, kept),
        remarks=remarks,
        changed=changed,
    )


def _argument(mistake: SessionMistake) -> str:
    """The argument of the marker that allows a mistake; none has the name `failed` or
    `unopened`."""
    if mistake.rule == "extra-request":
        return "extra_requests"
    return {"unknown": "violations", "missed_faults": "unplayed"}.get(mistake.kind, mistake.kind)


def _not_passed_on(session: Session) -> Iterator[SessionMistake]:
    """The requests of a test that is recorded which no service got."""
    for exchange in session.exchanges():
        if exchange.outcome == "error" and exchange.played.cause == "service":
            text = f"request {exchange.number} was not passed on: {'; '.join(exchange.problems)}"
            yield SessionMistake("unmatched", text, exchange.number)


def _marker(mark: MockllmMark, mistakes: Sequence[SessionMistake]) -> str:
    """The marker of the test, with arguments that allow the mistakes."""
    keywords = dict(mark.given)
    broken = {mistake.rule for mistake in mistakes if _argument(mistake) == "violations"}
    if "" in broken:
        keywords["violations"] = True
    elif broken:
        before = mark.allowed.violations
        names = set() if isinstance(before, bool) else set(before)
        keywords["violations"] = tuple(sorted(names | broken))
    for mistake in mistakes:
        argument = _argument(mistake)
        if argument not in ("violations", "failed", "unopened"):
            keywords[argument] = True
    words = [repr(name) for name in mark.names]
    words += [f"{name}={value!r}" for name, value in keywords.items()]
    return f"@pytest.mark.mockllm({', '.join(words)})".replace("'", '"')
