"""The mistakes in the history of one request: calls and results that do not belong together. Pure.

Each mistake breaks exactly one conversation invariant; the rules that choose it are all here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mockllm.checking.conversations.round_trips import HistoryCall, RoundTrip, Step, StreamedCall
from mockllm.checking.conversations.session_history import SessionHistory
from mockllm.core.request import CallEcho, Message
from mockllm.core.text import display
from mockllm.protocols import PROTOCOLS
from mockllm.scenario.model import ResultCondition

__all__ = ["Mistake", "expected_failures", "mistakes"]


@dataclass(frozen=True, slots=True)
class Mistake:
    """One mistake in a request; `location` is that of the round trip with the mistake."""

    invariant: str
    step: Step
    location: int
    message: str


def mistakes(step: Step, history: SessionHistory) -> Iterator[Mistake]:
    """All mistakes in the calls and results of a request."""
    for result in step.leading_results:
        yield Mistake("request-valid", step, 0, _without_call(result))
    for index, trip in enumerate(step.round_trips):
        last = index == len(step.round_trips) - 1
        if last:
            for name, message in _turn_mistakes(step, index, history):
                yield Mistake(name, step, trip.location, message)
        for name, message in _result_mistakes(step, trip, history, last=last):
            yield Mistake(name, step, trip.location, message)


# Results and their calls


def _result_mistakes(
    step: Step, trip: RoundTrip, history: SessionHistory, *, last: bool
) -> Iterator[tuple[str, str]]:
    unanswered = [call for call in trip.calls if call.needed and not call.results]
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
    if history.answered_before(step, trip, call) or _repeats_executed_call(step, trip, call):
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


def _repeats_executed_call(step: Step, trip: RoundTrip, call: HistoryCall) -> bool:
    """Whether a call with a result in an earlier round trip is sent once more, although the model
    did not make it again."""
    earlier = step.round_trips[: step.round_trips.index(trip)]
    executed = any(
        one.id == call.id and one.results for previous in earlier for one in previous.calls
    )
    streamed = {one.id for answer in trip.played for one in answer.calls}
    return bool(call.id) and executed and bool(trip.played) and call.id not in streamed


def expected_failures(
    step: Step, history: SessionHistory
) -> Mapping[str, tuple[str, ResultCondition]]:
    """The calls that must have failed according to the expected turn, by id, or by name in
    protocols without ids; each with the call's id in the scenario and the condition."""
    spec = history.expected_turn(step)
    if spec is None or spec.request is None or step.last is None:
        return {}
    names = {call.id: call.name for one in step.last.played for call in one.calls}
    keys = {call.key for call in step.last.calls}
    return {
        key: (id, condition)
        for id, condition in spec.request.results
        for key in (id, names.get(id))
        if condition.error and key is not None and key in keys
    }


# The turn that is sent back


def _turn_mistakes(step: Step, index: int, history: SessionHistory) -> list[tuple[str, str]]:
    """How the latest turn in the history differs from what was streamed.

    Empty if the turn equals any answer at the location, or if an answer there did not arrive
    completely. Earlier turns are not compared, since clients may shorten them.
    """
    trip = step.round_trips[index]
    if not (trip.echoes or trip.results or trip.user_follows):
        return []  # a prefill: an assistant message without calls that ends the request
    found: list[tuple[str, str]] = []
    for answer in trip.answers:
        if not answer.clear:
            if answer.exchange.outcome == "played":
                return []
            continue
        found = list(_turn_differences(step, trip, answer, history))
        if not found:
            return []
    return found


def _turn_differences(
    step: Step, trip: RoundTrip, answer: Step, history: SessionHistory
) -> Iterator[tuple[str, str]]:
    remaining = list(answer.calls)
    unknown: list[CallEcho] = []
    for echo in trip.echoes:
        streamed = _find_streamed(step, echo, remaining)
        if streamed is None:
            unknown.append(echo)
            continue
        remaining.remove(streamed)
        yield from _altered_call(streamed, echo)
    known = {call.id for call in answer.calls}
    for echo in unknown:
        if _repeats_executed_call(step, trip, HistoryCall(echo.id, echo.name)):
            continue  # `_missing_result` reports it
        counterpart = next(
            (call for call in remaining if call.name == echo.name),
            remaining[0] if remaining else None,
        )
        if counterpart is not None and echo.id not in known:
            remaining.remove(counterpart)
        yield _unknown_call(step, echo, counterpart, history, twice=echo.id in known)
    for call in remaining:
        if call.offered and not call.malformed and not trip.stored:
            yield (
                "history-faithful",
                f"call {call.id!r} of {call.name!r} was streamed and is not sent back; a client "
                "sends back every call of a turn",
            )


def _find_streamed(
    step: Step, echo: CallEcho, candidates: list[StreamedCall]
) -> StreamedCall | None:
    """The streamed call that a client sends back: the one with the same id; without an id, the
    one with the same name, preferably with the same arguments."""
    found = [call for call in candidates if call.id == echo.id]
    if not found and not echo.id and _may_lack_ids(step):
        found = [call for call in candidates if call.name == echo.name]
        found.sort(key=lambda call: not _same_arguments(call.arguments, echo.arguments))
    return found[0] if found else None


def _may_lack_ids(step: Step) -> bool:
    return PROTOCOLS[step.request.api].client.may_lack_call_ids(step.request.body)


def _unknown_call(
    step: Step,
    echo: CallEcho,
    counterpart: StreamedCall | None,
    history: SessionHistory,
    *,
    twice: bool,
) -> tuple[str, str]:
    """The invariant that a call breaks which is not in the streamed turn, and the message.

    Args:
        counterpart: the streamed call that it most likely is.
        twice: whether the streamed call with its id was sent back already.
    """
    if twice:
        message = f"call {echo.id!r} is sent back twice; a client sends back each call once"
    elif echo.id and history.streamed_before(step, echo.id):
        return (
            "conversations-separate",
            f"call {echo.id!r} is in the history, but was made in another conversation; a client "
            "keeps the calls and results of each conversation apart",
        )
    elif counterpart is not None and counterpart.name == echo.name:
        message = (
            f"the call of {echo.name!r} was streamed with id {counterpart.id!r} and is sent back "
            f"with {display(echo.id)}; a client keeps the id of a call"
        )
    else:
        message = (
            f"call {display(echo.id)} of {display(echo.name)} is in the turn that is sent back, "
            "but was not streamed; a client sends back the calls that the model made"
        )
    return "history-faithful", message


def _altered_call(streamed: StreamedCall, echo: CallEcho) -> Iterator[tuple[str, str]]:
    prefix = f"call {streamed.id!r} was streamed with"
    if streamed.name != echo.name:
        yield (
            "history-faithful",
            f"{prefix} the name {streamed.name!r} and is sent back with {display(echo.name)}; "
            "a client keeps the name of a call",
        )
    if not streamed.malformed and not _same_arguments(streamed.arguments, echo.arguments):
        yield (
            "history-faithful",
            f"{prefix} the arguments {display(streamed.arguments)} and is sent back with "
            f"{display(echo.arguments)}; a client sends back the arguments it was given",
        )


def _same_arguments(streamed: str, echoed: str) -> bool:
    try:
        return _same(json.loads(streamed), json.loads(echoed or "{}"))
    except (ValueError, RecursionError):
        return streamed == echoed


def _same(left: Any, right: Any) -> bool:
    """Whether two JSON values are equal: 1 and 1.0 are, 1 and true are not."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_same(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_same, left, right))
    return isinstance(left, bool) == isinstance(right, bool) and bool(left == right)
