"""What was asked and what became of it, in words; and whether it was right.

Nothing here knows pytest but the line that it suggests.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mockllm.checking.conversations.invariants import CONVERSATION_INVARIANTS
from mockllm.checking.conversations.judge import Verification, verify
from mockllm.core.request import Request
from mockllm.errors import RequestError
from mockllm.framing.sse import decode
from mockllm.matching.select import Pick
from mockllm.protocols import PROTOCOLS
from mockllm.replay.compile import Replayer
from mockllm.replay.player import parse_object
from mockllm.replay.session import Exchange, Session
from mockllm.scenario.model import (
    AnyPart,
    AutoPart,
    ErrorPart,
    ParallelPart,
    ReasoningPart,
    RefusalPart,
    Scenario,
    TextPart,
    ToolPart,
)
from mockllm_pytest.marks import Allowed, Mark

__all__ = ["Verdict", "drawn", "judge"]

_MOST_SHOWN = 30
_WIDEST = 70
_OUTCOMES = {
    "unmatched": "nothing answers it",
    "invalid": "refused",
    "error": "the error that the scenario asks for",
    "forwarded": "from the service",
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a test's requests were right.

    Args:
        wrongs: what was not, the first thing first.
        exchanges: all of them, drawn.
        allow: the marker that would allow it.
        again: the commands that would record it otherwise.
    """

    wrongs: tuple[str, ...]
    exchanges: str
    allow: str
    again: tuple[str, ...] = ()

    @property
    def good(self) -> bool:
        """Whether nothing was wrong."""
        return not self.wrongs

    def __str__(self) -> str:
        first, *more = self.wrongs
        lines = [f"mockllm: {first}", "", self.exchanges, ""]
        if more:
            lines += [f"Also: {more[0]}", *(f"      {wrong}" for wrong in more[1:]), ""]
        lines += [*self.again, f"To allow it: {self.allow}"]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class _Wrong:
    """One thing that is wrong, and the argument that would allow it."""

    number: float
    words: str
    argument: str
    value: Any = True


def judge(
    session: Session,
    scenarios: Mapping[str, Scenario],
    own: Sequence[str],
    mark: Mark,
    what: Allowed,
) -> Verdict:
    """The verdict about a session.

    Args:
        scenarios: those that were served, by name.
        own: the names of those that have to be played.
        mark: of the test, for the suggestion.
        what: what is allowed.
    """
    every = what.violations is True
    leave_out = frozenset(CONVERSATION_INVARIANTS) if every else what.violations
    assert not isinstance(leave_out, bool)
    found = verify(session, scenarios, depth=what.depth, leave_out=leave_out)
    wrongs = sorted(_wrongs(session, scenarios, own, found), key=lambda wrong: wrong.number)
    kept = [wrong for wrong in wrongs if getattr(what, wrong.argument) is not True]
    if not kept:
        return Verdict((), "", "")
    return Verdict(
        tuple(wrong.words for wrong in kept),
        drawn(session.name, list(session.journal), scenarios),
        _marker(mark, kept),
    )


def _wrongs(
    session: Session,
    scenarios: Mapping[str, Scenario],
    own: Sequence[str],
    found: Verification,
) -> Iterator[_Wrong]:
    at = {exchange.number: exchange for exchange in session.journal}
    for one in found.violations:
        where = "" if one.exchange is None else f" (request {one.exchange})"
        words = f"{one.invariant}{where}: {one.message}"
        yield _Wrong(one.exchange or 0, words, "violations", one.invariant)
    for name in ("unmatched", "invalid"):
        for number in getattr(found, name):
            problem = "; ".join(at[number].problems)
            words = "matches nothing" if name == "unmatched" else "was refused"
            yield _Wrong(number, f"request {number} {words}: {problem}", name)
    for number, exchange in at.items():
        if exchange.outcome == "error" and exchange.scenario is None:
            words = f"request {number} was not passed on: {'; '.join(exchange.problems)}"
            yield _Wrong(number, words, "unmatched")
    tapes = _tapes_played(session, scenarios)
    for name in own:
        if name not in session.played and name in scenarios:
            turns = range(len(scenarios[name].turns))
            if any(_is_due(scenarios[name], index, tapes) for index in turns):
                yield _Wrong(float("inf"), _never(scenarios[name], bool(at)), "unplayed")
    for name, index in found.unplayed:
        if _is_due(scenarios[name], index, tapes):
            count = len(scenarios[name].turns)
            words = f"turn {index + 1} of {count} of {name} was not played"
            yield _Wrong(float("inf"), words, "unplayed")


def _tapes_played(session: Session, scenarios: Mapping[str, Scenario]) -> set[str]:
    played = (
        scenarios[name].turns[index].recorded
        for name, turns in session.played.items()
        if name in scenarios
        for index in turns
    )
    return {recorded.path or recorded.file for recorded in played if recorded is not None}


def _is_due(scenario: Scenario, index: int, tapes: set[str]) -> bool:
    """Whether a turn that was not played should have been. Not due is a recorded turn whose tape
    another scenario has played, which begins alike; nor one that was not recorded but told by
    the client, as the history before the first one that was."""
    recorded = scenario.turns[index].recorded
    if recorded is not None:
        return (recorded.path or recorded.file) not in tapes
    return all(turn.recorded is None for turn in scenario.turns[index:])


