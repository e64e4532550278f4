"""What is wrong in the history of one request: calls and results that do not go together.

Each thing that is wrong has exactly one name of the conversation invariants; the rules that
choose between them are all here. Only pure functions may live here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mockllm.checking.conversations.round_trips import HistoryCall, RoundTrip, Step, StreamedCall
from mockllm.checking.conversations.session_history import SessionHistory
from mockllm.core.request import CallEcho, Message
from mockllm.matching.conditions import shown
from mockllm.protocols import PROTOCOLS
from mockllm.scenario.model import ResultCondition

__all__ = ["Mistake", "expected_failures", "mistakes"]


@dataclass(frozen=True, slots=True)
class Mistake:
    """One thing wrong in a request; `place` is that of the round it is about."""

    invariant: str
    step: Step
    location: int
    message: str


def mistakes(step: Step, history: SessionHistory) -> Iterator[Mistake]:
    """Everything wrong with the calls and results of a request."""
    for result in step.leading_results:
        yield Mistake("request-valid", step, 0, _without_call(result))
    for index, round in enumerate(step.rounds):
        last = index == len(step.rounds) - 1
        if last:
            for name, message in _unfaithful(step, index, history):
                yield Mistake(name, step, round.location, message)
        for name, message in _unpaired(step, round, history, last=last):
            yield Mistake(name, step, round.location, message)


# Results and their calls


def _unpaired(
    step: Step, round: RoundTrip, history: SessionHistory, *, last: bool
) -> Iterator[tuple[str, str]]:
    waiting = [call for call in round.calls if call.needed and not call.results]
    some = bool(round.unmatched) or any(call.results for call in round.calls)
    for call in round.calls:
        if len(call.results) > 1:
            yield (
                "answer-each-once",
                f"{call} is answered {len(call.results)} times; a client sends one result for "
                "each call",
            )
    for result in round.unmatched:
        name, message, takes = _stray(step, round, result, waiting, history)
        if takes:
            waiting.pop(0)
        yield name, message
    may_leave = PROTOCOLS[step.request.api].client.may_leave_calls
    ended = last and not round.user_follows and may_leave
    told = expected_failures(step, history) if last else {}
    for call in waiting:
        found = _unanswered(step, round, call, history, some=some, ended=ended)
        if found is not None and call.key not in told:
            yield found


def _stray(
    step: Step,
    round: RoundTrip,
    result: Message,
    waiting: list[HistoryCall],
    history: SessionHistory,
) -> tuple[str, str, bool]:
    """What a result without its call is, and whether it stands in the place of another."""
    id = result.call_id
    if id and any(call.id == id for answer in round.played for call in answer.calls):
        message = f"the result of call {id!r} is sent without the call; a client sends back both"
        return "history-faithful", message, False
    own = {call.id for one in step.lineage() for call in one.calls}
    if id and id in own:
        message = f"call {id!r} of an earlier turn is answered again; each call takes one result"
        return "answer-each-once", message, False
    if id and history.streamed_before(step, id):
        message = (
            f"there is a result for call {id!r}, which was made in another conversation; "
            "a client keeps the calls and results of each conversation apart"
        )
        return "conversations-separate", message, bool(waiting)
    if waiting:
        message = (
            f"there is a result for {shown(id or result.name)}, which is no call here, and none "
            f"for {waiting[0]}; a client answers a call by the call's own id"
        )
        return "answer-each-once", message, True
    return "request-valid", _without_call(result), False


def _without_call(result: Message) -> str:
    return (
        f"the result for {shown(result.call_id or result.name)} has no call before it; a client "
        "that shortens its history leaves out a call together with its result"
    )


def _unanswered(
    step: Step,
    round: RoundTrip,
    call: HistoryCall,
    history: SessionHistory,
    *,
    some: bool,
    ended: bool,
) -> tuple[str, str] | None:
    """What a call without a result is; with `ended`, it may still be waiting for one."""
    if history.answered_before(step, round, call) or _again(step, round, call):
        message = (
            f"{call} waits for its result here, though an earlier request had it; a call is "
            "either waiting or executed, and the result of one that is stays in the history"
        )
        return "pending-or-executed", message
    if ended and not some:
        return None
    if some:
        message = (
            f"{call} has no result, while others of its turn have theirs; a client sends the "
            "results of all calls of a turn together"
        )
        return "tools-after-end", message
    return (
        "request-valid",
        f"{call} has no result; every call in the history is followed by its result",
    )


def _again(step: Step, round: RoundTrip, call: HistoryCall) -> bool:
    """Whether a call that was answered in an earlier round is there once more, though the model
    did not make it again."""
    before = step.rounds[: step.rounds.index(round)]
    executed = any(one.id == call.id and one.results for each in before for one in each.calls)
    made = {one.id for answer in round.played for one in answer.calls}
    return bool(call.id) and executed and bool(round.played) and call.id not in made


def expected_failures(
    step: Step, history: SessionHistory
) -> Mapping[str, tuple[str, ResultCondition]]:
    """The calls that the turn asked for wants to have failed, with its conditions for them: by
    id, or by name where the protocol has no ids."""
    spec = history.due(step)
    if spec is None or spec.request is None or step.last is None:
        return {}
    names = {call.id: call.name for one in step.last.played for call in one.calls}
    asked = {call.key for call in step.last.calls}
    return {
        key: (id, condition)
        for id, condition in spec.request.results
        for key in (id, names.get(id))
        if condition.error and key is not None and key in asked
    }


# The turn that is sent back


def _unfaithful(step: Step, index: int, history: SessionHistory) -> list[tuple[str, str]]:
    """How the latest turn differs from what was streamed; nothing if that may be somebody's.

    Only the turn that is new is looked at: clients may shorten what is older.
    """
    round = step.rounds[index]
    if not (round.echo or round.results or round.user_follows):
        return []  # words put into the model's mouth
    found: list[tuple[str, str]] = []
    for answer in round.answers:
        if not answer.clear:
            if answer.exchange.outcome == "played":
                return []
            continue
        found = list(_compared(step, round, answer, history))
        if not found:
            return []
    return found


def _compared(
    step: Step, round: RoundTrip, answer: Step, history: SessionHistory
) -> Iterator[tuple[str, str]]:
    left = list(answer.calls)
    strangers: list[CallEcho] = []
    for echo in round.echo:
        made = _made(step, echo, left)
        if made is None:
            strangers.append(echo)
            continue
        left.remove(made)
        yield from _altered(made, echo)
    known = {call.id for call in answer.calls}
    for echo in strangers:
        if _again(step, round, HistoryCall(echo.id, echo.name)):
            continue  # told where it waits for a result
        twin = next((call for call in left if call.name == echo.name), left[0] if left else None)
        if twin is not None and echo.id not in known:
            left.remove(twin)
        yield _strange(step, echo, twin, history, twice=echo.id in known)
    for made in left:
        if made.offered and not made.malformed and not round.kept:
            yield (
                "history-faithful",
                f"call {made.id!r} of {made.name!r} was streamed and is not sent back; a client "
                "sends back every call of a turn",
            )


def _made(step: Step, echo: CallEcho, left: list[StreamedCall]) -> StreamedCall | None:
    """The call that one sent back is, by its id, or where it has none by all the rest."""
    found = [call for call in left if call.id == echo.id]
    if not found and not echo.id and _may_lack_ids(step):
        found = [call for call in left if call.name == echo.name]
        found.sort(key=lambda call: not _same_arguments(call.arguments, echo.arguments))
    return found[0] if found else None


def _may_lack_ids(step: Step) -> bool:
    return PROTOCOLS[step.request.api].client.may_lack_call_ids(step.request.body)


def _strange(
    step: Step, echo: CallEcho, twin: StreamedCall | None, history: SessionHistory, *, twice: bool
) -> tuple[str, str]:
    """What a call is that the turn did not make."""
    if twice:
        message = f"call {echo.id!r} is sent back twice; a client sends back each call once"
    elif echo.id and history.streamed_before(step, echo.id):
        return (
            "conversations-separate",
            f"call {echo.id!r} is in the history, but was made in another conversation; a client "
            "keeps the calls and results of each conversation apart",
        )
    elif twin is not None and twin.name == echo.name:
        message = (
            f"the call of {echo.name!r} was streamed with id {twin.id!r} and is sent back with "
            f"{shown(echo.id)}; a client keeps the id of a call"
        )
    else:
        message = (
            f"call {shown(echo.id)} of {shown(echo.name)} is in the turn that is sent back, but "
            "was not streamed; a client sends back the calls that the model made"
        )
    return "history-faithful", message


def _altered(made: StreamedCall, echo: CallEcho) -> Iterator[tuple[str, str]]:
    what = f"call {made.id!r} was streamed with"
    if made.name != echo.name:
        yield (
            "history-faithful",
            f"{what} the name {made.name!r} and is sent back with {shown(echo.name)}; a client "
            "keeps the name of a call",
        )
    if not made.malformed and not _same_arguments(made.arguments, echo.arguments):
        yield (
            "history-faithful",
            f"{what} the arguments {shown(made.arguments)} and is sent back with "
            f"{shown(echo.arguments)}; a client sends back the arguments it was given",
        )


def _same_arguments(made: str, echoed: str) -> bool:
    try:
        return _same(json.loads(made), json.loads(echoed or "{}"))
    except (ValueError, RecursionError):
        return made == echoed


def _same(left: Any, right: Any) -> bool:
    """Whether two JSON values are equal: 1 and 1.0 are, 1 and true are not."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_same(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_same, left, right))
    return isinstance(left, bool) == isinstance(right, bool) and bool(left == right)
