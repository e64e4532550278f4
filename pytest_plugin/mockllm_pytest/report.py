"""The verdict on the session of a test, and its exchanges as text.

Nothing here depends on pytest, except for the marker that a verdict suggests.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mockllm.checking.conversations.judge import Verification, verify, why_unknown
from mockllm.checking.rules import CONVERSATION_INVARIANTS
from mockllm.core.request import Request
from mockllm.core.text import printable_lines, quantity, shorten
from mockllm.play.replay.compilation.compiler import Replayer
from mockllm.play.replay.filling import played_selection
from mockllm.play.replay.sessions.exchange import Exchange
from mockllm.play.replay.sessions.session import Session
from mockllm.scenario.model import Scenario
from mockllm.scenario.part_model import AnyPart, kind_of, tool_parts, visible_text
from mockllm.wire.protocols import PROTOCOLS
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
        remarks: what may be a mistake, and is none of the verdict.
    """

    mistakes: tuple[str, ...]
    exchanges: str
    allow: str
    hints: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

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
    verification = verify(
        session,
        scenarios,
        depth=allowed.depth,
        leave_out=leave_out,
        once=not allowed.extra_requests,
        require=allowed.require,
    )
    remarks = tuple(printable_lines(str(remark)) for remark in verification.remarks)
    mistakes = sorted(
        _mistakes(session, scenarios, required, verification), key=lambda mistake: mistake.number
    )
    kept = [wrong for wrong in mistakes if getattr(allowed, wrong.argument, False) is not True]
    if not kept:
        return Verdict((), "", "", remarks=remarks)
    return Verdict(
        tuple(mistake.message for mistake in kept),
        format_exchanges(session.name, list(session.journal), scenarios),
        _marker(mark, kept),
        _repeat_hints(session, kept),
        remarks,
    )


def _repeat_hints(session: Session, mistakes: Sequence[_Mistake]) -> tuple[str, ...]:
    """Advice where a reply of the test was requested again."""
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
    verification: Verification,
) -> Iterator[_Mistake]:
    exchanges = {exchange.number: exchange for exchange in session.exchanges()}
    for violation in verification.violations:
        number = violation.exchange
        message = f"{violation.invariant} (request {number}): {violation.message}"
        extra = violation.invariant == "extra-request"
        argument = "extra_requests" if extra else "violations"
        yield _Mistake(number, message, argument, True if extra else violation.invariant)
    for name, outcome in _REFUSED.items():
        for number in getattr(verification, name):
            problem = "; ".join(exchanges[number].problems).partition("\n")[0]
            yield _Mistake(number, f"request {number} {outcome}: {problem}", name)
    for number, exchange in exchanges.items():
        if exchange.outcome == "error" and exchange.scenario is None:
            message = f"request {number} was not passed on: {'; '.join(exchange.problems)}"
            yield _Mistake(number, message, "unmatched")
    for number in verification.missed_faults:
        problem = f"a fault did not strike: {exchanges[number].fault_missed}"
        yield _Mistake(number, f"request {number}: {problem}", "unplayed")
    for reason in why_unknown(verification):
        yield _Mistake(float("inf"), f"verdict unknown: {reason}", "violations")
    yield from _unplayed(session, scenarios, required, verification)


def _unplayed(
    session: Session,
    scenarios: Mapping[str, Scenario],
    required: Sequence[str],
    verification: Verification,
) -> Iterator[_Mistake]:
    """The scenarios and turns that should have been played."""
    tapes = _tapes_played(session, scenarios)
    for name in required:
        if name not in session.played and name in scenarios:
            turns = range(len(scenarios[name].turns))
            if any(_is_due(scenarios[name], index, tapes) for index in turns):
                message = _never_played(scenarios[name], bool(session.journal))
                yield _Mistake(float("inf"), message, "unplayed")
    for name, index in verification.unplayed:
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
    turns = quantity(len(scenario.turns), "turn")
    message = f"no turn of {scenario.name} was played ({turns})"
    if any_request:
        return message
    return f"{message}: no request came; does the client read its base URL from the environment?"


def _marker(mark: Mark, mistakes: Sequence[_Mistake]) -> str:
    """The marker of the test, with arguments that allow the mistakes."""
    keywords = dict(mark.given)
    broken = {mistake.value for mistake in mistakes if mistake.argument == "violations"}
    if True in broken:
        keywords["violations"] = True
    elif broken:
        before = mark.allowed.violations
        names = set() if isinstance(before, bool) else set(before)
        keywords["violations"] = tuple(sorted(names | broken))
    for mistake in mistakes:
        if mistake.argument not in ("violations", "failed"):
            keywords[mistake.argument] = True
    arguments = [repr(name) for name in mark.names]
    arguments += [f"{name}={value!r}" for name, value in keywords.items()]
    return f"@pytest.mark.mockllm({', '.join(arguments)})".replace("'", '"')


