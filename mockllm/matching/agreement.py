"""Whether a scenario agrees with a request: its conditions hold, and the history has the calls of
its turns. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mockllm.core.request import Request
from mockllm.matching.conditions import judged_match
from mockllm.matching.history import ModelTurn
from mockllm.matching.positions import PlannedCall, planned_calls, turn_index
from mockllm.scenario.model import Scenario


def conditions_hold(scenario: Scenario, request: Request, headers: Mapping[str, str]) -> bool:
    """Whether all conditions hold besides `match.user`, which the index has checked."""
    match = scenario.match
    assert match is not None
    return not any(condition.problems for condition in judged_match(match, request, headers))


def history_agrees(scenario: Scenario, after: Sequence[ModelTurn], api: str, prefix: str) -> bool:
    """Whether the turns of the history have the tool calls of the scenario's turns."""
    for position, turn in enumerate(after):
        if turn_index(scenario, position) is None:
            return True  # past the end, which the caller reports
        planned = planned_calls(scenario, position, api, prefix)
        if planned is None:
            continue
        if not planned:  # most turns have no calls, and neither has the history
            if turn.calls:
                return False
            continue
        echoed = [(call.name, call.id) for call in turn.calls]
        # A malformed call may be missing. It is compared last, so that where ids are absent it does
        # not use up the echo of another call.
        for call in sorted(planned, key=lambda call: (call.malformed, call.any_id)):
            exact = (call.name, call.id)
            key = next((key for key in echoed if _is_echo(call, *key)), None)
            if exact in echoed:
                echoed.remove(exact)
            elif key is not None:
                echoed.remove(key)
            elif not call.malformed:
                return False
        if echoed:
            return False
    return True


def _is_echo(call: PlannedCall, name: str, id: str) -> bool:
    return name == call.name and (call.any_id or id in (call.id, ""))
