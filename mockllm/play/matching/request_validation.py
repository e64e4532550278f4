"""Whether a request is a valid request for the turn that was selected. Pure.

Gateways give calls new ids. With `ids: any` in the scenario a call in the history is known by its
turn, its name and its order among the calls of that name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from mockllm.core.errors import ExpectationError
from mockllm.core.request import CallEcho, Message, Request
from mockllm.play.agents.tools import may_call
from mockllm.play.matching.conditions import JudgedCondition, judged_expectations
from mockllm.play.matching.conversation import PlannedCall, Selection, planned_calls, read_history
from mockllm.scenario.model import Expect, Scenario, TurnSpec, with_changed_entries, with_entries
from mockllm.scenario.reading.conditions import is_position
from mockllm.wire.protocols.base import WireProtocol


def check_expectations(
    selection: Selection, spec: TurnSpec, request: Request, protocol: WireProtocol
) -> None:
    """Checks a request against the `request` conditions of its turn."""
    assert spec.request is not None
    judged = judged_request(selection, spec.request, request, protocol)
    problems = [problem for condition in judged for problem in condition.problems]
    if problems:
        raise ExpectationError(
            f"Turn {selection.index + 1} of scenario {selection.scenario.name!r} expects another "
            "request:\n" + "\n".join(f"- {problem}" for problem in problems),
            code="unexpected_request",
        )


def judged_request(
    selection: Selection, conditions: Expect, request: Request, protocol: WireProtocol
) -> list[JudgedCondition]:
    """Every condition in the `request` of the selected turn."""
    alone = judged_alone(conditions, request, protocol)
    if alone is not None:
        return alone
    scenario = selection.scenario
    earlier = [
        planned_calls(scenario, position, protocol.name) or ()
        for position in range(selection.position)
    ]
    calls = [(call.name, call.id) for turn in earlier for call in turn]
    messages = with_scenario_ids(request, scenario, selection.position)
    before = [call.id for call in earlier[-1]] if earlier else []
    if not before:  # the calls of an automatic reply are in the history alone
        turns = read_history(messages).turns
        before = [call.id for call in turns[-1].calls] if turns else []
    if not protocol.client.tool_fields:  # no request of an API without tools meets these
        conditions = _without_tools(conditions)
    expect = results_by_id(conditions, [id for _, id in calls], before)
    return list(judged_expectations(expect, request, messages[selection.start :], calls))


def judged_alone(
    conditions: Expect, request: Request, protocol: WireProtocol
) -> list[JudgedCondition] | None:
    """Every condition of a `request` that depends on no results of tools, and so on no earlier
    turn; None where one does."""
    if not protocol.client.tool_fields:
        conditions = _without_tools(conditions)
    if any(entry.results for _, entry in with_entries(conditions)):
        return None
    return list(judged_expectations(conditions, request, ()))


def check_continuation(selection: Selection, request: Request, protocol: WireProtocol) -> None:
    """Checks the results in a request that continues an earlier answer by its id.

    There must be a result for each call of that answer, and for no other call. Where calls may have
    any ids, results are not compared with them.
    """
    planned = planned_calls(selection.scenario, selection.position - 1, protocol.name)
    stored = protocol.stored
    if (
        stored is None
        or planned is None
        or selection.scenario.any_ids
        or read_history(request.messages).turns
    ):
        return
    sent = {result.call_id for result in request.results}
    for call in planned:
        if call.id not in sent and not call.malformed:
            raise stored.missing_result(call.id)
    known = {call.id for call in planned} | protocol.client.hosted_results(request.body)
    for id in sorted(sent - known):
        raise stored.unknown_result(id)


def _without_tools(expect: Expect) -> Expect:
    """The conditions without those on tools; a group that depends on one of them is left out."""

    def needs_tools(entry: Expect) -> bool:
        parts = (part for _, part in with_entries(entry))
        return any(part.results or part.offers or part.tool_choice is not None for part in parts)

    return replace(
        expect,
        results=(),
        offers=(),
        tool_choice=None,
        any_of=() if any(map(needs_tools, expect.any_of)) else expect.any_of,
        all_of=tuple(map(_without_tools, expect.all_of)),
        negated=None if expect.negated and needs_tools(expect.negated) else expect.negated,
    )


def results_by_id(expect: Expect, known: Sequence[str], before: Sequence[str]) -> Expect:
    """The conditions with ids in place of positions. A position that no call has stays.

    Args:
        known: the ids of all earlier calls; one of them is never a position.
        before: the ids of the calls in the turn right before, in order.
    """
    expect = with_changed_entries(expect, partial(results_by_id, known=known, before=before))
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
    beginnings = {turn.begin: number for number, turn in enumerate(turns)}
    for index, message in enumerate(request.messages):
        if index in beginnings:
            number = beginnings[index]
            sent = {call.id for call in turns[number].calls}
            planned = _free_calls(scenario, position - len(turns) + number, request.api)
            own = {call.id for call in planned}
            waiting = [call for call in planned if call.id not in sent]
        if message.calls:
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
    sent = dict.fromkeys(result.call_id for result in request.results)
    free = [call.id for call in planned if call.id not in sent]
    own = {call.id for call in planned}
    return dict(zip((id for id in sent if id not in own), free, strict=False))


def _free_calls(scenario: Scenario, position: int, api: str) -> list[PlannedCall]:
    """The calls of a turn that may have any id."""
    planned = planned_calls(scenario, position, api) if position >= 0 else None
    return [call for call in planned or () if call.any_id]


def _with_id(call: CallEcho, waiting: list[PlannedCall], known: dict[str, str]) -> CallEcho:
    """The call with the id of the first planned one of its name, which is used up."""
    planned = next((free for free in waiting if may_call(free.name, call.name)), None)
    if planned is None or not call.id:
        return call
    waiting.remove(planned)
    known[call.id] = planned.id
    return replace(call, id=planned.id)
