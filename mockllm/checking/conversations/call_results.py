"""The mistakes in the history of one request: calls and results that do not belong together. Pure.

Each mistake breaks exactly one conversation invariant; the rules that choose it are all here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mockllm.checking.conversations.judged import Violation
from mockllm.checking.conversations.round_trips import (
    HistoryCall,
    RoundTrip,
    Step,
    repeats_executed_call,
)
from mockllm.checking.conversations.sent_back import turn_mistakes
from mockllm.checking.conversations.session_history import SessionHistory
from mockllm.core.request import Message
from mockllm.core.text import display
from mockllm.matching.call_ids import results_by_id, with_scenario_ids
from mockllm.matching.positions import turn_at
from mockllm.protocols import PROTOCOLS
from mockllm.scenario.model import ResultCondition, Scenario


def mistakes(step: Step, history: SessionHistory) -> Iterator[Violation]:
    """All mistakes in the calls and results of a request."""
    for result in step.leading_results:
        yield Violation("request-valid", step.number, _without_call(result))
    for index, trip in enumerate(step.round_trips):
        last = index == len(step.round_trips) - 1
        found = [*turn_mistakes(step, index, history)] if last else []
        found += _result_mistakes(step, trip, history, last=last)
        for name, message in found:
            yield Violation(name, step.number, message, trip.location)


# Results and their calls


def _result_mistakes(
    step: Step, trip: RoundTrip, history: SessionHistory, *, last: bool
) -> Iterator[tuple[str, str]]:
    answered = {call.id for call in trip.calls if call.id and call.results}
    # Of a call that is sent back twice, `_unknown_call` reports the second.
    unanswered = [
        call for call in trip.calls if call.needed and not call.results and call.id not in answered
    ]
    has_results = bool(trip.unmatched) or any(call.results for call in trip.calls)
    for call in trip.calls:
        if len(call.results) > 1:
            yield (
                "answer-each-once",
                f"{call} is answered {len(call.results)} times; a client sends one result for "
                "each call",
            )
    for result in trip.unmatched:
        name, message, replaces = _unmatched_result(step, trip, result, unanswered, history)
        if replaces:
            unanswered.pop(0)
        yield name, message
    may_leave = PROTOCOLS[step.request.api].client.may_leave_calls
    may_wait = last and not trip.user_follows and may_leave
    # `failure-reported` judges these.
    failures = expected_failures(step, history) if last else {}
    for call in unanswered:
        found = _missing_result(
            step, trip, call, history, has_results=has_results, may_wait=may_wait
        )
        if found is not None and call.key not in failures:
            yield found


def _unmatched_result(
    step: Step,
    trip: RoundTrip,
    result: Message,
    unanswered: list[HistoryCall],
    history: SessionHistory,
) -> tuple[str, str, bool]:
    """The invariant that a result without its call breaks, the message, and whether the result was
    meant for the first unanswered call."""
    id = result.call_id
    if id and any(call.id == id for answer in trip.played for call in answer.calls):
        message = f"the result of call {id!r} is sent without the call; a client sends back both"
        return "history-faithful", message, False
    earlier = {call.id for one in step.lineage() for call in one.calls}
    if id and id in earlier:
        message = f"call {id!r} of an earlier turn is answered again; each call takes one result"
        return "answer-each-once", message, False
    if id and history.streamed_before(step, id):
        message = (
            f"there is a result for call {id!r}, which was made in another conversation; "
            "a client keeps the calls and results of each conversation apart"
        )
        return "conversations-separate", message, bool(unanswered)
    if unanswered:
        message = (
            f"there is a result for {display(id or result.name)}, which is no call here, and none "
            f"for {unanswered[0]}; a client answers a call by the call's own id"
        )
        return "answer-each-once", message, True
    return "request-valid", _without_call(result), False


def _without_call(result: Message) -> str:
    return (
        f"the result for {display(result.call_id or result.name)} has no call before it; a client "
        "that shortens its history leaves out a call together with its result"
    )


def _missing_result(
    step: Step,
    trip: RoundTrip,
    call: HistoryCall,
    history: SessionHistory,
    *,
    has_results: bool,
    may_wait: bool,
) -> tuple[str, str] | None:
    """The invariant that a call without a result breaks, and the message.

    Args:
        has_results: whether the round trip has results for other calls.
        may_wait: whether the call may still be running.
    """
    if history.answered_before(step, trip, call) or repeats_executed_call(step, trip, call):
        message = (
            f"{call} waits for its result here, though an earlier request had it; a call is "
            "either waiting or executed, and the result of one that is stays in the history"
        )
        return "pending-or-executed", message
    if may_wait and not has_results:
        return None
    if has_results:
        message = (
            f"{call} has no result, while others of its turn have theirs; a client sends the "
            "results of all calls of a turn together"
        )
        return "tools-after-end", message
    return (
        "request-valid",
        f"{call} has no result; every call in the history is followed by its result",
    )


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
    streamed = [call for one in step.last.played for call in one.calls]
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
    prefix = PROTOCOLS[step.request.api].call_prefix
    messages = with_scenario_ids(step.request, scenario, position, prefix)
    own = [call.id for message in messages for call in message.calls]
    scenario_ids = dict(zip(sent, own, strict=True))
    return {scenario_ids.get(call.key, call.key): call.key for call in step.last.calls}
