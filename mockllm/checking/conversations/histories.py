"""What the requests of a session tell of its conversations: rounds of calls and results.

Every request brings its history along, so one that continues another is found by its *place*:
what the user said, and where the model answered and tools were run, in order. Texts of the model
and of tools do not count, for clients may get them wrong and still be in that place. Requests of
conversations that run side by side can be at one place; nothing is said of one of them that may
be the fault of another. Only pure data and the reading of it may live here.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field

from mockllm.checking.conversations.round_trips import Asked, Round, Step, Streamed, assign, hops
from mockllm.core.request import Message, Request
from mockllm.core.turn import Turn
from mockllm.errors import RequestError
from mockllm.matching.index import mint_token
from mockllm.matching.positions import planned_calls, turn_at
from mockllm.protocols import PROTOCOLS
from mockllm.replay.autoreply import answer as auto_answer
from mockllm.replay.player import parse_object
from mockllm.replay.resolve import resolve
from mockllm.replay.session import Exchange
from mockllm.scenario.model import AnyPart, AutoPart, Scenario, TurnSpec

__all__ = ["History"]


@dataclass(slots=True)
class _Walk:
    """The messages of one request, taken one by one."""

    place: int = 0
    role: str = ""
    rounds: list[Round] = field(default_factory=list)
    loose: list[Message] = field(default_factory=list)

    def go(self, *what: Hashable) -> None:
        self.place = hash((self.place, *what))


class History:
    """All requests for answers in a journal, in the order of their arrival.

    Args:
        scenarios: by name; what was played from others is not known.
    """

    def __init__(self, journal: Iterable[Exchange], scenarios: Mapping[str, Scenario]) -> None:
        self.scenarios = scenarios
        self.steps: list[Step] = []
        self._places: dict[tuple[str, int], list[Step]] = {}
        self._tokens: dict[str, list[Step]] = {}
        self._conversations: dict[str, str] = {}
        self._streamed: dict[str, int] = {}
        self._answered: dict[tuple[str, int, str], list[Step]] = {}
        self._turns: dict[Hashable, tuple[Turn, tuple[bool, ...]]] = {}
        for exchange in journal:
            request = _parsed(exchange)
            if request is not None:
                self._add(exchange, request)

    def streamed_before(self, step: Step, id: str) -> bool:
        """Whether an answer to any earlier request made a call with this id."""
        first = self._streamed.get(id)
        return first is not None and first < step.number

    def answered_before(self, step: Step, round: Round, call: Asked) -> bool:
        """Whether an earlier request at another place of the conversation answered the call."""
        known = self._answered.get((step.request.api, round.place, call.key), ())
        return any(one.number < step.number and one.place != step.place for one in known)

    def due(self, step: Step) -> TurnSpec | None:
        """The turn that the request asks for, whether it got it or not."""
        scenario = self.scenarios.get(step.exchange.scenario or "")
        position = step.exchange.position
        if scenario is None or position is None:
            before = step.last.played if step.last is not None else ()
            if not before or before[-1].exchange.position is None:
                return None
            scenario = self.scenarios[before[-1].exchange.scenario or ""]
            position = before[-1].exchange.position + 1
        return turn_at(scenario, position, step.request.api)

    def _add(self, exchange: Exchange, request: Request) -> None:
        walk = _Walk()
        parent = self._point(walk, self._previous(request))
        for message in request.messages:
            self._take(walk, message, request.api)
        step = Step(exchange, request, walk.rounds, walk.place, walk.loose, parent)
        assign(step)
        step.hops = hops(step)
        step.turn, step.calls = self._turn(exchange, request)
        step.quirked = _is_quirked(step, self.scenarios)
        self._keep(step)

    def _keep(self, step: Step) -> None:
        api, exchange = step.request.api, step.exchange
        self.steps.append(step)
        here = self._places.setdefault((api, step.place), [])
        step.before = here[-1] if here else None
        here.append(step)
        for each in step.rounds:
            for call in each.calls:
                if call.results:
                    self._answered.setdefault((api, each.place, call.key), []).append(step)
        if step.turn is None or exchange.position is None:
            return
        for made in step.calls:
            self._streamed.setdefault(made.id, exchange.number)
        token = mint_token(self.scenarios[exchange.scenario or ""], exchange.position)
        self._tokens.setdefault(token, []).append(step)
        recorded = (exchange.answer_id or "").removeprefix("resp_")
        if recorded not in ("", token):  # the id that the service gave it
            self._tokens.setdefault(recorded, []).append(step)
        if step.request.conversation is not None:
            self._conversations[step.request.conversation] = token

    def _previous(self, request: Request) -> str | None:
        if request.previous is None and request.conversation is not None:
            return self._conversations.get(request.conversation)
        return request.previous

    def _point(self, walk: _Walk, token: str | None) -> Step | None:
        """Begins the rounds with the turn that a request points at."""
        if token is None:
            return None
        walk.go("kept", token)
        answers = tuple(self._tokens.get(token, ()))
        walk.rounds.append(Round(walk.place, answers, kept=True))
        return answers[-1] if answers else None

    def _take(self, walk: _Walk, message: Message, api: str) -> None:
        role, rounds = message.role, walk.rounds
        if role == "system":
            return
        if role == "user":
            walk.go(role, message.text)
            if rounds:
                rounds[-1].words = True
        elif role == "tool":
            if walk.role != role:
                walk.go(role)
            (rounds[-1].results if rounds else walk.loose).append(message)
        else:
            if walk.role != role:
                rounds.append(Round(walk.place, tuple(self._places.get((api, walk.place), ()))))
                walk.go(role)
            rounds[-1].echo += message.calls
            if message.ref:
                rounds[-1].kept = True
                known = self._tokens.get(message.ref)
                rounds[-1].answers = tuple(known) if known else rounds[-1].answers
        walk.role = role

    def _turn(
        self, exchange: Exchange, request: Request
    ) -> tuple[Turn | None, tuple[Streamed, ...]]:
        scenario = self.scenarios.get(exchange.scenario or "")
        position = exchange.position
        if exchange.outcome != "played" or scenario is None or position is None:
            return None, ()
        spec = turn_at(scenario, position, request.api)
        if spec is None or spec.http is not None:
            return None, ()  # the scenario has been changed since
        auto: tuple[AnyPart, ...] = ()
        if any(isinstance(part, AutoPart) for part in spec.reply):
            try:
                auto = auto_answer(request)
            except RequestError:
                return None, ()
        turn, malformed = self._resolved(scenario, position, request.api, auto)
        offered = {tool.name for tool in request.tools}
        calls = tuple(
            Streamed(call.id, call.name, call.arguments, bad, call.name in offered)
            for call, bad in zip(turn.tool_calls, malformed, strict=True)
        )
        return turn, calls

    def _resolved(
        self, scenario: Scenario, position: int, api: str, auto: tuple[AnyPart, ...]
    ) -> tuple[Turn, tuple[bool, ...]]:
        """The turn at a position, and which of its calls are malformed."""
        key = (scenario.name, position, api, auto)
        found = self._turns.get(key)
        if found is None:
            prefix = PROTOCOLS[api].call_prefix
            turn = resolve(scenario, position, api, prefix, auto=auto)
            planned = planned_calls(scenario, position, api, prefix)
            if planned is None:
                malformed = (False,) * len(turn.tool_calls)
            else:
                malformed = tuple(call.malformed for call in planned)
            found = self._turns[key] = (turn, malformed)
        return found


def _parsed(exchange: Exchange) -> Request | None:
    if exchange.target is None or exchange.api is None:
        return None
    try:
        body = parse_object(exchange.body)
        return PROTOCOLS[exchange.api].parse(body, exchange.target, False)
    except RequestError:
        return None


def _is_quirked(step: Step, scenarios: Mapping[str, Scenario]) -> bool:
    exchange = step.exchange
    if exchange.quirks:
        return True
    if step.turn is None or exchange.position is None:
        return False
    spec = turn_at(scenarios[exchange.scenario or ""], exchange.position, step.request.api)
    return spec is not None and spec.wire is not None and bool(spec.wire.quirks)
