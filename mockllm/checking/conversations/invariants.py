"""The conversation invariants, each with the function that finds its violations. Pure."""

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
from mockllm.replay.body import parse_object
from mockllm.replay.session import Exchange
from mockllm.scenario.model import Expect

__all__ = ["CONVERSATION_INVARIANTS", "JudgedSession", "LocatedViolations", "Violation"]


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
class JudgedSession:
    """A session while it is judged.

    Args:
        depth: how many requests in a row a client may make for a model that never stops.
        mistakes: between calls and results, of all requests.
        reported: the numbers of the requests that have a violation.
    """

    journal: tuple[Exchange, ...]
    history: SessionHistory
    depth: int
    mistakes: list[Mistake]
    reported: set[int] = field(default_factory=set)


LocatedViolations = Iterator[tuple[int, Violation]]
"""Violations, each with its location in a conversation. Every later request repeats the history, so
equal violations at one location are reported once."""


def _from_mistakes(name: str) -> Callable[[JudgedSession], LocatedViolations]:
    """The judge for mistakes between calls and results."""

    def judge(record: JudgedSession) -> LocatedViolations:
        for mistake in record.mistakes:
            if mistake.invariant == name:
                yield mistake.location, Violation(name, mistake.step.number, mistake.message)

    return judge


def _continuations(record: JudgedSession) -> Iterator[tuple[Step, RoundTrip, list[Step]]]:
    """Requests with results, each with its last round trip, and with the requests that may have
    got the turn there."""
    for step in record.history.steps:
        trip = step.last
        if trip is None or not step.exchange.clock:
            continue
        if any(call.results for call in trip.calls):
            answers = trip.played
            if answers and all(answer.exchange.clock for answer in answers):
                yield step, trip, answers


def _ended_before(answer: Step, step: Step) -> bool:
    """Whether the stream of an answer had ended when another request arrived."""
    exchange = answer.exchange
    ended = exchange.ended
    return ended is not None and exchange.clock + ended <= step.exchange.clock


def _abandoned_before(answer: Step, step: Step) -> bool:
    """Whether the client had disconnected before the end of a stream when another request
    arrived."""
    exchange = answer.exchange
    if not exchange.client_gone or exchange.ended is not None:
        return False
    return exchange.clock + exchange.duration <= step.exchange.clock


def _tools_after_end(record: JudgedSession) -> LocatedViolations:
    yield from _from_mistakes("tools-after-end")(record)
    for step, trip, answers in _continuations(record):
        if any(_ended_before(answer, step) for answer in answers):
            continue
        streaming = [answer for answer in answers if not _abandoned_before(answer, step)]
        if streaming:
            message = (
                f"results arrive while the answer to request {streaming[-1].number}, which made "
                "the calls, is still being streamed; a client waits for the end of the stream, as "
                "more calls may come"
            )
            yield trip.location, Violation("tools-after-end", step.number, message)


def _cancel_stops(record: JudgedSession) -> LocatedViolations:
    for step, trip, answers in _continuations(record):
        if not trip.user_follows and all(_abandoned_before(answer, step) for answer in answers):
            message = (
                f"results are sent for calls of the answer to request {answers[-1].number}, "
                "which the client had left before its end; after a cancellation a client sends "
                "no continuation"
            )
            yield trip.location, Violation("cancel-stops", step.number, message)


def _failure_reported(record: JudgedSession) -> LocatedViolations:
    for step in record.history.steps:
        trip, demanded = step.last, expected_failures(step, record.history)
        if trip is None or not demanded:
            continue
        calls = [(call.name, call.id) for answer in trip.played for call in answer.calls]
        expect = Expect(results=tuple(demanded.values()))
        for problem in check_expect(expect, step.request, step.request.messages, calls):
            reason = problem.removeprefix("request.results: ")
            message = f"{reason}; a client answers a call that failed with the error of its tool"
            yield trip.location, Violation("failure-reported", step.number, message)


def _multi_hop(record: JudgedSession) -> LocatedViolations:
    steps = record.history.steps
    continued = {
        id(answer) for step in steps for trip in step.round_trips for answer in trip.answers
    }
    requested = {
        (step.request.api, step.exchange.scenario, step.exchange.position) for step in steps
    }
    for step in steps:
        name, position = step.exchange.scenario, step.exchange.position
        if not step.clear or not step.calls or step.last is None or not step.last.results:
            continue
        scenario = record.history.scenarios[name or ""]
        if position is None or position + 1 >= len(scenario.turns) or _may_ignore_calls(step):
            continue
        if id(step) not in continued and (step.request.api, name, position + 1) not in requested:
            call = step.calls[0]
            message = (
                f"the answer calls tools again ({call.name!r}, id {call.id!r}), and no request "
                "brings results for them; a client serves such a turn like the first"
            )
            yield step.location, Violation("multi-hop", step.number, message)


