"""The turns that were recorded from the very request that came, and where a recording that the
request names begins. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mockllm.core.request import Request
from mockllm.matching.agreement import conditions_hold, history_agrees
from mockllm.matching.conditions import text_holds
from mockllm.matching.history import ModelTurn
from mockllm.matching.index import ScenarioIndex
from mockllm.matching.positions import turn_index
from mockllm.scenario.model import Scenario
from mockllm.scenario.precedence import is_recorded


def turns_of_same_request(
    served: ScenarioIndex,
    request: Request,
    headers: Mapping[str, str],
    named: Scenario | None,
) -> tuple[tuple[Scenario, int], ...]:
    """The turns that were recorded from this very request: of the scenario that the request names,
    or of those whose conditions hold."""
    turns = served.recorded_turns(request)
    if not turns:
        return ()
    users = [message.text for message in request.messages if message.role == "user"]

    def answers(scenario: Scenario) -> bool:
        match = scenario.match
        if named is not None:
            return scenario.name == named.name
        if match is None:  # only its own request finds it
            return scenario.plays_over(request.api)
        if not scenario.plays_over(request.api):
            return False
        texts = any(match.user is None or text_holds(match.user, text) for text in users or [""])
        return texts and conditions_hold(scenario, request, headers)

    return tuple((scenario, index) for scenario, index in turns if answers(scenario))


def start_after(history: Sequence[ModelTurn], index: int) -> int:
    """The index of the message at which a conversation begins that has `index` turns so far."""
    before = len(history) - index
    return history[before - 1].end + 1 if before > 0 else 0


def named_position(
    scenario: Scenario, request: Request, history: Sequence[ModelTurn], prefix: str
) -> tuple[int, int]:
    """Where the conversation of a named scenario begins, and the position in it.

    That is the start of the history. A recording may have begun later in a longer conversation: at
    the latest user message after which the tool calls agree.
    """
    whole = 0, len(history)
    if turn_index(scenario, len(history)) is not None and (
        not is_recorded(scenario) or history_agrees(scenario, history, request.api, prefix)
    ):
        return whole
    if not is_recorded(scenario):
        return whole
    for start in range(len(request.messages) - 1, -1, -1):
        after = [turn for turn in history if turn.end >= start]
        if (
            request.messages[start].role == "user"
            and turn_index(scenario, len(after)) is not None
            and history_agrees(scenario, after, request.api, prefix)
        ):
            return start, len(after)
    return whole


def conditions_of(scenario: Scenario) -> int:
    """How many conditions the match of a scenario has."""
    return scenario.match.conditions if scenario.match is not None else 0
