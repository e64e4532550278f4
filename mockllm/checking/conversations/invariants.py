"""The judges of conversations: for each invariant, where the requests of a session break it.

Only pure functions may live here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from mockllm.checking.conversations.call_results import Mistake, expected_failures
from mockllm.checking.conversations.round_trips import RoundTrip, Step
from mockllm.checking.conversations.session_history import SessionHistory
from mockllm.core.target import NO_TARGET, Target
from mockllm.errors import RequestError
from mockllm.matching.conditions import check_expect
from mockllm.protocols import PROTOCOLS
from mockllm.replay.accepted_upstream import accepted_request
from mockllm.replay.player import parse_object
from mockllm.replay.session import Exchange
from mockllm.scenario.model import Expect

__all__ = ["CONVERSATION_INVARIANTS", "Found", "Record", "Violation"]


@dataclass(frozen=True, slots=True)
class Violation:
    """One invariant that was broken.

    Args:
        exchange: the number of the request that shows it.
        message: what is wrong, where, and what a correct client does.
    """

    invariant: str
    exchange: int | None
    message: str

    def __str__(self) -> str:
        where = "" if self.exchange is None else f", request {self.exchange}"
        return f"{self.invariant}{where}: {self.message}"


@dataclass(slots=True)
class Record:
    """A session as the judges see it; `reported` are the requests that have a violation."""

    journal: tuple[Exchange, ...]
    history: SessionHistory
    depth: int
    mistakes: list[Mistake]
    reported: set[int] = field(default_factory=set)


Found = Iterator[tuple[int, Violation]]
"""Violations, each with its place in a conversation: what is the same there is told once, for
every later request brings it again."""


def _pairs(name: str) -> Callable[[Record], Found]:
    """The judge of what is wrong between calls and results."""

    def judge(record: Record) -> Found:
        for mistake in record.mistakes:
            if mistake.invariant == name:
                yield mistake.location, Violation(name, mistake.step.number, mistake.message)

    return judge


def _continued(record: Record) -> Iterator[tuple[Step, RoundTrip, list[Step]]]:
    """Requests that bring results, the turn they are for, and who may have got that turn."""
    for step in record.history.steps:
        round = step.last
        if round is None or not step.exchange.clock:
            continue
        if any(call.results for call in round.calls):
            answers = round.played
            if answers and all(answer.exchange.clock for answer in answers):
                yield step, round, answers


def _over(answer: Step, step: Step) -> bool:
    """Whether the stream of an answer had ended when another request came."""
    exchange = answer.exchange
    ended = exchange.ended
    return ended is not None and exchange.clock + ended <= step.exchange.clock


def _gone(answer: Step, step: Step) -> bool:
    """Whether the client had left a stream before its end when another request came."""
    exchange = answer.exchange
    if not exchange.client_gone or exchange.ended is not None:
        return False
    return exchange.clock + exchange.duration <= step.exchange.clock


def _tools_after_end(record: Record) -> Found:
    yield from _pairs("tools-after-end")(record)
    for step, round, answers in _continued(record):
        if any(_over(answer, step) for answer in answers):
            continue
        still = [answer for answer in answers if not _gone(answer, step)]
        if still:
            message = (
                f"results arrive while the answer to request {still[-1].number}, which made the "
                "calls, is still being streamed; a client waits for the end of the stream, as "
                "more calls may come"
            )
            yield round.location, Violation("tools-after-end", step.number, message)


def _cancel_stops(record: Record) -> Found:
    for step, round, answers in _continued(record):
        if not round.user_follows and all(_gone(answer, step) for answer in answers):
            message = (
                f"results are sent for calls of the answer to request {answers[-1].number}, "
                "which the client had left before its end; after a cancellation a client sends "
                "no continuation"
            )
            yield round.location, Violation("cancel-stops", step.number, message)


def _failure_reported(record: Record) -> Found:
    for step in record.history.steps:
        round, demanded = step.last, expected_failures(step, record.history)
        if round is None or not demanded:
            continue
        made = [(call.name, call.id) for answer in round.played for call in answer.calls]
        expect = Expect(results=tuple(demanded.values()))
        for problem in check_expect(expect, step.request, step.request.messages, made):
            what = problem.removeprefix("request.results: ")
            message = f"{what}; a client answers a call that failed with the error of its tool"
            yield round.location, Violation("failure-reported", step.number, message)


def _multi_hop(record: Record) -> Found:
    steps = record.history.steps
    sent_back = {id(answer) for step in steps for one in step.rounds for answer in one.answers}
    asked = {(step.request.api, step.exchange.scenario, step.exchange.position) for step in steps}
    for step in steps:
        name, position = step.exchange.scenario, step.exchange.position
        if not step.clear or not step.calls or step.last is None or not step.last.results:
            continue
        scenario = record.history.scenarios[name or ""]
        if position is None or position + 1 >= len(scenario.turns) or _only_extra(step):
            continue
        if id(step) not in sent_back and (step.request.api, name, position + 1) not in asked:
            call = step.calls[0]
            message = (
                f"the answer calls tools again ({call.name!r}, id {call.id!r}), and no request "
                "brings results for them; a client serves such a turn like the first"
            )
            yield step.location, Violation("multi-hop", step.number, message)


def _only_extra(step: Step) -> bool:
    """Whether a client may rightly do nothing about the calls of a turn."""
    return any(call.malformed or not call.offered for call in step.calls)


def _depth_bounded(record: Record) -> Found:
    for step in record.history.steps:
        scenario = record.history.scenarios.get(step.exchange.scenario or "")
        if scenario is None or not (scenario.restart or scenario.turns[-1].repeat):
            continue
        limit = max(record.depth, len(scenario.turns))
        if step.hops == limit:
            message = (
                f"this is request {limit + 1} in a row without a word of the user; a client "
                f"stops by itself when a model goes on calling tools (at most {limit} requests "
                "are allowed here)"
            )
            yield step.location, Violation("depth-bounded", step.number, message)


_AGAIN = (408, 409, 425, 429)
"""HTTP errors after which the same request may be sent again, besides those of the server."""


def _continuation_error(record: Record) -> Found:
    for step in record.history.steps:
        yield from _altered(step)
        for round in step.rounds:
            failed = [answer for answer in round.answers if _fails_to_continue(answer)]
            if not failed or not all(answer.failed for answer in round.answers):
                continue
            # Words that came before an error in the stream may stay in the history.
            streamed = any(answer.turn is not None for answer in round.answers)
            if not streamed or any(call.results for call in round.calls):
                message = (
                    f"request {failed[-1].number} was answered with an error, yet the history "
                    "goes on as if there had been an answer; a client shows the error and stops, "
                    "or sends the same request again"
                )
                yield round.location, Violation("continuation-error", step.number, message)


def _fails_to_continue(step: Step) -> bool:
    return step.failed and step.last is not None and bool(step.last.results)


def _altered(step: Step) -> Found:
    """Another try of a failed continuation that is not the same; only where all of it is about
    one and the same answer, so that the tries are of one conversation."""
    failed = step.before
    if failed is None or step.last is None or not _fails_to_continue(failed):
        return
    status = failed.exchange.status
    if failed.turn is None and status < 500 and status not in _AGAIN:
        return  # told to send something else
    assert failed.last is not None
    first, second = failed.last.played, step.last.played
    if len(first) == len(second) == 1 and _brought(failed.last) != _brought(step.last):
        message = (
            f"request {failed.number}, which brought results, was answered with an error, and "
            "the same calls are now sent with other results; a client that tries again sends "
            "the same request and runs no tool twice"
        )
        yield step.location, Violation("continuation-error", step.number, message)


def _brought(round: RoundTrip) -> tuple[object, ...]:
    results = [(one.call_id, one.name, one.text, one.error) for one in round.results]
    return sorted(results), sorted((c.id, c.name, c.arguments) for c in round.echo)


def _request_valid(record: Record) -> Found:
    yield from _pairs("request-valid")(record)
    for step in record.history.steps:
        problem = _refusal_of_tools(step.request.api, step.request.body, step.exchange.target)
        if problem is not None and problem != _refusal_when_recorded(step, record.history):
            yield 0, Violation("request-valid", step.number, problem)
            record.reported.add(step.number)
    for exchange in record.journal:
        if exchange.outcome == "invalid" and exchange.number not in record.reported:
            problem = _refusal(exchange)
            if problem is not None:
                yield 0, Violation("request-valid", exchange.number, problem)


def _refusal_when_recorded(step: Step, history: SessionHistory) -> str | None:
    """Why the API would have refused the request from which the answer was recorded, if it
    was: the service takes more than the API."""
    scenario, index = history.scenarios.get(step.exchange.scenario or ""), step.exchange.turn
    if scenario is None or index is None or index >= len(scenario.turns):
        return None
    recorded = scenario.turns[index].recorded
    asked = accepted_request(recorded, PROTOCOLS[step.request.api]) if recorded is not None else None
    if asked is None:
        return None
    try:
        body = parse_object(asked.body)
    except RequestError:
        return None
    return _refusal_of_tools(step.request.api, body, asked.target)


def _refusal_of_tools(api: str, body: Mapping[str, Any], target: Target | None) -> str | None:
    """Why the API would refuse how tools are offered; None where it would not."""
    protocol = PROTOCOLS[api]
    fields = {name: body[name] for name in protocol.client.tool_fields if name in body}
    if not fields:
        return None
    try:
        minimal = protocol.client.first_request("mock", "Hello")
        protocol.parse({**minimal, **fields}, target or NO_TARGET, True)
    except RequestError as error:
        return f"{error.message} (which is what the API says of how tools are offered)"
    return None


def _refusal(exchange: Exchange) -> str | None:
    """Why the API refuses a body, as far as it does so for what it knows itself."""
    if exchange.target is None or exchange.api is None or exchange.status not in (400, 422):
        return None
    protocol = PROTOCOLS[exchange.api]
    try:
        body = parse_object(exchange.body)
    except RequestError as error:
        return error.message
    try:
        protocol.parse(body, exchange.target, False)
    except RequestError:
        return None  # what mockllm does not have, the service may
    try:
        protocol.parse(body, exchange.target, True)
    except RequestError as error:
        return error.message
    return None


CONVERSATION_INVARIANTS: Mapping[str, Callable[[Record], Found]] = {
    "tools-after-end": _tools_after_end,
    "answer-each-once": _pairs("answer-each-once"),
    "history-faithful": _pairs("history-faithful"),
    "pending-or-executed": _pairs("pending-or-executed"),
    "failure-reported": _failure_reported,
    "multi-hop": _multi_hop,
    "depth-bounded": _depth_bounded,
    "cancel-stops": _cancel_stops,
    "continuation-error": _continuation_error,
    "conversations-separate": _pairs("conversations-separate"),
    "request-valid": _request_valid,
}
"""The judge of each invariant; `request-valid` comes last, for it speaks where no other does."""
