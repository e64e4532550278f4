"""The scenarios that may answer a request, and where their conversations begin in it: by their
conditions and the tool calls of their turns, or recorded from this very request. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence

from mockllm.core.record import record
from mockllm.core.request import Request
from mockllm.matching.conditions import first_problem, judged_match, text_holds
from mockllm.matching.history import ModelTurn
from mockllm.matching.index import ScenarioIndex, named_scenario
from mockllm.matching.positions import PlannedCall, planned_calls, turn_index
from mockllm.scenario.model import Scenario
from mockllm.scenario.precedence import is_recorded


@record
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


@record
class Search:
    """A request, and what it is matched with.

    Args:
        served: the scenarios that may answer.
        headers: with lower-case names.
        turns: those of the model in the history that the request carries.
    """

    served: ScenarioIndex
    request: Request
    headers: Mapping[str, str]
    turns: Sequence[ModelTurn]

    def candidates(
        self, wanted: Callable[[Scenario], bool] = lambda scenario: True
    ) -> Iterator[Candidate]:
        """Every scenario that matches and whose tool calls are those in the history, each once with
        its latest beginning. Scenarios with `match: any` are not among them.

        Args:
            wanted: of the others nothing is judged, which would take long where many match.
        """
        api = self.request.api
        seen: set[str] = set()
        for start, after in self._beginnings():
            for scenario in self.served.by_user_text(self.request.messages[start].text):
                if scenario.name in seen or not wanted(scenario):
                    continue
                if not self._may_answer(scenario):
                    continue
                if history_agrees(scenario, after, api):
                    seen.add(scenario.name)
                    playable = turn_index(scenario, len(after)) is not None
                    yield Candidate(scenario, start, len(after), playable)
        for scenario in self.served.by_model(self.request.model):
            candidate = self.without_user(scenario) if wanted(scenario) else None
            if candidate is not None:
                yield candidate

    def without_user(self, scenario: Scenario) -> Candidate | None:
        """A scenario without `match.user`, if it matches.

        It begins with the history or, where its tool calls are others, at the latest user message
        after which they agree.
        """
        if not self._may_answer(scenario):
            return None
        past_end: Candidate | None = None
        for start, after in ((0, self.turns), *self._beginnings()):
            if history_agrees(scenario, after, self.request.api):
                candidate = Candidate(scenario, start, len(after), True)
                if turn_index(scenario, len(after)) is not None:
                    return candidate
                past_end = past_end or Candidate(scenario, start, len(after), False)
        return past_end

    def begins(self, scenario: Scenario) -> tuple[int, bool] | None:
        """The position at which the only scenario would answer, and whether it has a turn there;
        None where its conditions do not hold, or its tool calls are not those in the history."""
        if named_scenario(self.served, self.request, self.headers) == scenario.name:
            position = self.named_position(scenario)[1]
            return position, turn_index(scenario, position) is not None
        begun = list(self.candidates())
        if scenario in self.served.fallbacks and (last := self.without_user(scenario)) is not None:
            begun.append(last)
        if not begun:
            return None
        best = max(begun, key=lambda candidate: (candidate.playable, candidate.rank))
        return best.position, best.playable

    def of_same_request(self, named: Scenario | None) -> tuple[tuple[Scenario, int], ...]:
        """The turns that were recorded from this very request: of the scenario that the request
        names, or of those whose conditions hold."""
        turns = self.served.recorded_turns(self.request)
        return tuple(turn for turn in turns if self._is_found(turn[0], named)) if turns else ()

    def _is_found(self, scenario: Scenario, named: Scenario | None) -> bool:
        match = scenario.match
        if named is not None:
            return scenario.name == named.name
        if match is None:  # only its own request finds it
            return scenario.plays_over(self.request.api)
        users = [message.text for message in self.request.messages if message.role == "user"]
        texts = any(match.user is None or text_holds(match.user, text) for text in users or [""])
        return texts and self._may_answer(scenario)

    def named_position(self, scenario: Scenario) -> tuple[int, int]:
        """Where the conversation of a named scenario begins, and the position in it.

        That is the start of the history. A recording may have begun later in a longer conversation:
        at the latest user message after which the tool calls agree.
        """
        if is_recorded(scenario):
            for start, after in ((0, self.turns), *self._beginnings()):
                has_turn = turn_index(scenario, len(after)) is not None
                if has_turn and history_agrees(scenario, after, self.request.api):
                    return start, len(after)
        return 0, len(self.turns)

    def _beginnings(self) -> Iterator[tuple[int, Sequence[ModelTurn]]]:
        """Where a conversation may begin: the index of each user message, the latest first, and the
        model's turns after it."""
        ends = [turn.end for turn in self.turns]
        for start in range(len(self.request.messages) - 1, -1, -1):
            if self.request.messages[start].role == "user":
                yield start, self.turns[bisect_right(ends, start) :]

    def _may_answer(self, scenario: Scenario) -> bool:
        """Whether a scenario plays over the API, and all its conditions hold besides `match.user`,
        which the index has checked."""
        match = scenario.match
        assert match is not None
        judged = judged_match(match, self.request, self.headers)
        return scenario.plays_over(self.request.api) and first_problem(judged) is None


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


def start_after(history: Sequence[ModelTurn], index: int) -> int:
    """The index of the message at which a conversation begins that has `index` turns so far."""
    before = len(history) - index
    return history[before - 1].end + 1 if before > 0 else 0


def conditions_of(scenario: Scenario) -> int:
    """How many conditions the match of a scenario has."""
    return scenario.match.conditions if scenario.match is not None else 0
