"""Which scenario, and which turn of it, answers a request: read off the request alone.

A scenario that the request names is played from the start of the history. Otherwise the
conversation of a scenario begins at the latest user message that meets its `match.user` and
after which the assistant turns agree with its own.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from mockllm.core.request import Message, Request
from mockllm.errors import NoMatchError, RequestError
from mockllm.matching.conditions import check_match, text_holds
from mockllm.matching.history import ModelTurn, read_history
from mockllm.matching.index import SCENARIO_HEADER, Catalogue
from mockllm.matching.mismatch import NEAREST, explain
from mockllm.matching.positions import PlannedCall, planned_calls, turn_index
from mockllm.scenario.model import Scenario
from mockllm.scenario.precedence import user_condition, is_recorded, precedence

__all__ = ["Pick", "pick", "plain_model"]


@dataclass(frozen=True, slots=True)
class Pick:
    """The turn that answers a request.

    Args:
        position: how many turns of the model came before in the scenario's conversation.
        index: which turn of the scenario that makes it.
        start: the message at which the scenario's conversation begins; 0 for the first.
        continued: whether a token of ours, not the history, told the position.
    """

    scenario: Scenario
    position: int
    index: int
    start: int = 0
    continued: bool = False


@dataclass(frozen=True, slots=True)
class _Found:
    scenario: Scenario
    start: int
    position: int
    playable: bool

    @property
    def rank(self) -> tuple[int, int]:
        match = self.scenario.match
        return (match.conditions if match is not None else 0, self.start)


def plain_model(catalogue: Catalogue, model: str) -> tuple[str, str | None]:
    """A model's name without the scenario named in it, and that scenario's name.

    `mock/<scenario>` always names one; `<anything>@<scenario>` only where it is served, for
    some services have `@` in the names of their models.
    """
    if model.startswith("mock/"):
        return model, model[5:]
    before, at, name = model.rpartition("@")
    if at and name in catalogue.by_name:
        return before, name
    return model, None


def pick(catalogue: Catalogue, request: Request, headers: Mapping[str, str], prefix: str) -> Pick:
    """The turn that answers.

    Args:
        headers: of the request, with lower-case names.
        prefix: what derived tool call ids of the request's protocol begin with.

    Raises:
        NoMatchError: nothing answers; the message names the nearest scenarios.
        RequestError: the request continues an answer that is not ours.
    """
    history = read_history(request.messages).turns
    name = request.scenario or headers.get(SCENARIO_HEADER)
    name = name or plain_model(catalogue, request.model)[1]
    anchor = _anchor(catalogue, request, history)
    if name is not None:
        scenario = _named(catalogue, name, request)
        position = anchor[1] if anchor and anchor[0] == scenario else len(history)
        return _at(scenario, position, 0, continued=anchor is not None)
    if anchor is not None:
        scenario, position = anchor
        if turn_index(scenario, position) is not None or not _says_something(request):
            return _at(scenario, position, 0, continued=True)
    found = _search(catalogue, request, headers, history, prefix)
    if found is None and anchor is not None:
        return _at(*anchor, 0, continued=True)
    if found is None:
        raise NoMatchError(explain(catalogue, request, headers), status=404, code="no_scenario")
    return _at(found.scenario, found.position, found.start)


def _says_something(request: Request) -> bool:
    return any(message.role == "user" for message in request.messages)


def _anchor(
    catalogue: Catalogue, request: Request, history: Sequence[ModelTurn]
) -> tuple[Scenario, int] | None:
    """Scenario and position told by an answer of ours that the request points at."""
    if request.previous is not None:
        known = catalogue.by_token(request.previous)
        if known is None:
            raise RequestError(
                f"Previous response with id 'resp_{request.previous}' not found. mockllm knows "
                "the ids of the answers that it gave from the scenarios it serves now.",
                param="previous_response_id",
                code="previous_response_not_found",
            )
        return known[0], known[1] + 1 + len(history)
    for index in range(len(request.messages) - 1, -1, -1):
        if request.messages[index].ref:
            known = catalogue.by_token(request.messages[index].ref)
            if known is None:
                continue
            later = sum(1 for turn in history if turn.end > index) - (
                1 if _same_turn(request.messages, index) else 0
            )
            return known[0], known[1] + 1 + later
    return None


def _same_turn(messages: tuple[Message, ...], index: int) -> bool:
    """Whether the turn that message `index` belongs to goes on after it."""
    return index + 1 < len(messages) and messages[index + 1].role == "assistant"


def _named(catalogue: Catalogue, name: str, request: Request) -> Scenario:
    scenario = catalogue.by_name.get(name)
    if scenario is None:
        near = get_close_matches(name, catalogue.by_name, n=NEAREST, cutoff=0.5)
        hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
        raise NoMatchError(
            f"There is no scenario {name!r}; {len(catalogue.scenarios)} are served.{hint} "
            "GET /_mockllm/scenarios lists them.",
            status=404,
            param="model" if request.model.endswith(name) else None,
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


def _at(scenario: Scenario, position: int, start: int, *, continued: bool = False) -> Pick:
    index = turn_index(scenario, position)
    if index is None:
        raise NoMatchError(_past_end(scenario, position), status=404, code="no_turn")
    return Pick(scenario, position, index, start, continued)


def _past_end(scenario: Scenario, position: int) -> str:
    count = len(scenario.turns)
    turns = "1 turn" if count == 1 else f"{count} turns"
    return (
        f"Scenario {scenario.name!r} has {turns}, and this request asks for turn {position + 1}: "
        "the conversation is past its end. Add a turn to the scenario, or `repeat: true` to its "
        "last turn, or `then: restart` to the scenario; or start a new conversation."
    )


def _search(
    catalogue: Catalogue,
    request: Request,
    headers: Mapping[str, str],
    history: Sequence[ModelTurn],
    prefix: str,
) -> _Found | None:
    """The best scenario that matches: the most conditions, then the latest beginning."""
    found = list(_matches(catalogue, request, headers, history, prefix))
    playable = [candidate for candidate in found if candidate.playable]
    if not playable:
        playable = [
            candidate
            for scenario in catalogue.fallbacks
            if (candidate := _userless(scenario, request, headers, history, prefix))
            and candidate.playable
        ]
    if not playable:
        if found:
            best = max(found, key=lambda candidate: candidate.rank)
            raise NoMatchError(_past_end(best.scenario, best.position), status=404, code="no_turn")
        return None
    best = max(playable, key=lambda candidate: candidate.rank)
    equal = [candidate for candidate in playable if candidate.rank == best.rank]
    return best if len(equal) == 1 else _told_apart(equal, request)


def _told_apart(equal: list[_Found], request: Request) -> _Found:
    """Which of several scenarios that begin alike answers: the only one that is asked what the
    user has said since then. Recordings may begin alike; the first of them answers what they
    have in common."""
    asked = [candidate for candidate in equal if _answers_user(candidate, request)] or equal
    asked.sort(key=lambda candidate: precedence(candidate.scenario))
    if all(is_recorded(candidate.scenario) for candidate in asked[1:]):
        return asked[0]
    names = [candidate.scenario.name for candidate in equal]
    raise NoMatchError(
        f"{len(names)} scenarios answer this request equally well: {', '.join(names)}. Give "
        "one of them a further `match` condition, or name one with the header "
        f"{SCENARIO_HEADER}.",
        code="ambiguous_scenario",
    )


def _answers_user(candidate: _Found, request: Request) -> bool:
    """Whether what the user said from the beginning on is what the scenario's turns answer."""
    history = read_history(request.messages, candidate.start)
    for position, user in enumerate([*(turn.user for turn in history.turns), history.user]):
        index = turn_index(candidate.scenario, position)
        condition = user_condition(candidate.scenario, index) if index is not None else None
        if condition is not None and (user is None or not text_holds(condition, user)):
            return False
    return True


