"""Whether a request is a valid request for the turn that was selected. Pure."""

from __future__ import annotations

from mockllm.core.request import Request
from mockllm.errors import ExpectationError
from mockllm.matching.call_ids import results_by_id, with_scenario_ids
from mockllm.matching.conditions import check_expect
from mockllm.matching.history import read_history
from mockllm.matching.positions import planned_calls
from mockllm.matching.select import Selection
from mockllm.protocols.base import WireProtocol
from mockllm.scenario.model import TurnSpec

__all__ = ["check_continuation", "check_expectations"]


def check_expectations(
    selection: Selection, spec: TurnSpec, request: Request, protocol: WireProtocol
) -> None:
    """Checks a request against the `request` conditions of its turn.

    Raises:
        ExpectationError: a condition does not hold; the message lists all that do not.
    """
    assert spec.request is not None
    scenario, prefix = selection.scenario, protocol.call_prefix
    earlier = [
        planned_calls(scenario, position, protocol.name, prefix) or ()
        for position in range(selection.position)
    ]
    calls = [(call.name, call.id) for turn in earlier for call in turn]
    messages = with_scenario_ids(request, scenario, selection.position, prefix)
    before = [call.id for call in earlier[-1]] if earlier else []
    if not before:  # the calls of an automatic reply are in the history alone
        turns = read_history(messages).turns
        before = [call.id for call in turns[-1].calls] if turns else []
    expect = results_by_id(spec.request, [id for _, id in calls], before)
    problems = check_expect(expect, request, messages[selection.start :], calls)
    if problems:
        raise ExpectationError(
            f"Turn {selection.index + 1} of scenario {selection.scenario.name!r} expects another "
            "request:\n" + "\n".join(f"- {problem}" for problem in problems),
            code="unexpected_request",
        )


def check_continuation(selection: Selection, request: Request, protocol: WireProtocol) -> None:
    """Checks the results in a request that continues an earlier answer by its id.

    There must be a result for each call of that answer, and for no other call. Where calls may have
    any ids, results are not compared with them.

    Raises:
        RequestError: a result is missing, or belongs to no call.
    """
    planned = planned_calls(
        selection.scenario, selection.position - 1, protocol.name, protocol.call_prefix
    )
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
