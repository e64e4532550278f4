"""The scenarios that may answer a request, and where their conversations begin in it: by their
conditions and the tool calls of their turns, or recorded from this very request. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mockllm.core.request import Request
from mockllm.matching.conditions import first_problem, judged_match, text_holds
from mockllm.matching.history import ModelTurn, read_history
from mockllm.matching.index import ScenarioIndex, named_scenario
from mockllm.matching.positions import PlannedCall, planned_calls, turn_index
from mockllm.scenario.model import Scenario
from mockllm.scenario.precedence import is_recorded


@dataclass(frozen=True, slots=True)
class Candidate:
    """A scenario that may answer.

    Args:
        playable: whether it has a turn at the position.
    """

    scenario: Scenario
    start: int
    position: int
    playable: bool

    @property
    def rank(self) -> tuple[int, int]:
        """The highest rank answers: the most conditions, then the latest beginning."""
        return conditions_of(self.scenario), self.start


def candidates(
    served: ScenarioIndex,
    request: Request,
    headers: Mapping[str, str],
    history: Sequence[ModelTurn],
) -> Iterator[Candidate]:
    """Every scenario that matches and whose tool calls are those in the history, each once with
    its latest beginning. Scenarios with `match: any` are not among them."""
    seen: set[str] = set()
    for start, after in _beginnings(request, history):
        for scenario in served.by_user_text(request.messages[start].text):
            if scenario.name in seen or not scenario.plays_over(request.api):
                continue
            if not conditions_hold(scenario, request, headers) or not history_agrees(
                scenario, after, request.api
            ):
                continue
            seen.add(scenario.name)
            playable = turn_index(scenario, len(after)) is not None
            yield Candidate(scenario, start, len(after), playable)
    for scenario in served.by_model(request.model):
        candidate = candidate_without_user(scenario, request, headers, history)
        if candidate is not None:
            yield candidate


def candidate_without_user(
    scenario: Scenario,
    request: Request,
    headers: Mapping[str, str],
    history: Sequence[ModelTurn],
) -> Candidate | None:
    """A scenario without `match.user`, if it matches.

    It begins with the history or, where its tool calls are others, at the latest user message
    after which they agree.
    """
    if not scenario.plays_over(request.api) or not conditions_hold(scenario, request, headers):
        return None
    past_end: Candidate | None = None
    for start, after in ((0, history), *_beginnings(request, history)):
        if history_agrees(scenario, after, request.api):
            candidate = Candidate(scenario, start, len(after), True)
            if turn_index(scenario, len(after)) is not None:
                return candidate
            past_end = past_end or Candidate(scenario, start, len(after), False)
    return past_end


def begins(
    served: ScenarioIndex,
    scenario: Scenario,
    request: Request,
    headers: Mapping[str, str],
) -> tuple[int, bool] | None:
    """The position at which a scenario would answer a request, and whether it has a turn there;
    None where its conditions do not hold, or its tool calls are not those in the history."""
    history = read_history(request.messages).turns
    if named_scenario(served, request, headers) == scenario.name:
        position = named_position(scenario, request, history)[1]
        return position, turn_index(scenario, position) is not None
    begun = list(candidates(served, request, headers, history))
    if scenario in served.fallbacks:
        last = candidate_without_user(scenario, request, headers, history)
        begun += [] if last is None else [last]
    if not begun:
        return None
    best = max(begun, key=lambda candidate: (candidate.playable, candidate.rank))
    return best.position, best.playable


# Agreement with the history


def _beginnings(
    request: Request, history: Sequence[ModelTurn]
) -> Iterator[tuple[int, Sequence[ModelTurn]]]:
    """Where a conversation may begin: the index of each user message, the latest first, and the
    model's turns after it."""
    ends = [turn.end for turn in history]
    for start in range(len(request.messages) - 1, -1, -1):
        if request.messages[start].role == "user":
            yield start, history[bisect_right(ends, start) :]


def conditions_hold(scenario: Scenario, request: Request, headers: Mapping[str, str]) -> bool:
    """Whether all conditions hold besides `match.user`, which the index has checked."""
    match = scenario.match
    assert match is not None
    return first_problem(judged_match(match, request, headers)) is None


def history_agrees(scenario: Scenario, after: Sequence[ModelTurn], api: str) -> bool:
    """Whether the turns of the history have the tool calls of the scenario's turns."""
    for position, turn in enumerate(after):
        if turn_index(scenario, position) is None:
            return True  # past the end, which the caller reports
        planned = planned_calls(scenario, position, api)
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


# Recordings


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
    scenario: Scenario, request: Request, history: Sequence[ModelTurn]
) -> tuple[int, int]:
    """Where the conversation of a named scenario begins, and the position in it.

    That is the start of the history. A recording may have begun later in a longer conversation: at
    the latest user message after which the tool calls agree.
    """
    if is_recorded(scenario):
        for start, after in ((0, history), *_beginnings(request, history)):
            if turn_index(scenario, len(after)) is not None and history_agrees(
                scenario, after, request.api
            ):
                return start, len(after)
    return 0, len(history)


def conditions_of(scenario: Scenario) -> int:
    """How many conditions the match of a scenario has."""
    return scenario.match.conditions if scenario.match is not None else 0
