"""Selects the scenario and the turn that answer a request, from the request alone.

A scenario that the request names is played from the start of the history. Otherwise a scenario
begins at the latest user message that meets its `match.user` and after which the model's turns have
the tool calls of its own turns. Of several the one with the most conditions wins, then the one that
begins latest, then `mockllm.scenario.precedence` breaks the tie.

A request that was recorded gets the turn that was recorded from it, if the conditions of its
scenario still hold and no authored scenario with more conditions matches. Several recordings of the
same request, or with equally good conditions, are played in their order: `Selection.recordings`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter

from mockllm.core.record import record
from mockllm.core.request import Message, Request
from mockllm.core.text import did_you_mean, display
from mockllm.errors import NoMatchError
from mockllm.matching.candidates import (
    Candidate,
    Search,
    conditions_of,
    start_after,
)
from mockllm.matching.conditions import (
    JudgedCondition,
    first_problem,
    judged_match,
    judged_user_text,
    last_user_text,
    text_holds,
)
from mockllm.matching.history import ModelTurn, read_history
from mockllm.matching.index import SCENARIO_HEADER, ScenarioIndex, named_scenario
from mockllm.matching.positions import turn_index
from mockllm.protocols import PROTOCOLS
from mockllm.scenario.model import Match, Scenario
from mockllm.scenario.precedence import is_recorded, precedence, user_condition


@record
class Selection:
    """The turn that answers a request.

    Args:
        position: how many turns of the model came before in the scenario's conversation.
        index: of the turn in the scenario.
        start: the index of the message at which the scenario's conversation begins.
        continued: whether the position comes from the id of an answer of ours, not from the
            history.
        recordings: the recorded turns that answer equally well, in their order, each a scenario and
            the index of its turn; this one is the first of them.
    """

    scenario: Scenario
    position: int
    index: int
    start: int = 0
    continued: bool = False
    recordings: tuple[tuple[Scenario, int], ...] = ()

    def with_turn(self, scenario: Scenario, index: int) -> Selection:
        """The same selection with another turn of `recordings`."""
        same = turn_index(scenario, self.position) == index
        position = self.position if same else index
        return replace(self, scenario=scenario, index=index, position=position)


def select(served: ScenarioIndex, request: Request, headers: Mapping[str, str]) -> Selection:
    """The turn that answers a request.

    Raises:
        NoMatchError: no scenario answers, or several do equally well; the message names them.
        RequestError: the request continues an answer that this server did not give.
    """
    history = read_history(request.messages).turns
    name = named_scenario(served, request, headers)
    named = _named(served, name, request) if name is not None else None
    search = Search(served, request, headers, history)
    same = search.of_same_request(named)
    if same and not (named is None and _is_overridden(search, same)):
        scenario, index = same[0]
        start = start_after(history, index)
        continued = request.previous is not None
        return Selection(scenario, index, index, start, continued, same)
    referenced = _referenced_position(served, request, history)
    if named is not None:
        if referenced is not None and referenced[0] == named:
            return _selection(named, referenced[1], 0, continued=True)
        start, position = search.named_position(named)
        return _selection(named, position, start, continued=referenced is not None)
    if referenced is not None:
        scenario, position = referenced
        if turn_index(scenario, position) is not None or not _has_user_message(request):
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


def _is_overridden(search: Search, same: Sequence[tuple[Scenario, int]]) -> bool:
    """Whether an authored scenario with more conditions than the recordings matches."""
    most = max(conditions_of(scenario) for scenario, _ in same)

    def may_override(scenario: Scenario) -> bool:
        return conditions_of(scenario) > most and not is_recorded(scenario)

    return any(candidate.playable for candidate in search.candidates(may_override))


def _has_user_message(request: Request) -> bool:
    return any(message.role == "user" for message in request.messages)


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
        return known[0], known[1] + 1 + len(history)
    for index in range(len(request.messages) - 1, -1, -1):
        ref = request.messages[index].ref
        known = served.by_token(ref) if ref else None
        if known is not None:
            later = sum(turn.end > index for turn in history)
            later -= _turn_continues(request.messages, index)
            return known[0], known[1] + 1 + later
    return None


def _turn_continues(messages: tuple[Message, ...], index: int) -> bool:
    """Whether the turn of the model that message `index` belongs to continues after it."""
    return index + 1 < len(messages) and messages[index + 1].role == "assistant"


def _named(served: ScenarioIndex, name: str, request: Request) -> Scenario:
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
    if scenario.route is not None:
        raise NoMatchError(
            f"Scenario {name!r} answers the route {scenario.route} and plays no conversation; "
            "name another.",
            status=404,
            code="no_scenario",
        )
    if not scenario.plays_over(request.api):
        raise NoMatchError(
            f"Scenario {name!r} does not play over {request.api!r}: its `apis` are "
            f"{', '.join(scenario.apis)}.",
            status=404,
            code="no_scenario",
        )
    return scenario


def _selection(
    scenario: Scenario, position: int, start: int, *, continued: bool = False
) -> Selection:
    index = turn_index(scenario, position)
    if index is None:
        raise NoMatchError(_past_end(scenario, position), status=404, code="no_turn")
    return Selection(scenario, position, index, start, continued)


def _past_end(scenario: Scenario, position: int) -> str:
    count = len(scenario.turns)
    turns = "1 turn" if count == 1 else f"{count} turns"
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


NEAREST = 3
"""How many scenarios a message names."""

_MOST_COMPARED = 2000
"""Characters of a text that are compared."""


def explain_mismatch(served: ScenarioIndex, request: Request, headers: Mapping[str, str]) -> str:
    """The message for a request that no scenario answers."""
    count = len(served.scenarios)
    lines = [
        f"No scenario answers this request (model {request.model!r}, user said "
        f"{display(last_user_text(request))}); {count} served."
    ]
    lines += nearest_scenarios(served, request, headers)
    lines.append(
        f"Name a scenario with the header {SCENARIO_HEADER} or the model 'mock/<scenario>', add "
        "one whose `match` holds, or serve with --fallback auto."
    )
    return "\n".join(lines)


def nearest_scenarios(
    served: ScenarioIndex, request: Request, headers: Mapping[str, str]
) -> list[str]:
    """Lines with the nearest scenarios that have a `match`; empty where none has one."""
    lines = [
        f"- {scenario.name}: {_first_problem(scenario, judged, request)}"
        for scenario, judged in near_misses(served, request, headers, NEAREST)
    ]
    return ["Nearest:", *lines] if lines else []


def near_misses(
    served: ScenarioIndex, request: Request, headers: Mapping[str, str], most: int
) -> list[tuple[Scenario, list[JudgedCondition]]]:
    """The scenarios that are nearest to a request, with the conditions of their `match`.

    They are those with the smallest share of failed conditions; among equals, those whose
    `match.user` shares most pairs of letters with the last user message. For a request that names
    a scenario only the likeness of the name counts.
    """
    named = named_scenario(served, request, headers)
    sent = _letter_pairs(last_user_text(request) if named is None else named)
    ranked = []
    for scenario in served.scenarios:
        match = scenario.match or Match()
        if match.anything or scenario.route or (named is None and scenario.match is None):
            continue
        user, judged = judged_user_text(match, request), []
        if named is None:
            judged = list(judged_match(match, request, headers, user=user))
        failed = sum(not condition.met for condition in judged) / max(1, len(judged))
        expected = scenario.name if named is not None else match.user.value if match.user else ""
        pairs = _letter_pairs(expected)
        rank = (failed, -len(pairs & sent) / max(1, len(pairs)), scenario.name)
        ranked.append((rank, scenario, judged))
    ranked.sort(key=itemgetter(0))
    return [(scenario, judged) for _, scenario, judged in ranked[:most]]


def _first_problem(scenario: Scenario, judged: Iterable[JudgedCondition], request: Request) -> str:
    if not scenario.plays_over(request.api):
        return f"apis: it does not play over {request.api!r}"
    unmet = "its tool calls are not those in the history of this request"
    return first_problem(judged) or unmet


def _letter_pairs(text: str) -> set[str]:
    """The pairs of neighbouring letters of a text, a cheap measure of similarity."""
    text = text[:_MOST_COMPARED].lower()
    return {text[at : at + 2] for at in range(len(text) - 1)}
