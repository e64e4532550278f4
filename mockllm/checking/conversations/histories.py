"""The histories that clients send back: turns that differ from what was streamed, calls and results
that do not belong together. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from mockllm.checking.conversations.round_trips import HistoryCall, RoundTrip, Step, StreamedCall
from mockllm.checking.conversations.session_history import (
    JudgedSession,
    SessionHistory,
    Violation,
    Violations,
    violation,
)
from mockllm.checking.judging.difference import canonical_text
from mockllm.core.request import CallEcho, Message
from mockllm.core.text import display
from mockllm.play.matching.conversation import turn_at
from mockllm.play.matching.request_validation import results_by_id, with_scenario_ids
from mockllm.play.replay.sessions.shortened_bodies import is_shortened
from mockllm.scenario.model import ResultCondition, Scenario


def sent_back(record: JudgedSession) -> Violations:
    """The mistakes in the latest turn of each history, as it is sent back.

    Earlier turns are not judged, since clients may shorten them.
    """
    for step in record.history.steps:
        if step.last is not None:
            yield from _differences(step.last, record.history)
            yield from _dropped_text(step.last)
            yield from _calls_sent_again(step.last)


def _differences(trip: RoundTrip, history: SessionHistory) -> list[Violation]:
    """The differences between a turn in the history and the streamed one.

    Empty if the turn equals any answer at the location, or if an answer there did not arrive
    completely.
    """
    if not (trip.echoes or trip.results or trip.user_follows):
        return []  # a prefill: an assistant message without calls that ends the request
    differences: list[Violation] = []
    for answer in trip.answers:
        if not answer.clear:
            if answer.exchange.outcome == "played":
                return []
            continue
        differences = list(_turn_differences(trip, answer, history))
        if not differences:
            return []
    return differences


def _turn_differences(trip: RoundTrip, answer: Step, history: SessionHistory) -> Violations:
    remaining = list(answer.calls)
    unknown: list[CallEcho] = []
    for echo in trip.echoes:
        streamed = _find_streamed(trip.step, echo, remaining)
        if streamed is None:
            unknown.append(echo)
            continue
        remaining.remove(streamed)
        yield from _altered_call(trip, answer, streamed, echo)
    known = {call.id for call in answer.calls}
    for echo in unknown:
        if trip.repeats_executed(echo.id):
            # Without a result it is `_missing_result` that reports it.
            if any(call.id == echo.id and call.results for call in trip.calls):
                yield violation("call-and-result-twice", trip, id=echo.id)
            continue
        counterpart = next(
            (call for call in remaining if call.name == echo.name),
            remaining[0] if remaining else None,
        )
        if counterpart is not None and echo.id not in known:
            remaining.remove(counterpart)
        yield _unknown_call(trip, echo, counterpart, history, twice=echo.id in known)
    for call in remaining:
        # Without tools, a client that takes no calls rightly leaves out what it cannot run.
        due = call.offered or (not answer.request.tools and trip.takes_calls)
        if due and not call.malformed and not trip.stored:
            yield violation("call-lost", trip, call=call)


def _find_streamed(
    step: Step, echo: CallEcho, candidates: list[StreamedCall]
) -> StreamedCall | None:
    """The streamed call that a client sends back: the one with the same id; without an id, or where
    any will do, the one with the same name, preferably with the same arguments."""
    same = [call for call in candidates if call.id == echo.id]
    if not same:
        lacks_id = not echo.id and step.protocol.client.may_lack_call_ids(step.request.body)
        same = [call for call in candidates if call.name == echo.name and (lacks_id or call.any_id)]
        same.sort(key=lambda call: not _same_arguments(call.arguments, echo.arguments))
    return same[0] if same else None


def _unknown_call(
    trip: RoundTrip,
    echo: CallEcho,
    counterpart: StreamedCall | None,
    history: SessionHistory,
    *,
    twice: bool,
) -> Violation:
    """The violation by a call that is not in the streamed turn.

    Args:
        counterpart: the streamed call that it most likely is.
        twice: whether the streamed call with its id was sent back already.
    """
    if twice:
        return violation("call-twice", trip, id=echo.id)
    if echo.id and history.streamed_before(trip.step, echo.id):
        return violation("call-of-other-conversation", trip, id=echo.id)
    given = display(echo.id)
    if counterpart is not None and counterpart.name == echo.name:
        id = counterpart.id
        return violation("call-id-changed", trip, name=echo.name, streamed=id, given=given)
    return violation("call-invented", trip, given=given, tool=display(echo.name))


def _calls_sent_again(trip: RoundTrip) -> Violations:
    """The calls of an earlier turn that follow once more, where the model has not answered yet."""
    if trip.answers:
        return  # `_turn_differences` compares the turn with the answers
    streamed = {call.id for earlier in trip.earlier for call in earlier.streamed}
    executed = {call.id for earlier in trip.earlier for call in earlier.calls if call.results}
    for call in trip.calls:
        if call.results and call.id in streamed & executed:
            yield violation("call-and-result-twice", trip, id=call.id)


def _dropped_text(trip: RoundTrip) -> Violations:
    """Whether the text of a turn with calls is missing in the turn that is sent back.

    Only where every answer that the client may have got had a text. A text that was changed is not
    reported: clients trim and shorten it.
    """
    if not trip.echoes or trip.stored or trip.text.strip() or not trip.answers:
        return
    texts = [
        answer.turn.text for answer in trip.answers if answer.clear and answer.turn is not None
    ]
    if len(texts) == len(trip.answers) and all(text.strip() for text in texts):
        yield violation("text-dropped", trip, text=display(texts[-1]))


def _altered_call(
    trip: RoundTrip, answer: Step, streamed: StreamedCall, echo: CallEcho
) -> Violations:
    id, given = streamed.id, display(echo.arguments)
    if streamed.name != echo.name:
        name = streamed.name
        yield violation("call-name-changed", trip, id=id, name=name, given=display(echo.name))
    if streamed.malformed or echo.replaced or is_shortened(echo.arguments):
        return
    if not echo.arguments.strip() and _same_arguments(streamed.arguments, "{}"):
        if _must_send_object(trip.step, answer):
            yield violation("arguments-not-empty-object", trip, id=id, given=given)
    elif not _same_arguments(streamed.arguments, echo.arguments):
        sent = display(streamed.arguments)
        yield violation("arguments-changed", trip, id=id, streamed=sent, given=given)


def _must_send_object(step: Step, answer: Step) -> bool:
    """Whether a client has got an empty object, or has to send one, for a call without arguments.

    AG-UI streams no arguments for such a call, so its clients have none to send. A recorded service
    may have streamed an empty text, which the client then sends back rightly.
    """
    protocol = step.protocol
    if protocol.client.arguments_are_values:
        return True
    return protocol.zero_arguments == "{}" and answer.exchange.played.recorded != "exact"


def _same_arguments(streamed: str, echoed: str) -> bool:
    """Whether arguments are the same text, or the same JSON value."""
    return streamed == echoed or canonical_text(streamed) == canonical_text(echoed or "{}")


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
    """The violation by a result without its call, and whether the result was meant for the first
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
    """The violation by a call without a result; None where it may still be running."""
    client = trip.step.protocol.client
    if history.answered_before(trip, call) or trip.repeats_executed(call.id):
        return violation("result-gone", trip, call=call)
    if not client.needs_results(trip.step.request):
        return None
    if trip.unmatched or any(other.results for other in trip.calls):
        return violation("result-apart", trip, call=call)
    if trip is trip.step.last and not trip.user_follows and client.may_leave_calls:
        return None
    if trip.step.protocol.address.is_socket:
        comes = history.is_answered(trip.step.request.api, call)
        return None if comes else violation("result-never-came", trip, call=call)
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