def _may_ignore_calls(step: Step) -> bool:
    """Whether a correct client may leave the calls of a turn alone: it cannot run one of them."""
    return any(call.malformed or not call.offered for call in step.calls)


def _depth_bounded(record: JudgedSession) -> LocatedViolations:
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


_RETRYABLE = (408, 409, 425, 429)
"""HTTP client errors after which the same request may be sent again (RFC 9110 sections 15.5.9 and
15.5.10, RFC 8470, RFC 6585 section 4), as the SDKs of OpenAI and Anthropic do. All server errors
allow it, too."""


def _continuation_error(record: JudgedSession) -> LocatedViolations:
    for step in record.history.steps:
        yield from _altered_retry(step)
        for trip in step.round_trips:
            failed = [answer for answer in trip.answers if _is_failed_continuation(answer)]
            if not failed or not all(answer.failed for answer in trip.answers):
                continue
            # The text before an error in the stream may stay in the history.
            streamed = any(answer.turn is not None for answer in trip.answers)
            if not streamed or any(call.results for call in trip.calls):
                message = (
                    f"request {failed[-1].number} was answered with an error, yet the history "
                    "goes on as if there had been an answer; a client shows the error and stops, "
                    "or sends the same request again"
                )
                yield trip.location, Violation("continuation-error", step.number, message)


def _is_failed_continuation(step: Step) -> bool:
    return step.failed and step.last is not None and bool(step.last.results)


def _altered_retry(step: Step) -> LocatedViolations:
    """A retry of a failed continuation with other results.

    Only if both requests continue the same answer, so that they belong to one conversation.
    """
    failed = step.previous
    if failed is None or step.last is None or not _is_failed_continuation(failed):
        return
    status = failed.exchange.status
    if failed.turn is None and status < 500 and status not in _RETRYABLE:
        return  # after a client error, another request is correct
    assert failed.last is not None
    first, second = failed.last.played, step.last.played
    if len(first) == len(second) == 1 and _results_and_calls(failed.last) != _results_and_calls(
        step.last
    ):
        message = (
            f"request {failed.number}, which brought results, was answered with an error, and "
            "the same calls are now sent with other results; a client that tries again sends "
            "the same request and runs no tool twice"
        )
        yield step.location, Violation("continuation-error", step.number, message)


def _results_and_calls(trip: RoundTrip) -> tuple[object, ...]:
    """The results and calls of a round trip, in an order that does not depend on the request."""
    results = [(one.call_id, one.name, one.text, one.error) for one in trip.results]
    return sorted(results), sorted((c.id, c.name, c.arguments) for c in trip.echoes)


def _request_valid(record: JudgedSession) -> LocatedViolations:
    yield from _from_mistakes("request-valid")(record)
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
    """Why the API's documented rules reject the request from which the answer was recorded, if
    they do: the service accepts more than its reference says."""
    scenario, index = history.scenarios.get(step.exchange.scenario or ""), step.exchange.turn
    if scenario is None or index is None or index >= len(scenario.turns):
        return None
    recorded = scenario.turns[index].recorded
    if recorded is None:
        return None
    accepted = accepted_request(recorded, PROTOCOLS[step.request.api])
    if accepted is None:
        return None
    try:
        body = parse_object(accepted.body)
    except RequestError:
        return None
    return _refusal_of_tools(step.request.api, body, accepted.target)


def _refusal_of_tools(api: str, body: Mapping[str, Any], target: Target | None) -> str | None:
    """Why the API would reject how tools are offered; None if it would not."""
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
    """Why the API's own rules reject a body; None if only mockllm cannot answer it."""
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
        return None  # mockllm cannot answer it, but the service may
    try:
        protocol.parse(body, exchange.target, True)
    except RequestError as error:
        return error.message
    return None


CONVERSATION_INVARIANTS: Mapping[str, Callable[[JudgedSession], LocatedViolations]] = {
    "tools-after-end": _tools_after_end,
    "answer-each-once": _from_mistakes("answer-each-once"),
    "history-faithful": _from_mistakes("history-faithful"),
    "pending-or-executed": _from_mistakes("pending-or-executed"),
    "failure-reported": _failure_reported,
    "multi-hop": _multi_hop,
    "depth-bounded": _depth_bounded,
    "cancel-stops": _cancel_stops,
    "continuation-error": _continuation_error,
    "conversations-separate": _from_mistakes("conversations-separate"),
    "request-valid": _request_valid,
}
"""The judge of each invariant. `request-valid` comes last: it judges only requests for which no
other invariant has a violation."""
