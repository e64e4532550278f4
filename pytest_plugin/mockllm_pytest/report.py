"""The verdict on the session of a test.

Nothing here depends on pytest, except for the marker that a verdict suggests.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mockllm.checking.conversations.judge import Verification, verify
from mockllm.checking.rules import CONVERSATION_INVARIANTS
from mockllm.replay.sessions.session import Session
from mockllm.scenario.model import Scenario
from mockllm_pytest.exchanges import format_exchanges
from mockllm_pytest.marks import Allowed, Mark
from mockllm_pytest.replies import is_inline


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a test's requests were correct.

    Args:
        mistakes: what was not correct, in the order of the requests.
        exchanges: all exchanges as text.
        allow: the marker that would allow the mistakes.
        hints: lines about other ways out, such as the commands that record the test again.
    """

    mistakes: tuple[str, ...]
    exchanges: str
    allow: str
    hints: tuple[str, ...] = ()

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
        return "\n".join(lines)


_REFUSED = {
    "failed": "could not be answered",
    "unmatched": "matches nothing",
    "invalid": "was refused",
}
"""Fields of a verification with numbers of requests; a marker cannot allow the first one."""


@dataclass(frozen=True, slots=True)
class _Mistake:
    """One mistake, and the argument of the marker that would allow it.

    Args:
        number: of the request; infinite for a turn that was not played.
    """

    number: float
    message: str
    argument: str
    value: Any = True


def judge(
    session: Session,
    scenarios: Mapping[str, Scenario],
    required: Sequence[str],
    mark: Mark,
    allowed: Allowed,
) -> Verdict:
    """The verdict on a session.

    Args:
        scenarios: those that were served, by name.
        required: the names of the scenarios that must be played.
        mark: the marker of the test, for the suggestion.
        allowed: the mistakes that are allowed.
    """
    every = allowed.violations is True
    leave_out = frozenset(CONVERSATION_INVARIANTS) if every else allowed.violations
    assert not isinstance(leave_out, bool)
    found = verify(
        session,
        scenarios,
        depth=allowed.depth,
        leave_out=leave_out,
        once=not allowed.extra_requests,
    )
    mistakes = sorted(
        _mistakes(session, scenarios, required, found), key=lambda mistake: mistake.number
    )
    kept = [wrong for wrong in mistakes if getattr(allowed, wrong.argument, False) is not True]
    if not kept:
        return Verdict((), "", "")
    return Verdict(
        tuple(mistake.message for mistake in kept),
        format_exchanges(session.name, list(session.journal), scenarios),
        _marker(mark, kept),
        _repeat_hints(session, kept),
    )


def _repeat_hints(session: Session, mistakes: Sequence[_Mistake]) -> tuple[str, ...]:
    """What to write where a reply of the test was requested again."""
    extra = {mistake.number for mistake in mistakes if mistake.argument == "extra_requests"}
    if not any(entry.number in extra and is_inline(entry.scenario) for entry in session.journal):
        return ()
    return (
        "To give a reply again: mockllm_session.reply(..., repeat=True)",
        'To answer another question: mockllm_session.reply(..., match={"user": "..."})',
    )


def _mistakes(
    session: Session,
    scenarios: Mapping[str, Scenario],
    required: Sequence[str],
    found: Verification,
) -> Iterator[_Mistake]:
    exchanges = {exchange.number: exchange for exchange in session.journal}
    for violation in found.violations:
        number = violation.exchange
        message = f"{violation.invariant} (request {number}): {violation.message}"
        extra = violation.invariant == "extra-request"
        argument = "extra_requests" if extra else "violations"
        yield _Mistake(number, message, argument, True if extra else violation.invariant)
    for name, outcome in _REFUSED.items():
        for number in getattr(found, name):
            problem = "; ".join(exchanges[number].problems).partition("\n")[0]
            yield _Mistake(number, f"request {number} {outcome}: {problem}", name)
    for number, exchange in exchanges.items():
        if exchange.outcome == "error" and exchange.scenario is None:
            message = f"request {number} was not passed on: {'; '.join(exchange.problems)}"
            yield _Mistake(number, message, "unmatched")
    for number in found.missed_faults:
        problem = f"a fault did not strike: {exchanges[number].fault_missed}"
        yield _Mistake(number, f"request {number}: {problem}", "unplayed")
    for what in found.doubtful:
        message = f"a request that is missing may be the cause: {what}"
        yield _Mistake(float("inf"), message, "violations")
    yield from _unplayed(session, scenarios, required, found)


def _unplayed(
    session: Session,
    scenarios: Mapping[str, Scenario],
    required: Sequence[str],
    found: Verification,
) -> Iterator[_Mistake]:
    """The scenarios and turns that should have been played."""
    tapes = _tapes_played(session, scenarios)
    for name in required:
        if name not in session.played and name in scenarios:
            turns = range(len(scenarios[name].turns))
            if any(_is_due(scenarios[name], index, tapes) for index in turns):
                message = _never_played(scenarios[name], bool(session.journal))
                yield _Mistake(float("inf"), message, "unplayed")
    for name, index in found.unplayed:
        if _is_due(scenarios[name], index, tapes):
            count = len(scenarios[name].turns)
            message = f"turn {index + 1} of {count} of {name} was not played"
            yield _Mistake(float("inf"), message, "unplayed")


def _tapes_played(session: Session, scenarios: Mapping[str, Scenario]) -> set[str]:
    """The paths of the tapes that were played."""
    played = (
        scenarios[name].turns[index].recorded
        for name, turns in session.played.items()
        if name in scenarios
        for index in turns
    )
    return {recorded.path or recorded.file for recorded in played if recorded is not None}


def _is_due(scenario: Scenario, index: int, tapes: set[str]) -> bool:
    """Whether a turn that was not played should have been.

    A recorded turn need not be played if another scenario with the same beginning has played its
    tape. Nor need a turn before the first recorded one: it stands for the history that the client
    already had when the recording began.
    """
    recorded = scenario.turns[index].recorded
    if recorded is not None:
        return (recorded.path or recorded.file) not in tapes
    return all(turn.recorded is None for turn in scenario.turns[index:])


def _never_played(scenario: Scenario, any_request: bool) -> str:
    count = len(scenario.turns)
    message = f"no turn of {scenario.name} was played ({count} turn{'s' * (count > 1)})"
    if any_request:
        return message
    return f"{message}: no request came; does the client read its base URL from the environment?"


def _marker(mark: Mark, mistakes: Sequence[_Mistake]) -> str:
    """The marker of the test, with arguments that allow the mistakes."""
    keywords = dict(mark.given)
    broken = dict.fromkeys(str(wrong.value) for wrong in mistakes if wrong.argument == "violations")
    if broken:
        before = mark.allowed.violations
        names = set() if isinstance(before, bool) else set(before)
        keywords["violations"] = tuple(sorted(names | broken.keys()))
    for mistake in mistakes:
        if mistake.argument not in ("violations", "failed"):
            keywords[mistake.argument] = True
    arguments = [repr(name) for name in mark.names]
    arguments += [f"{name}={_repr(value)}" for name, value in keywords.items()]
    return f"@pytest.mark.mockllm({', '.join(arguments)})".replace("'", '"')


def _repr(value: Any) -> str:
    return str(value) if isinstance(value, float | int) else repr(value)