# Exchanges


_MOST_EXCHANGES = 30
_LONGEST_QUOTE = 70
_OUTCOMES = {
    "unmatched": "nothing answers it",
    "invalid": "refused",
    "error": "what the scenario has for this try",
    "forwarded": "from the service",
    "unknown route": "no scenario and no API has this route",
    "failed": "mockllm failed: a mistake of its own",
}


def format_exchanges(
    name: str, journal: Sequence[Exchange], scenarios: Mapping[str, Scenario]
) -> str:
    """The requests and answers of a session, two lines for each, for a terminal.

    Args:
        name: of the session.
        scenarios: those that were served, by name.
    """
    count = len(journal)
    if not count:
        return f"No request came in session {name}."
    lines = [f"{quantity(count, 'request')} in session {name}:"]
    for exchange in journal[:_MOST_EXCHANGES]:
        lines += _exchange_lines(exchange, scenarios)
    if count > _MOST_EXCHANGES:
        lines.append(f"  ... and {count - _MOST_EXCHANGES} more")
    return printable_lines("\n".join(lines))


def _exchange_lines(exchange: Exchange, scenarios: Mapping[str, Scenario]) -> Iterator[str]:
    request = exchange.request
    summary = "" if request is None else _request_summary(request)
    line = f"  {exchange.number}. {exchange.received.method} {exchange.path}"
    yield f"{line}  {summary}" if summary else line
    scenario = scenarios.get(exchange.scenario or "")
    answer = [str(exchange.status)]
    if scenario is not None and exchange.turn is not None:
        answer.append(f"turn {exchange.turn + 1} of {len(scenario.turns)} of {scenario.name}")
        if exchange.played.attempt > 1:
            answer.append(f"attempt {exchange.played.attempt}")
    if exchange.outcome == "error" and exchange.scenario is None:
        answer.append("no service answers")
    elif exchange.outcome in _OUTCOMES:
        answer.append(_OUTCOMES[exchange.outcome])
    if exchange.fault:
        struck = "" if exchange.sent.struck is not None else ", which did not strike"
        answer.append(f"fault {exchange.fault}{struck}")
    answer += _answer_summary(exchange, scenario, request)
    if exchange.sent.client_gone:
        answer.append("the client left before its end")
    if exchange.sent.stopped:
        answer.append("the server stopped before its end")
    yield f"     -> {', '.join(answer)}"
    for problem in exchange.problems:
        yield from (f"        {line}" for line in problem.splitlines())


def _request_summary(request: Request) -> str:
    """The new messages of a request: the results of calls, or the user's message."""
    results: list[str] = []
    for message in reversed(request.messages):
        if message.role != "tool":
            user = _quoted(message.text) if message.role == "user" and not results else ""
            break
        results.insert(0, message.call_id or message.name)
    else:
        user = ""
    return f"results for {', '.join(results)}" if results else user


def _answer_summary(
    exchange: Exchange, scenario: Scenario | None, request: Request | None
) -> Iterator[str]:
    """The contents of an answer: its parts, its chunks and its bytes."""
    if exchange.outcome == "played" and scenario is not None and request is not None:
        assert exchange.played.api is not None
        assert exchange.turn is not None
        selection = played_selection(scenario, exchange.played, request)
        if selection is not None:
            turn = selection.scenario.turns[selection.index]
            yield from _parts(turn.for_api(exchange.played.api).reply)
        chunks = _chunks(exchange, scenario, request)
        if chunks is not None:
            yield f"{chunks} chunks"
    yield f"{exchange.sent.bytes:,} bytes"


def _chunks(exchange: Exchange, scenario: Scenario, request: Request) -> int | None:
    """The number of events in the answer; None if it is not streamed."""
    if not exchange.played.stream or exchange.played.position is None or exchange.turn is None:
        return None
    request = replace(request, stream=True)
    selection = played_selection(scenario, exchange.played, request)
    if selection is None:
        return None
    protocol = PROTOCOLS[request.api]
    answer = Replayer().answer(selection, request, protocol, exchange.played.quirks)
    frames = protocol.carrier(protocol.options(request)).decode(b"".join(answer.data))
    return sum(frame.data is not None for frame in frames)


_IN_WORDS = {"error": "an error in the stream", "auto": "an answer made from the request"}


def _parts(parts: Sequence[AnyPart]) -> Iterator[str]:
    for part in parts:
        calls, text = [call.name for call in tool_parts((part,))], visible_text((part,))
        if calls:
            yield f"calls {', '.join(calls)}"
        elif text:
            yield f"{kind_of(part)} {_quoted(text)}"
        else:
            yield _IN_WORDS.get(kind_of(part), kind_of(part))


def _quoted(text: str) -> str:
    line = " ".join(text.split())
    return f'"{shorten(line, _LONGEST_QUOTE, keep=_LONGEST_QUOTE - 1)}"'
