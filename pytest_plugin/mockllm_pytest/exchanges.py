"""The exchanges of a session as text, for reports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from mockllm.core.request import Request
from mockllm.core.text import shorten
from mockllm.framing.sse import decode
from mockllm.matching.select import Selection
from mockllm.protocols import PROTOCOLS
from mockllm.replay.client_requests import parsed_request
from mockllm.replay.compilation.compiler import Replayer
from mockllm.replay.sessions.session import Exchange
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
    """The requests and answers of a session, two lines for each.

    Args:
        name: of the session.
        scenarios: those that were served, by name.
    """
    count = len(journal)
    if not count:
        return f"No request came in session {name}."
    lines = [f"{count} request{'s' * (count > 1)} in session {name}:"]
    for exchange in journal[:_MOST_EXCHANGES]:
        lines += _exchange_lines(exchange, scenarios)
    if count > _MOST_EXCHANGES:
        lines.append(f"  ... and {count - _MOST_EXCHANGES} more")
    return "\n".join(lines)


def _exchange_lines(exchange: Exchange, scenarios: Mapping[str, Scenario]) -> Iterator[str]:
    request = parsed_request(exchange)
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
    """What is new in a request: the results of calls, or the user's message."""
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
        yield from _parts(scenario.turns[exchange.turn].for_api(exchange.played.api).reply)
        chunks = _chunks(exchange, scenario, request)
        if chunks is not None:
            yield f"{chunks} chunks"
    yield f"{exchange.sent.bytes:,} bytes"


def _chunks(exchange: Exchange, scenario: Scenario, request: Request) -> int | None:
    """The number of events in the answer; None if it is not streamed."""
    if not exchange.played.stream or exchange.played.position is None or exchange.turn is None:
        return None
    selection = Selection(scenario, exchange.played.position, exchange.turn)
    request = replace(request, stream=True)
    answer = Replayer().answer(selection, request, PROTOCOLS[request.api], exchange.played.quirks)
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
    line = " ".join(text.split())
    return f'"{shorten(line, _LONGEST_QUOTE, keep=_LONGEST_QUOTE - 1)}"'
