"""The journal of a session as text: requests and answers, two lines for each, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from mockllm.core.request import Request
from mockllm.core.text import printable_lines, quantity, shorten
from mockllm.play.replay.compilation.compiler import Replayer
from mockllm.play.replay.filling import played_selection
from mockllm.play.replay.sessions.exchange import Exchange
from mockllm.scenario.model import Scenario
from mockllm.scenario.part_model import AnyPart, kind_of, tool_parts, visible_text
from mockllm.wire.protocols import PROTOCOLS

_MOST_EXCHANGES = 30
_LONGEST_QUOTE = 70
_CAUSES = {
    "scenario": "what the scenario has for this try",
    "quota": "beyond a quota of the server",
    "capacity": "the server had no slot",
    "state store": "the state store was away",
    "service": "no service answers",
}
_OUTCOMES = {
    "unmatched": "nothing answers it",
    "invalid": "refused",
    "forwarded": "from the service",
    "auxiliary": "beside the conversation",
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
    if exchange.outcome == "error":
        answer.append(_CAUSES.get(exchange.played.cause, "an error"))
    elif exchange.outcome in _OUTCOMES:
        answer.append(_OUTCOMES[exchange.outcome])
    if exchange.fault:
        struck = "" if exchange.sent.struck is not None else ", which did not strike"
        answer.append(f"fault {exchange.fault}{struck}")
    answer += _answer_summary(exchange, scenario, request)
    if exchange.sent.waits_at is not None:
        answer.append(f"waits at the gate {exchange.sent.waits_at!r}")
    if exchange.sent.client_gone:
        answer.append("the client left before its end")
    if exchange.sent.interrupted:
        answer.append("interrupted by the client")
    if exchange.sent.stopped:
        answer.append("the server stopped before its end")
    yield f"     -> {', '.join(answer)}"
    for problem in exchange.problems:
        yield from (f"        {line}" for line in problem.splitlines())


def _request_summary(request: Request) -> str:
    """The new messages of a request: the results of calls, or the user's message."""
    results = [result.call_id or result.name for result in request.new_results]
    if results:
        return f"results for {', '.join(results)}"
    return _quote(request.last_user.text) if request.users else ""


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
            yield f"{kind_of(part)} {_quote(text)}"
        else:
            yield _IN_WORDS.get(kind_of(part), kind_of(part))


def _quote(text: str) -> str:
    line = " ".join(text.split())
    return f'"{shorten(line, _LONGEST_QUOTE, keep=_LONGEST_QUOTE - 1)}"'
