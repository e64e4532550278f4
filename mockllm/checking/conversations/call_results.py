"""The mistakes in the history of a request: calls and results that do not belong together. Pure."""

from __future__ import annotations

from collections.abc import Mapping

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
from mockllm.matching.call_ids import results_by_id, with_scenario_ids
from mockllm.matching.positions import turn_at
from mockllm.scenario.model import ResultCondition, Scenario


def call_results(record: JudgedSession) -> Violations:
    """The mistakes in the calls and results of each request."""
    for step in record.history.steps:
        for result in step.leading_results:
            yield Violation("request-valid", step.number, _without_call(result))
        for trip in step.round_trips:
            yield from _result_mistakes(trip, record.history)


def _result_mistakes(trip: RoundTrip, history: SessionHistory) -> Violations:
    for call in trip.calls:
        if len(call.results) > 1:
            message = (
                f"{call} is answered {len(call.results)} times; a client sends one result for "
                "each call"
            )
            yield violation("answer-each-once", trip, message)
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
        message = f"the result of call {id!r} is sent without the call; a client sends back both"
        return violation("history-faithful", trip, message), False
    if id and any(call.id == id for step in trip.step.lineage() for call in step.calls):
        message = f"call {id!r} of an earlier turn is answered again; each call takes one result"
        return violation("answer-each-once", trip, message), False
    if id and history.streamed_before(trip.step, id):
        message = (
            f"there is a result for call {id!r}, which was made in another conversation; "
            "a client keeps the calls and results of each conversation apart"
        )
        return violation("conversations-separate", trip, message), bool(unanswered)
    if unanswered:
        message = (
            f"there is a result for {display(id or result.name)}, which is no call here, and none "
            f"for {unanswered[0]}; a client answers a call by the call's own id"
        )
        return violation("answer-each-once", trip, message), True
    return violation("request-valid", trip, _without_call(result)), False


def _without_call(result: Message) -> str:
    return (
        f"the result for {display(result.call_id or result.name)} has no call before it; a client "
        "that shortens its history leaves out a call together with its result"
    )


def _missing_result(
    trip: RoundTrip, call: HistoryCall, history: SessionHistory
) -> Violation | None:
    """What a call without a result breaks; None where it may still be running."""
    if history.answered_before(trip, call) or trip.repeats_executed(call.id):
        message = (
            f"{call} waits for its result here, though an earlier request had it; a call is "
            "either waiting or executed, and the result of one that is stays in the history"
        )
        return violation("pending-or-executed", trip, message)
    if trip.unmatched or any(other.results for other in trip.calls):
        message = (
            f"{call} has no result, while others of its turn have theirs; a client sends the "
            "results of all calls of a turn together"
        )
        return violation("tools-after-end", trip, message)
    may_leave = trip.step.protocol.client.may_leave_calls
    if trip is trip.step.last and not trip.user_follows and may_leave:
        return None
    message = f"{call} has no result; every call in the history is followed by its result"
    return violation("request-valid", trip, message)


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
