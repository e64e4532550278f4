"""Selects the scenario and the turn that answer a request, from the request alone.

A scenario that the request names is played from the start of the history. Otherwise a scenario
begins at a user message that meets its `match.user` and after which the model's turns have the tool
calls of its own turns. Of several such messages the earliest counts after which it has a turn left,
so that a conversation goes on whatever the user says. Of several scenarios the one with the most
conditions wins, then the one that begins latest, then `mockllm.scenario.precedence` breaks the tie.

A request that was recorded gets the turn that was recorded from it, if the conditions of its
scenario still hold (of a later turn those on headers) and no authored scenario with more conditions
matches. Several recordings of the same request, or with equally good conditions, are played in
their order: `Selection.recordings`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from operator import attrgetter

from mockllm.core.errors import NoMatchError
from mockllm.core.record import record
from mockllm.core.request import Message, Request
from mockllm.core.text import did_you_mean, quantity
from mockllm.play.matching.conditions import (
    first_problem,
    groups_read_message,
    judged_match,
    message_holds,
    text_holds,
)
from mockllm.play.matching.conversation import (
    ModelTurn,
    Selection,
    calls_agree,
    has_derived_ids,
    history_agrees,
    read_history,
    text_agrees,
    texts_agree,
    turn_index,
)
from mockllm.play.matching.index import SCENARIO_HEADER, ScenarioIndex, TokenOrigin, named_scenario
from mockllm.play.matching.mismatch import NEAREST, explain_mismatch
from mockllm.scenario.model import Match, Scenario
from mockllm.scenario.precedence import is_recorded, precedence, user_condition
from mockllm.wire.protocols import PROTOCOLS


def select(served: ScenarioIndex, request: Request, headers: Mapping[str, str]) -> Selection:
    """The turn that answers a request.

    Raises:
        NoMatchError: no scenario answers, or several do equally well; the message names them.
        RequestError: the request continues an answer that this server did not give.
    """
    history = read_history(request.messages).turns
    name = named_scenario(served, request, headers)
    named = _scenario_by_name(served, name, request) if name is not None else None
    search = Search(served, request, headers, history)
    same = search.of_same_request(named)
    if same and not (named is None and _is_overridden(search, same)):
        scenario, index = same[0]
        start = start_after(history, index)
        continued = request.previous is not None
        return Selection(scenario, index, index, start, continued, same)
    resumed = _resumed_position(search)
    if resumed is not None and (named is None or named.name == resumed[0].name):
        return _selection(*resumed)
    referenced = _referenced_position(served, request, history)
    if named is not None:
        if referenced is not None and referenced[0].name == named.name:
            return _selection(*referenced, 0, continued=True)
        start, way, position = search.named_position(named)
        return _selection(way, position, start, continued=referenced is not None)
    if referenced is not None:
        scenario, position = referenced
        if turn_index(scenario, position) is not None or not request.users:
            return _selection(scenario, position, 0, continued=True)
    best = _best_candidates(search)
    if not best and referenced is not None:
        return _selection(*referenced, 0, continued=True)
    if not best:
        message = explain_mismatch(served, request, headers)
        raise NoMatchError(message, status=404, code="no_scenario")
    selection = _selection(best[0].scenario, best[0].position, best[0].start)
    if len(best) == 1:
        return selection
    indices = [(equal.scenario, turn_index(equal.scenario, equal.position)) for equal in best]
    return replace(selection, recordings=tuple((s, i) for s, i in indices if i is not None))


def select_for_auxiliary(
    served: ScenarioIndex,
    request: Request,
    headers: Mapping[str, str],
    names: Callable[[Scenario], bool],
) -> Selection | None:
    """The turn that answers a request beside the conversation: of a scenario that names it, or one
    that was recorded from it; None where there is none.

    Args:
        names: whether a scenario that answers the request means it.
    """
    history = read_history(request.messages).turns
    search = Search(served, request, headers, history)
    same = search.of_same_request(None)
    if same:
        scenario, index = same[0]
        return Selection(scenario, index, index, start_after(history, index), recordings=same)
    found = [one for one in search.candidates(names) if one.playable]
    if not found:
        return None
    best = max(found, key=lambda candidate: candidate.rank)
    return _selection(best.scenario, best.position, best.start)


def last_answer(
    served: ScenarioIndex, request: Request, headers: Mapping[str, str]
) -> tuple[Scenario, int] | None:
    """The scenario and the position of the last answer in a history, whether or not the scenario
    has a turn after it; None where no scenario has given it."""
    history = read_history(request.messages).turns
    search = Search(served, request, headers, history)
    resumed = _resumed_position(search)
    if resumed is not None:
        return resumed[0], resumed[1] - 1
    referenced = _referenced_position(served, request, history)
    if referenced is not None:
        return referenced[0], referenced[1] - 1
    begun = list(search.candidates())
    if not begun:
        begun = [one for one in map(search.without_user, served.fallbacks) if one is not None]
    best = max(begun, key=lambda one: (one.playable, one.rank), default=None)
    return None if best is None or not best.position else (best.scenario, best.position - 1)


def _is_overridden(search: Search, same: Sequence[tuple[Scenario, int]]) -> bool:
    """Whether an authored scenario with more conditions than the recordings matches."""
    most = max(conditions_of(scenario) for scenario, _ in same)

    def may_override(scenario: Scenario) -> bool:
        return conditions_of(scenario) > most and not is_recorded(scenario)

    return any(candidate.playable for candidate in search.candidates(may_override))


def _referenced_position(
    served: ScenarioIndex, request: Request, history: Sequence[ModelTurn]
) -> tuple[Scenario, int] | None:
    """The scenario and the position after an answer of ours that the request names by its id, or
    of which it names an item."""
    if request.previous is not None:
        known = served.by_token(request.previous)
        if known is None:
            stored = PROTOCOLS[request.api].stored
            assert stored is not None, f"{request.api} keeps no answers, and continues one"
            named = request.body.get(stored.field)
            id = named if isinstance(named, str) else f"{stored.prefix}{request.previous}"
            raise stored.previous_not_found(id)
        return _continue_from(known, request, history)
    for index in range(len(request.messages) - 1, -1, -1):
        ref = request.messages[index].ref
        known = served.by_token(ref) if ref else None
        if known is not None:
            later = [turn for turn in history if turn.begin > index]
            return _continue_from(known, request, later)
    return None


def _resumed_position(search: Search) -> tuple[Scenario, int, int] | None:
    """The scenario, the position and the beginning of a conversation that goes on after a summary
    of ours; None where there is none, or another scenario begins after it."""
    resumes = search.request.resumes
    known = None if resumes is None else search.served.by_token(resumes[0])
    if resumes is None or known is None:
        return None
    start = resumes[1]
    later = [turn for turn in search.turns if turn.begin >= start]
    scenario, position = _continue_from(known, search.request, later)
    if any(
        other.playable and other.start >= start and other.scenario.name != scenario.name
        for other in search.candidates()
    ):
        return None
    return scenario, position, start


def _continue_from(
    known: TokenOrigin, request: Request, later: Sequence[ModelTurn]
) -> tuple[Scenario, int]:
    """The scenario as the conversation goes, and the position, after an answer of ours and later
    turns of the model."""
    scenario, position, taken = known.scenario, known.position, known.taken
    if taken is not None:
        from mockllm.play.matching.branching import way_after  # few scenarios need it

        scenario = way_after(scenario, position, taken, request, later)
    return scenario, position + 1 + len(later)


def _scenario_by_name(served: ScenarioIndex, name: str, request: Request) -> Scenario:
    scenario = served.by_name.get(name)
    if scenario is None:
        hint = did_you_mean(name, served.by_name, most=NEAREST)
        raise NoMatchError(
            f"There is no scenario {name!r}; {len(served.scenarios)} are served"
            f"{f'; {hint}' if hint else '.'} GET /_mockllm/scenarios lists them.",
            status=404,
            param="model" if request.model.endswith(name) else None,
            code="no_scenario",
        )
    if scenario.plays_over(request.api):
        return scenario
    message = (
        f"Scenario {name!r} does not play over {request.api!r}: its `apis` are "
        f"{', '.join(scenario.apis)}."
    )
    if scenario.server is not None:
        message = f"{name!r} is an MCP server and plays no conversation; name a scenario."
    if scenario.route is not None:
        message = (
            f"Scenario {name!r} answers the route {scenario.route} and plays no conversation; "
            "name another."
        )
    raise NoMatchError(message, status=404, code="no_scenario")


def _selection(
    scenario: Scenario, position: int, start: int, *, continued: bool = False
) -> Selection:
    index = turn_index(scenario, position)
    if index is None:
        raise NoMatchError(_past_end(scenario, position), status=404, code="no_turn")
    return Selection(scenario, position, index, start, continued)


def _past_end(scenario: Scenario, position: int) -> str:
    turns = quantity(len(scenario.steps), "turn")
    if scenario.path:
        turns += " in this conversation"
    return (
        f"Scenario {scenario.name!r} has {turns}, and this request asks for turn {position + 1}: "
        "the conversation is past its end. Add a turn to the scenario, or `repeat: true` to its "
        "last turn, or `then: restart` to the scenario; or start a new conversation."
    )


def _best_candidates(search: Search) -> list[Candidate]:
    """The candidate that answers, then the recordings that are as good; [] where none matches.

    Raises:
        NoMatchError: all candidates are past their end, or several are equally good.
    """
    matching = list(search.candidates())
    playable = [candidate for candidate in matching if candidate.playable]
    if not playable:
        fallbacks = map(search.without_user, search.served.fallbacks)
        playable = [last for last in fallbacks if last is not None and last.playable]
    if not playable:
        if matching:
            best = max(matching, key=lambda candidate: candidate.rank)
            raise NoMatchError(_past_end(best.scenario, best.position), status=404, code="no_turn")
        return []
    best = max(playable, key=lambda candidate: candidate.rank)
    equal = [candidate for candidate in playable if candidate.rank == best.rank]
    return equal if len(equal) == 1 else _break_tie(equal, search.request)


def _break_tie(equal: list[Candidate], request: Request) -> list[Candidate]:
    """Several candidates with the same rank, the one that answers first.

    Those whose turns expect other user messages than those of the request are out. Of the others
    the first by `precedence` answers, if all after it are recorded: these come after it in a
    session, if it is recorded, too.

    Raises:
        NoMatchError: authored scenarios are equally good, which is a mistake in them.
    """
    agreeing = [
        candidate for candidate in equal if _user_messages_agree(candidate, request)
    ] or equal
    agreeing.sort(key=lambda candidate: precedence(candidate.scenario))
    if all(is_recorded(candidate.scenario) for candidate in agreeing[1:]):
        return agreeing if is_recorded(agreeing[0].scenario) else agreeing[:1]
    raise ambiguous([candidate.scenario.name for candidate in equal], "request")


def ambiguous(names: list[str], what: str) -> NoMatchError:
    """The error that several scenarios are equally good."""
    return NoMatchError(
        f"{len(names)} scenarios answer this {what} equally well: {', '.join(names)}. Give one of "
        f"them a further `match` condition, or name one with the header {SCENARIO_HEADER}.",
        code="ambiguous_scenario",
    )


def _user_messages_agree(candidate: Candidate, request: Request) -> bool:
    """Whether the user messages since the beginning meet the `request.user` of their turns."""
    history = read_history(request.messages, candidate.start)
    for position, user in enumerate([*(turn.user for turn in history.turns), history.user]):
        index = turn_index(candidate.scenario, position)
        condition = user_condition(candidate.scenario, index) if index is not None else None
        if condition is not None and (user is None or not text_holds(condition, user)):
            return False
    return True


Beginning = tuple[int, int]
"""The index of a user message, and that of the first turn of the model after it."""


class _Chain:
    """Whether turns of a history agree with the steps of a scenario one after the other, wherever
    in the history the scenario begins. A turn is compared with a step once, so that many beginnings
    take no more time than one.

    Args:
        agrees: whether the turn at an index of the history agrees with a step, by its index.
        count: of the turns.
    """

    def __init__(self, scenario: Scenario, agrees: Callable[[int, int], bool], count: int) -> None:
        self._scenario, self._agrees, self._count = scenario, agrees, count
        self._known: dict[tuple[int, int], bool] = {}

    def holds(self, first: int) -> bool:
        """Whether they agree from a turn on, up to the end of the history or of the scenario."""
        step: int | None = 0
        passed, result = [], True
        while step is not None and first < self._count and result:
            known = self._known.get((first, step))
            if known is not None:
                result = known
                break
            passed.append((first, step))
            result = self._agrees(first, step)
            first, step = first + 1, self._next(step)
        self._known |= dict.fromkeys(passed, result)
        return result

    def _next(self, step: int) -> int | None:
        """The index of the step after one, as `turn_index` has it; None past the end."""
        if step + 1 < len(self._scenario.steps):
            return step + 1
        if self._scenario.restart:
            return 0
        return step if self._scenario.turns[-1].repeat else None


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
    def rank(self) -> tuple[tuple[int, int], int]:
        """The highest rank answers: the most conditions, the lowest `priority`, then the latest
        beginning."""
        return self.scenario.specificity, self.start


@record
class Search:
    """A request, and what it is matched with.

    Args:
        served: the scenarios that may answer.
        headers: with lower-case names.
        turns: those of the model in the history that the request carries.
        judged: as `way_of` keeps it, by the name of the scenario.
    """

    served: ScenarioIndex
    request: Request
    headers: Mapping[str, str]
    turns: Sequence[ModelTurn]
    judged: dict[str, dict[tuple[int, int], int | None]] = field(
        default_factory=dict, compare=False, repr=False
    )

    def candidates(
        self, wanted: Callable[[Scenario], bool] = lambda scenario: True
    ) -> Iterator[Candidate]:
        """Every scenario that matches and whose tool calls are those in the history, each once with
        the beginning of its conversation. Scenarios with `match: any` are not among them.

        Args:
            wanted: of the others nothing is judged, which would take long where many match.
        """
        beginnings: dict[str, list[Beginning]] = {}
        for start in self.request.user_positions:
            for scenario in self.served.by_user_text(self.request.messages[start].text):
                beginnings.setdefault(scenario.name, []).append(self._beginning(start))
        for name, messages in beginnings.items():
            scenario = self.served.by_name[name]
            if wanted(scenario) and self._may_answer(scenario):
                candidate = self._earliest_candidate(scenario, self._meeting(scenario, messages))
                if candidate is not None:
                    yield candidate
        for scenario in self.served.by_model(self.request.model):
            candidate = self.without_user(scenario) if wanted(scenario) else None
            if candidate is not None:
                yield candidate

    def without_user(self, scenario: Scenario) -> Candidate | None:
        """A scenario without `match.user`, if it matches. It begins with the history or, where its
        tool calls are others or it has no turn left, at a later user message. One whose groups read
        the user's message begins at a message that meets them."""
        if not self._may_answer(scenario):
            return None
        assert scenario.match is not None
        if groups_read_message(scenario.match):
            messages = list(self._beginnings()) or [(0, 0)]
            return self._earliest_candidate(scenario, self._meeting(scenario, messages))
        whole = self._candidate(scenario, (0, 0), self._calls(scenario))
        if whole is not None and whole.playable:
            return whole
        return self._earliest_candidate(scenario, [(0, 0), *self._beginnings()])

    def _meeting(self, scenario: Scenario, beginnings: Sequence[Beginning]) -> Sequence[Beginning]:
        """The beginnings at messages that meet the groups of `match`, where these read them."""
        match = scenario.match
        if match is None or not groups_read_message(match):
            return beginnings
        users = dict(zip(self.request.user_positions, self.request.users, strict=True))
        return [
            (start, first)
            for start, first in beginnings
            if message_holds(match, self.request, self.headers, users.get(start, Message("user")))
        ]

    def _earliest_candidate(
        self, scenario: Scenario, beginnings: Sequence[Beginning]
    ) -> Candidate | None:
        """A scenario with the earliest beginning after which it has a turn left.

        Messages of a conversation of its own that is past its end begin none. Where there are
        several, one does not count before which the turns have other texts or users than its own,
        unless there is no other.
        """
        # A user may write the words of `match` again in a later turn: were that the beginning, the
        # second turn would never be played. Another scenario's turns may be in the history, too.
        doubtful: Candidate | None = None
        past_end: Candidate | None = None
        ended = 0
        calls, own = self._calls(scenario), self._own(scenario)
        for beginning in beginnings:
            if beginning[0] < ended:
                continue
            candidate = self._candidate(scenario, beginning, calls)
            if candidate is None:
                continue
            if beginning is not beginnings[-1] and not self._is_own(candidate, beginning, own):
                doubtful = doubtful or candidate
            elif candidate.playable:
                return candidate
            else:
                past_end = candidate
                ended = self.turns[beginning[1] + len(candidate.scenario.steps) - 1].end + 1
        return doubtful if doubtful is not None and doubtful.playable else past_end or doubtful

    def _candidate(
        self, scenario: Scenario, beginning: Beginning, calls: _Chain | None
    ) -> Candidate | None:
        """A scenario that begins there; None where its tool calls are not those in the history."""
        start, first = beginning
        scenario = self._way(scenario, beginning)
        if calls is not None:
            agrees = calls.holds(first)
        else:
            agrees = history_agrees(scenario, self.turns[first:], self.request.api)
        count = len(self.turns) - first
        playable = turn_index(scenario, count) is not None
        return Candidate(scenario, start, count, playable) if agrees else None

    def _is_own(self, candidate: Candidate, beginning: Beginning, own: _Chain | None) -> bool:
        """Whether the turns after the beginning have the texts of the scenario's turns, and the
        user messages that these require."""
        if own is not None:
            return own.holds(beginning[1])
        texts = texts_agree(candidate.scenario, self.turns[beginning[1] :], self.request.api)
        return texts and _user_messages_agree(candidate, self.request)

    def _calls(self, scenario: Scenario) -> _Chain | None:
        """The comparison of tool calls; None where it depends on where the scenario begins."""
        if scenario.varies or has_derived_ids(scenario):
            return None
        api = self.request.api
        forms = [scenario.turns[index].for_api(api) for index in scenario.steps]

        def agrees(turn: int, step: int) -> bool:
            return calls_agree(scenario, step, forms[step], self.turns[turn], api)

        return _Chain(scenario, agrees, len(self.turns))

    def _own(self, scenario: Scenario) -> _Chain | None:
        """The comparison of texts and user messages; None where it depends on where the scenario
        begins."""
        if scenario.varies:
            return None
        forms = [scenario.turns[index].for_api(self.request.api) for index in scenario.steps]
        users = [user_condition(scenario, index) for index in scenario.steps]
        sent = [turn.user for turn in self.turns]
        sent.append(read_history(self.request.messages).user)

        def agrees(turn: int, step: int) -> bool:
            user, condition = sent[turn], users[step]
            if turn < len(self.turns) and not text_agrees(forms[step], self.turns[turn]):
                return False
            return condition is None or (user is not None and text_holds(condition, user))

        return _Chain(scenario, agrees, len(sent))

    def begins(self, scenario: Scenario) -> tuple[int, bool] | None:
        """The position at which the only scenario would answer, and whether it has a turn there;
        None where its conditions do not hold, or its tool calls are not those in the history."""
        if named_scenario(self.served, self.request, self.headers) == scenario.name:
            _, way, position = self.named_position(scenario)
            return position, turn_index(way, position) is not None
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
        return tuple(turn for turn in turns if self._is_found(*turn, named)) if turns else ()

    def _is_found(self, scenario: Scenario, index: int, named: Scenario | None) -> bool:
        match = scenario.match
        if named is not None:
            return scenario.name == named.name
        if match is not None and index > 0:
            # The digest says more of a later turn than conditions that tell first turns apart, and
            # the turn may go over another API. It says nothing of headers and of the query.
            own = Match(headers=match.headers, query=match.query)
            return first_problem(judged_match(own, self.request, self.headers)) is None
        if match is None:  # only its own request finds it
            return scenario.plays_over(self.request.api)
        holding = (
            message_holds(match, self.request, self.headers, message)
            for message in self.request.users or [Message("user")]
        )
        return any(holding) and self._may_answer(scenario)

    def named_position(self, scenario: Scenario) -> tuple[int, Scenario, int]:
        """Where the conversation of a named scenario begins, the scenario as it goes, and the
        position in it.

        That is the start of the history. A recording may have begun later in a longer conversation:
        at the latest user message after which the tool calls agree.
        """
        if is_recorded(scenario):
            latest_first = reversed(list(self._beginnings()))
            for start, first in ((0, 0), *latest_first):
                count = len(self.turns) - first
                has_turn = turn_index(scenario, count) is not None
                if has_turn and history_agrees(scenario, self.turns[first:], self.request.api):
                    return start, scenario, count
        return 0, self._way(scenario, (0, 0)), len(self.turns)

    def _way(self, scenario: Scenario, beginning: Beginning) -> Scenario:
        """The scenario as the conversation goes that begins there."""
        if not scenario.varies:
            return scenario
        from mockllm.play.matching.branching import way_of  # few scenarios need it

        start, first = beginning
        judged = self.judged.setdefault(scenario.name, {})
        return way_of(scenario, self.request, start, self.turns[first:], judged=judged)

    def _beginnings(self) -> Iterator[Beginning]:
        """Where a conversation may begin, the earliest first."""
        return map(self._beginning, self.request.user_positions)

    def _beginning(self, start: int) -> Beginning:
        return start, bisect_right(self.turns, start, key=attrgetter("end"))

    def _may_answer(self, scenario: Scenario) -> bool:
        """Whether a scenario plays over the API, and all its conditions hold besides `match.user`,
        which the index has checked."""
        match = scenario.match
        assert match is not None
        judged = judged_match(match, self.request, self.headers)
        return scenario.plays_over(self.request.api) and first_problem(judged) is None


def start_after(history: Sequence[ModelTurn], index: int) -> int:
    """The index of the message at which a conversation begins that has `index` turns so far."""
    before = len(history) - index
    return history[before - 1].end + 1 if before > 0 else 0


def conditions_of(scenario: Scenario) -> int:
    """The number of conditions of a scenario's match."""
    return scenario.match.conditions if scenario.match is not None else 0