def _never(scenario: Scenario, asked: bool) -> str:
    count = len(scenario.turns)
    words = f"no turn of {scenario.name} was played ({count} turn{'s' * (count > 1)})"
    if asked:
        return words
    return f"{words}: no request came; does the client read its base URL from the environment?"


def _marker(mark: Mark, wrongs: Sequence[_Wrong]) -> str:
    """The marker of the test with what would allow all that is wrong."""
    given = dict(mark.given)
    broken = dict.fromkeys(str(w.value) for w in wrongs if w.argument == "violations")
    if broken:
        before = mark.allowed.violations
        names = set() if isinstance(before, bool) else set(before)
        given["violations"] = tuple(sorted(names | broken.keys()))
    for wrong in wrongs:
        if wrong.argument != "violations":
            given[wrong.argument] = True
    arguments = [repr(name) for name in mark.names]
    arguments += [f"{name}={_repr(value)}" for name, value in given.items()]
    return f"@pytest.mark.mockllm({', '.join(arguments)})".replace("'", '"')


def _repr(value: Any) -> str:
    return str(value) if isinstance(value, float | int) else repr(value)


# Drawing


def drawn(name: str, journal: Sequence[Exchange], scenarios: Mapping[str, Scenario]) -> str:
    """Requests and answers of a session, two lines for each.

    Args:
        scenarios: those that were served, by name.
    """
    count = len(journal)
    if not count:
        return f"No request came in session {name}."
    lines = [f"{count} request{'s' * (count > 1)} in session {name}:"]
    for exchange in journal[:_MOST_SHOWN]:
        lines += _exchange(exchange, scenarios)
    if count > _MOST_SHOWN:
        lines.append(f"  ... and {count - _MOST_SHOWN} more")
    return "\n".join(lines)


def _exchange(exchange: Exchange, scenarios: Mapping[str, Scenario]) -> Iterator[str]:
    request = _request(exchange)
    asked = "" if request is None else _asked(request)
    yield f"  {exchange.number}. {exchange.method} {exchange.path}{asked and '  ' + asked}"
    scenario = scenarios.get(exchange.scenario or "")
    told = [str(exchange.status)]
    if scenario is not None and exchange.turn is not None:
        told.append(f"turn {exchange.turn + 1} of {len(scenario.turns)} of {scenario.name}")
        if exchange.attempt > 1:
            told.append(f"attempt {exchange.attempt}")
    if exchange.outcome == "error" and exchange.scenario is None:
        told.append("no service answers")
    elif exchange.outcome in _OUTCOMES:
        told.append(_OUTCOMES[exchange.outcome])
    told += _answered(exchange, scenario, request)
    if exchange.client_gone:
        told.append("the client left before its end")
    yield f"     -> {', '.join(told)}"
    for problem in exchange.problems:
        yield from (f"        {line}" for line in problem.splitlines())


def _request(exchange: Exchange) -> Request | None:
    """What was asked for; None where it cannot be read."""
    if exchange.api is None or exchange.target is None:
        return None
    try:
        return PROTOCOLS[exchange.api].parse(parse_object(exchange.body), exchange.target, False)
    except RequestError:
        return None


def _asked(request: Request) -> str:
    """What is new in a request: results of calls, or what the user says."""
    results: list[str] = []
    for message in reversed(request.messages):
        if message.role != "tool":
            said = _quoted(message.text) if message.role == "user" and not results else ""
            break
        results.insert(0, message.call_id or message.name)
    else:
        said = ""
    return f"results for {', '.join(results)}" if results else said


def _answered(
    exchange: Exchange, scenario: Scenario | None, request: Request | None
) -> Iterator[str]:
    """What an answer held, in parts, chunks and bytes."""
    if exchange.outcome == "played" and scenario is not None and request is not None:
        assert exchange.api is not None
        assert exchange.turn is not None
        yield from _parts(scenario.turns[exchange.turn].for_api(exchange.api).reply)
        chunks = _chunks(exchange, scenario, request)
        if chunks is not None:
            yield f"{chunks} chunks"
    yield f"{exchange.bytes_sent:,} bytes"


def _chunks(exchange: Exchange, scenario: Scenario, request: Request) -> int | None:
    """How many events the answer has; None of one that is not streamed."""
    if not exchange.stream or exchange.position is None or exchange.turn is None:
        return None
    picked = Pick(scenario, exchange.position, exchange.turn)
    request = replace(request, stream=True)
    answer = Replayer().answer(picked, request, PROTOCOLS[request.api], exchange.quirks)
    return sum(frame.data is not None for frame in decode(b"".join(answer.data)))


def _parts(parts: Sequence[AnyPart]) -> Iterator[str]:
    for part in parts:
        match part:
            case TextPart(text=text):
                yield f"text {_quoted(text)}"
            case ReasoningPart():
                yield "reasoning"
            case RefusalPart(text=text):
                yield f"refusal {_quoted(text)}"
            case ToolPart(name=name):
                yield f"calls {name}"
            case ParallelPart(calls=calls):
                yield f"calls {', '.join(call.name for call in calls)}"
            case ErrorPart():
                yield "an error in the stream"
            case AutoPart():
                yield "an answer made from the request"


def _quoted(text: str) -> str:
    shown = " ".join(text.split())
    return f'"{shown}"' if len(shown) <= _WIDEST else f'"{shown[: _WIDEST - 1]}…"'
