"""Whether a request is a valid request for the turn that was selected. Pure."""

from __future__ import annotations

from mockllm.core.request import Request
from mockllm.errors import ExpectationError
from mockllm.matching.call_ids import results_by_id, with_scenario_ids
from mockllm.matching.conditions import JudgedCondition, judged_expectations
from mockllm.matching.history import read_history
from mockllm.matching.positions import planned_calls
from mockllm.matching.select import Selection
from mockllm.protocols.base import WireProtocol
from mockllm.scenario.model import Expect, TurnSpec


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
    expect = results_by_id(conditions, [id for _, id in calls], before)
    return list(judged_expectations(expect, request, messages[selection.start :], calls))


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
        or any(message.role == "assistant" for message in request.messages)
    ):
        return
    sent = {message.call_id for message in request.messages if message.role == "tool"}
    for call in planned:
        if call.id not in sent and not call.malformed:
            raise stored.missing_result(call.id)
    known = {call.id for call in planned} | protocol.client.hosted_results(request.body)
    for id in sorted(sent - known):
        raise stored.unknown_result(id)
