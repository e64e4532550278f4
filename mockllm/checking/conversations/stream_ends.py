"""The order of requests and the ends of streams: what a client does before and after them. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from mockllm.checking.conversations.round_trips import RoundTrip, Step
from mockllm.checking.conversations.session_history import JudgedSession, Violations, violation


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
