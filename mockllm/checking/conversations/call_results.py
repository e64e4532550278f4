"""The mistakes in the history of a request: calls and results that do not belong together. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from mockllm.checking.conversations.round_trips import HistoryCall, RoundTrip, Step
from mockllm.checking.conversations.session_history import (
    JudgedSession,
    SessionHistory,
    Violation,
    Violations,
    violation,
)
from mockllm.core.request import Message
from mockllm.core.text import display
from mockllm.matching.conversation import turn_at
from mockllm.matching.request_validation import results_by_id, with_scenario_ids
from mockllm.scenario.model import ResultCondition, Scenario


def call_results(record: JudgedSession) -> Violations:
    """The mistakes in the calls and results of each request."""
    for step in record.history.steps:
        for result in step.leading_results:
            yield replace(_without_call(step, result), location=0)
        for trip in step.round_trips:
            yield from _result_mistakes(trip, record.history)


def _result_mistakes(trip: RoundTrip, history: SessionHistory) -> Violations:
    for call in trip.calls:
        if len(call.results) > 1:
            yield violation("results-repeated", trip, call=call, count=len(call.results))
    answered = {call.id for call in trip.calls if call.id and call.results}
    # Of a call that is sent back twice, `_unknown_call` reports the second.
    unanswered = [
        call for call in trip.calls if call.needed and not call.results and call.id not in answered
    ]
    for result in trip.unmatched:
        broken, replaces = _unmatched_result(trip, result, unanswered, history)
        if replaces:
            unanswered.pop(0)
        yield broken
    # `failure-reported` judges these.
    failures = expected_failures(trip.step, history) if trip is trip.step.last else {}
    for call in unanswered:
        missing = _missing_result(trip, call, history)
        if missing is not None and call.key not in failures:
            yield missing


def _unmatched_result(
    trip: RoundTrip, result: Message, unanswered: list[HistoryCall], history: SessionHistory
) -> tuple[Violation, bool]:
    """What a result without its call breaks, and whether the result was meant for the first
    unanswered call."""
    id = result.call_id
    if id and any(call.id == id for call in trip.streamed):
        return violation("result-without-its-call", trip, id=id), False
    if id and any(call.id == id for step in trip.step.lineage() for call in step.calls):
        return violation("result-again", trip, id=id), False
    if id and history.streamed_before(trip.step, id):
        return violation("result-of-other-conversation", trip, id=id), bool(unanswered)
    if unanswered:
        given = display(id or result.name)
        return violation("result-of-no-call", trip, given=given, call=unanswered[0]), True
    return _without_call(trip, result), False


def _without_call(where: RoundTrip | Step, result: Message) -> Violation:
    return violation("result-without-call", where, call=display(result.call_id or result.name))


def _missing_result(
    trip: RoundTrip, call: HistoryCall, history: SessionHistory
) -> Violation | None:
    """What a call without a result breaks; None where it may still be running."""
    if history.answered_before(trip, call) or trip.repeats_executed(call.id):
        return violation("result-gone", trip, call=call)
    if trip.unmatched or any(other.results for other in trip.calls):
        return violation("result-apart", trip, call=call)
    may_leave = trip.step.protocol.client.may_leave_calls
    if trip is trip.step.last and not trip.user_follows and may_leave:
        return None
    return violation("result-missing", trip, call=call)


def expected_failures(
    step: Step, history: SessionHistory
) -> Mapping[str, tuple[str, ResultCondition]]:
    """The calls that must have failed according to the expected turn, by id, or by name in
    protocols without ids; each with the call's id in the scenario and the condition."""
    expected = history.expected_position(step)
    if expected is None or step.last is None:
        return {}
    spec = turn_at(*expected, step.request.api)
    if spec is None or spec.request is None:
        return {}
    streamed = step.last.streamed
    before = [call.id for call in step.last.played[-1].calls] if step.last.played else []
    request = results_by_id(spec.request, [call.id for call in streamed], before)
    keys = _keys(step, *expected)
    names = {call.id: call.name for call in streamed}
    return {
        keys[key]: (id, condition)
        for id, condition in request.results
        for key in (id, names.get(id))
        if condition.error and key is not None and key in keys
    }


def _keys(step: Step, scenario: Scenario, position: int) -> Mapping[str, str]:
    """The keys of the calls in the latest turn, by their ids in the scenario."""
    assert step.last is not None
    sent = [call.id for message in step.request.messages for call in message.calls]
    messages = with_scenario_ids(step.request, scenario, position)
    own = [call.id for message in messages for call in message.calls]
    scenario_ids = dict(zip(sent, own, strict=True))
    return {scenario_ids.get(call.key, call.key): call.key for call in step.last.calls}
