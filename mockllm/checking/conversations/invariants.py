"""The conversation invariants, and the functions that find their violations. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mockllm.checking.conversations.histories import call_results, expected_failures, sent_back
from mockllm.checking.conversations.mcp.tool_verdicts import tools_judged
from mockllm.checking.conversations.remarks import (
    calls_offered,
    kept_of_before,
    requests_unchanged,
)
from mockllm.checking.conversations.retries import RETRY_RULES, extra_requests
from mockllm.checking.conversations.round_trips import RoundTrip, Step
from mockllm.checking.conversations.session_history import (
    Judge,
    JudgedSession,
    SessionHistory,
    Violation,
    Violations,
    violation,
)
from mockllm.checking.conversations.unplayed import answers_fetched
from mockllm.core.errors import RequestError
from mockllm.core.http import NO_TARGET, Target
from mockllm.core.jsontext import parse_object
from mockllm.play.matching.conditions import judged_expectations
from mockllm.play.matching.request_validation import with_scenario_ids
from mockllm.play.replay.client_requests import first_body
from mockllm.play.replay.compilation.tape_player import accepted_request
from mockllm.play.replay.filling import way_on
from mockllm.play.replay.sessions.exchange import Exchange
from mockllm.play.replay.sessions.shortened_bodies import is_shortened
from mockllm.scenario.model import Expect
from mockllm.wire.protocols import PROTOCOLS


def _opaque_kept(record: JudgedSession) -> Violations:
    for step in record.history.steps:
        trip, client = step.last, step.protocol.client
        if trip is None or trip.stored or not (trip.results or trip.user_follows):
            continue
        rejects = [client.image_mistake]
        if trip.echoes and trip.results:
            rejects.append(client.opaque_mistake)
        judged = [
            answer
            for answer in trip.played
            if answer.clear and answer.exchange.played.recorded != "exact"
        ]
        if len(judged) < len(trip.played):
            continue  # any of the others may have been the answer
        for reject in rejects:
            problems = [
                reject(step.request, answer.turn) for answer in judged if answer.turn is not None
            ]
            if problems and all(problems):
                yield Violation("opaque-kept", step.number, problems[-1] or "", trip.location)


def _failure_reported(record: JudgedSession) -> Violations:
    for step in record.history.steps:
        trip, demanded = step.last, expected_failures(step, record.history)
        if trip is None or not demanded:
            continue
        calls = [(call.name, call.id) for call in trip.streamed]
        if any(is_shortened(message.text) for message in step.request.messages):
            continue  # the error may be in the part that is not kept
        expect = Expect(results=tuple(demanded.values()))
        expected = record.history.expected_position(step)
        messages = step.request.messages
        if expected is not None:
            messages = with_scenario_ids(step.request, *expected)
        judged = judged_expectations(expect, step.request, messages, calls)
        for problem in (problem for condition in judged for problem in condition.problems):
            reason = problem.removeprefix("request.results: ")
            yield violation("failure-hidden", trip, reason=reason)


def _multi_hop(record: JudgedSession) -> Violations:
    steps = record.history.steps
    continued = {
        id(answer) for step in steps for trip in step.round_trips for answer in trip.answers
    }
    requested = {
        (step.request.api, step.exchange.scenario, step.exchange.played.position) for step in steps
    }
    for step in steps:
        name, position = step.exchange.scenario, step.exchange.played.position
        if not step.clear or not step.calls or step.last is None or not step.last.results:
            continue
        scenario = record.history.scenarios[name or ""]
        way = way_on(scenario, step.exchange.played, step.request)
        if position is None or position + 1 >= len(way.steps) or _may_ignore_calls(step):
            continue
        if id(step) not in continued and (step.request.api, name, position + 1) not in requested:
            yield violation("hop-missing", step, call=step.calls[0])


def _may_ignore_calls(step: Step) -> bool:
    """Whether a correct client may leave the calls of a turn alone: it cannot run one of them."""
    return any(call.malformed or not call.offered for call in step.calls)


def _depth_bounded(record: JudgedSession) -> Violations:
    for step in record.history.steps:
        scenario = record.history.scenarios.get(step.exchange.scenario or "")
        if scenario is None or not (scenario.restart or scenario.turns[-1].repeat):
            continue
        limit = max(record.depth, len(scenario.steps))
        if step.hops == limit:
            yield violation("too-deep", step, number=limit + 1, limit=limit)
    yield from _too_deep_by_name(record)


def _too_deep_by_name(record: JudgedSession) -> Violations:
    """Conversations that their client names, and whose turns come again and again: their history
    may be shortened, so that it does not say how deep they are."""
    said: dict[str, set[str]] = {}
    asked: dict[str, int] = {}
    turns: dict[str, set[object]] = {}
    for step in record.history.steps:
        name = step.exchange.played.conversation
        if not name or step.exchange.outcome != "played":
            continue
        words = {message.text for message in step.request.users}
        if words - said.setdefault(name, set()):
            said[name] |= words
            asked[name], turns[name] = 0, set()
        asked[name] += 1
        turns[name].add((step.exchange.scenario, step.exchange.turn))
        limit = max(record.depth, len(turns[name]))
        # A request that goes on in its own history is counted by that.
        if asked[name] == limit + 1 and step.hops < limit:
            yield violation("too-deep", step, number=limit + 1, limit=limit)


_RETRYABLE = (408, 409, 425, 429)
"""HTTP client errors after which the same request may be sent again (RFC 9110 sections 15.5.9 and
15.5.10, RFC 8470, RFC 6585 section 4), as the SDKs of OpenAI and Anthropic do. All server errors
allow it, too."""


def _continuation_error(record: JudgedSession) -> Violations:
    for step in record.history.steps:
        yield from _altered_retry(step)
        for trip in step.round_trips:
            failed = [answer for answer in trip.answers if _is_failed_continuation(answer)]
            if not failed or not all(answer.failed for answer in trip.answers):
                continue
            # The text before an error in the stream may stay in the history.
            streamed = any(answer.turn is not None for answer in trip.answers)
            if not streamed or any(call.results for call in trip.calls):
                yield violation("error-ignored", trip, number=failed[-1].number)


def _is_failed_continuation(step: Step) -> bool:
    return step.failed and step.last is not None and bool(step.last.results)


def _altered_retry(step: Step) -> Violations:
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
        yield violation("retry-altered", step, number=failed.number)


def _results_and_calls(trip: RoundTrip) -> tuple[object, ...]:
    """The results and calls of a round trip, in an order that does not depend on the request."""
    results = [(result.call_id, result.name, result.text, result.error) for result in trip.results]
    return sorted(results), sorted((c.id, c.name, c.arguments) for c in trip.echoes)


def _messages_right(record: JudgedSession) -> Violations:
    """The mistakes that each WebSocket found in the messages of its client."""
    for exchange in record.journal:
        if exchange.played.mistake:
            problem = exchange.played.problems[0]
            yield violation(exchange.played.mistake, exchange, problem=problem)


def _request_valid(record: JudgedSession) -> Violations:
    for step in record.history.steps:
        problem = _refusal_of_tools(
            step.request.api, step.request.body, step.exchange.received.target
        )
        if problem is not None and problem != _refusal_when_recorded(step, record.history):
            yield Violation("request-valid", step.number, problem)
            record.reported.add(step.number)
    for exchange in record.journal:
        if exchange.outcome == "invalid" and exchange.number not in record.reported:
            problem = _refusal(exchange)
            if problem is not None:
                yield Violation("request-valid", exchange.number, problem)


def _refusal_when_recorded(step: Step, history: SessionHistory) -> str | None:
    """Why the API's documented rules reject the request from which the answer was recorded, if
    they do: the service accepts more than its reference says."""
    scenario, index = history.scenarios.get(step.exchange.scenario or ""), step.exchange.turn
    if scenario is None or index is None or index >= len(scenario.turns):
        return None
    recorded = scenario.turns[index].recorded
    if recorded is None:
        return None
    accepted = accepted_request(recorded, step.protocol)
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
        minimal = first_body(protocol, "mock", "Hello")
        protocol.parse({**minimal, **fields}, target or NO_TARGET, True)
    except RequestError as error:
        return f"{error.message} (which is what the API says of how tools are offered)"
    return None


def _refusal(exchange: Exchange) -> str | None:
    """Why the API's own rules reject a body; None if only mockllm cannot answer it."""
    if (
        exchange.received.target is None
        or exchange.played.api is None
        or exchange.status not in (400, 422)
    ):
        return None
    if exchange.body_size is not None:
        return None  # what was wrong may be in the part that is not kept
    protocol = PROTOCOLS[exchange.played.api]
    try:
        body = parse_object(exchange.body)
    except RequestError as error:
        return error.message
    try:
        protocol.parse(body, exchange.received.target, False)
    except (RequestError, RecursionError):
        return None  # mockllm cannot answer it, but the service may
    try:
        protocol.parse(body, exchange.received.target, True)
    except RequestError as error:
        return error.message
    return None