def _matches(
    catalogue: Catalogue,
    request: Request,
    headers: Mapping[str, str],
    history: Sequence[ModelTurn],
    prefix: str,
) -> Iterator[_Found]:
    ends = [turn.end for turn in history]
    seen: set[str] = set()
    for start in range(len(request.messages) - 1, -1, -1):
        message = request.messages[start]
        if message.role != "user":
            continue
        for scenario in catalogue.for_text(message.text):
            if scenario.name in seen or not scenario.plays_over(request.api):
                continue
            after = history[bisect_right(ends, start) :]
            if not _holds(scenario, request, headers) or not _agree(
                scenario, after, request.api, prefix
            ):
                continue
            seen.add(scenario.name)
            playable = turn_index(scenario, len(after)) is not None
            yield _Found(scenario, start, len(after), playable)
    for scenario in catalogue.for_model(request.model):
        candidate = _userless(scenario, request, headers, history, prefix)
        if candidate is not None:
            yield candidate


def _holds(scenario: Scenario, request: Request, headers: Mapping[str, str]) -> bool:
    """Every condition besides `match.user`, which the index has answered."""
    match = scenario.match
    assert match is not None
    return all(problem is None for problem in check_match(match, request, headers, user=""))


def _userless(
    scenario: Scenario,
    request: Request,
    headers: Mapping[str, str],
    history: Sequence[ModelTurn],
    prefix: str,
) -> _Found | None:
    """A scenario without `match.user` begins with the history, or, where that does not agree,
    at the latest user message from which it does."""
    if not scenario.plays_over(request.api) or not _holds(scenario, request, headers):
        return None
    starts = [index for index, message in enumerate(request.messages) if message.role == "user"]
    past: _Found | None = None
    for start in [0, *reversed(starts)]:
        after = [turn for turn in history if turn.end >= start]
        if _agree(scenario, after, request.api, prefix):
            candidate = _Found(scenario, start, len(after), True)
            if turn_index(scenario, len(after)) is not None:
                return candidate
            past = past or _Found(scenario, start, len(after), False)
    return past


def _agree(scenario: Scenario, after: Sequence[ModelTurn], api: str, prefix: str) -> bool:
    """Whether the turns of the history are those of the scenario, by their tool calls."""
    for position, turn in enumerate(after):
        if turn_index(scenario, position) is None:
            return True  # past the end; the caller says so
        planned = planned_calls(scenario, position, api, prefix)
        if planned is None:
            continue
        echoed = [(call.name, call.id) for call in turn.calls]
        # Without ids a malformed call, which may be missing, must not take another's place.
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
