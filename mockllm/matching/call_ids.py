"""The calls of a history by the ids of the scenario, where a client has ids of its own. Pure.

Gateways give calls new ids. With `ids: any` in the scenario a call in the history is known by its
turn, its name and its order among the calls of that name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mockllm.core.request import CallEcho, Message, Request
from mockllm.matching.history import read_history
from mockllm.matching.positions import PlannedCall, planned_calls
from mockllm.scenario.model import Expect, Scenario
from mockllm.scenario.reading.conditions import is_position


def results_by_id(expect: Expect, known: Sequence[str], before: Sequence[str]) -> Expect:
    """The conditions with ids in place of positions. A position that no call has stays.

    Args:
        known: the ids of all earlier calls; one of them is never a position.
        before: the ids of the calls in the turn right before, in order.
    """
    if not any(is_position(key) for key, _ in expect.results):
        return expect
    results = []
    for key, condition in expect.results:
        named = is_position(key) and key not in known and int(key) < len(before)
        results.append((before[int(key)] if named else key, condition))
    return replace(expect, results=tuple(results))


def with_scenario_ids(request: Request, scenario: Scenario, position: int) -> tuple[Message, ...]:
    """The messages of a request, with the scenario's ids for calls that may have any id."""
    turns = read_history(request.messages).turns
    known = {} if turns else _ids_by_order(request, scenario, position)
    waiting: list[PlannedCall] = []
    own: set[str] = set()
    out: list[Message] = []
    number = -1
    for index, message in enumerate(request.messages):
        if message.role == "assistant":
            if number < 0 or index > turns[number].end:
                number += 1
                sent = {call.id for call in turns[number].calls}
                planned = _free_calls(scenario, position - len(turns) + number, request.api)
                own = {call.id for call in planned}
                waiting = [call for call in planned if call.id not in sent]
            calls = tuple(
                call if call.id in own else _with_id(call, waiting, known) for call in message.calls
            )
            message = replace(message, calls=calls)
        elif message.call_id in known:
            message = replace(message, call_id=known[message.call_id])
        out.append(message)
    return tuple(out)


def _ids_by_order(request: Request, scenario: Scenario, position: int) -> dict[str, str]:
    """The ids of the calls of the turn before, by the ids of the results in a request that names
    that answer by its id and has results only."""
    planned = _free_calls(scenario, position - 1, request.api)
    sent = dict.fromkeys(message.call_id for message in request.messages if message.role == "tool")
    free = [call.id for call in planned if call.id not in sent]
    own = {call.id for call in planned}
    return dict(zip((id for id in sent if id not in own), free, strict=False))


def _free_calls(scenario: Scenario, position: int, api: str) -> list[PlannedCall]:
    """The calls of a turn that may have any id."""
    planned = planned_calls(scenario, position, api) if position >= 0 else None
    return [call for call in planned or () if call.any_id]


def _with_id(call: CallEcho, waiting: list[PlannedCall], known: dict[str, str]) -> CallEcho:
    """The call with the id of the first planned one of its name, which is used up."""
    planned = next((free for free in waiting if free.name == call.name), None)
    if planned is None or not call.id:
        return call
    waiting.remove(planned)
    known[call.id] = planned.id
    return replace(call, id=planned.id)