# Requests before the end of a stream, and streams that are read on


def _continuations(record: JudgedSession) -> Iterator[tuple[RoundTrip, list[Step]]]:
    """The last round trips of requests with results, each with the requests that may have got the
    turn there."""
    for step in record.history.steps:
        trip = step.last
        if trip is None or not step.exchange.received.clock:
            continue
        if any(call.results for call in trip.calls):
            answers = trip.played
            if answers and all(answer.exchange.received.clock for answer in answers):
                yield trip, answers


def _ended_before(answer: Step, step: Step) -> bool:
    """Whether the stream of an answer had ended when another request arrived."""
    exchange = answer.exchange
    ended = exchange.sent.ended
    return ended is not None and exchange.received.clock + ended <= step.exchange.received.clock


def _abandoned_before(answer: Step, step: Step) -> bool:
    """Whether the client had disconnected before the end of a stream when another request
    arrived."""
    exchange = answer.exchange
    if not exchange.sent.client_gone or exchange.sent.ended is not None:
        return False
    return exchange.received.clock + exchange.sent.duration <= step.exchange.received.clock


def results_too_early(record: JudgedSession) -> Violations:
    """Results that arrive before the stream of their calls has ended."""
    for trip, answers in _continuations(record):
        if any(_ended_before(answer, trip.step) for answer in answers):
            continue
        streaming = [answer for answer in answers if not _abandoned_before(answer, trip.step)]
        if streaming:
            yield violation("results-early", trip, number=streaming[-1].number)


