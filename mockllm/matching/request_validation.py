"""Whether a request may have the turn that it asks for. Only pure functions may live here."""

from __future__ import annotations

from mockllm.core.request import Request
from mockllm.errors import ExpectationError, RequestError
from mockllm.matching.conditions import check_expect
from mockllm.matching.positions import planned_calls
from mockllm.matching.select import Pick
from mockllm.protocols.base import WireProtocol
from mockllm.scenario.model import TurnSpec

__all__ = ["check_continuation", "check_expectations"]


def check_expectations(
    picked: Pick, spec: TurnSpec, request: Request, protocol: WireProtocol
) -> None:
    """Holds a request to the `request` conditions of its turn.

    Raises:
        ExpectationError: with all that differs.
    """
    assert spec.request is not None
    made = [
        (call.name, call.id)
        for position in range(picked.position)
        for call in planned_calls(picked.scenario, position, protocol.name, protocol.call_prefix)
        or ()
    ]
    since = request.messages[picked.start :]
    problems = check_expect(spec.request, request, since, made)
    if problems:
        raise ExpectationError(
            f"Turn {picked.index + 1} of scenario {picked.scenario.name!r} expects another "
            "request:\n" + "\n".join(f"- {problem}" for problem in problems),
            code="unexpected_request",
        )


def check_continuation(picked: Pick, request: Request, protocol: WireProtocol) -> None:
    """A request that points at an earlier answer has to bring results for its calls, and for
    no others.

    Raises:
        RequestError: as the API says it.
    """
    planned = planned_calls(
        picked.scenario, picked.position - 1, protocol.name, protocol.call_prefix
    )
    if planned is None or any(message.role == "assistant" for message in request.messages):
        return
    sent = {message.call_id for message in request.messages if message.role == "tool"}
    for call in planned:
        if call.id not in sent and not call.malformed:
            raise RequestError(f"No tool output found for function call {call.id}.", param="input")
    known = {call.id for call in planned}
    for id in sorted(sent - known):
        raise RequestError(
            f"No tool call found for function call output with call_id {id}.", param="input"
        )