def cancel_stops(record: JudgedSession) -> Violations:
    """Results for the calls of a stream that the client left."""
    for trip, answers in _continuations(record):
        if not trip.user_follows and all(
            _abandoned_before(answer, trip.step) for answer in answers
        ):
            yield violation("results-after-cancel", trip, number=answers[-1].number)


_TIME_TO_LEAVE = 1.0
"""How long a client may take to leave a stream after its cancellation, in seconds."""


def stream_abandoned(record: JudgedSession) -> Violations:
    """Streams that a client read on, although the user went on without waiting for their end.

    A turn that is in the history of a later request, with a message of the user after it, was
    cancelled if its stream was still open when that request arrived.
    """
    for step in record.history.steps:
        trip = step.last
        if trip is None or not trip.user_follows or trip.results or trip.stored:
            continue
        answers = [answer for answer in trip.answers if answer.turn is not None]
        if answers and all(_read_on(answer, step) for answer in answers):
            yield violation("stream-read-on", trip, number=answers[-1].number)


def _read_on(answer: Step, step: Step) -> bool:
    """Whether the stream of an answer went on well after another request arrived."""
    exchange = answer.exchange
    if not exchange.received.clock or not step.exchange.received.clock or exchange.broken_off:
        return False
    ended = exchange.sent.ended
    return ended is not None and (
        exchange.received.clock + ended >= step.exchange.received.clock + _TIME_TO_LEAVE
    )


JUDGES: tuple[Judge, ...] = (
    *RETRY_RULES.values(),
    sent_back,
    call_results,
    results_too_early,
    _opaque_kept,
    _failure_reported,
    _multi_hop,
    _depth_bounded,
    cancel_stops,
    stream_abandoned,
    _continuation_error,
    extra_requests,
    kept_of_before,
    calls_offered,
    requests_unchanged,
    answers_fetched,
    tools_judged,
    _messages_right,
    _request_valid,
)
"""The judges of all invariants. `_request_valid` comes last: it judges only requests for which no
other one has a violation."""

REMARKS = frozenset(
    {
        *("system-kept", "tools-kept", "call-offered", "request-unchanged"),
        # A cancellation crosses results on their way; the user may have heard all of an answer.
        *("truncation-sent", "cancelled-unanswered"),
        *("call-not-made", "call-unasked", "result-shortened", "media-left-out"),
        *("failure-unmarked", "tools-filtered", "schema-changed", "list-change-ignored"),
    }
)
"""The invariants that are remarks where they are not required."""

ON_REQUEST = frozenset(("extra-request", "text-in-history", *RETRY_RULES, *REMARKS))
"""The invariants that correct clients may break, so that they are judged only where they are
required: a session that several tests share has its answers requested several times, every service
accepts a turn with calls and without its text, and good clients differ in what they try again."""
