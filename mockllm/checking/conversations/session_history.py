"""The conversations of a session, read from its journal: round trips of calls and results. Pure.

Every request carries its history. So a request and the one that it continues are matched by their
*location* in the conversation: a hash over the texts of the user, and over where the model answered
and tools were run, in order. The texts of the model and of tools do not count: a client may get
them wrong and is still at that location. Conversations that run side by side may share a location.
A violation is reported only if no other request at the location can be the cause.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mockllm.checking.conversations.round_trips import (
    HistoryCall,
    RoundTrip,
    Step,
    StreamedCall,
    assign_results,
    hops,
)
from mockllm.checking.rules import table
from mockllm.core.errors import RequestError
from mockllm.core.jsontext import parse_object
from mockllm.core.request import Message, Request
from mockllm.core.turn import Turn
from mockllm.play.agents.agent_requests import read_request
from mockllm.play.matching.conversation import (
    History,
    PlannedCall,
    Selection,
    planned_calls,
    read_history,
    turn_at,
)
from mockllm.play.matching.index import mint_token
from mockllm.play.mcp.tool_names import named_tools, tool_names, with_server_tools
from mockllm.play.replay.auto.adaptation import Adaptation, adaptation
from mockllm.play.replay.compilation.resolve import resolve
from mockllm.play.replay.filling import played_selection, played_turn, way_on
from mockllm.play.replay.sessions.exchange import Exchange
from mockllm.play.replay.sessions.shortened_bodies import LONGEST, shortened_value
from mockllm.scenario.model import Scenario, TurnSpec
from mockllm.scenario.part_model import tool_parts
from mockllm.wire.protocols import PROTOCOLS


class SessionHistory:
    """All requests for answers in a journal, in the order of their arrival.

    Args:
        scenarios: by name; turns that other scenarios played are unknown.
    """

    def __init__(self, journal: Iterable[Exchange], scenarios: Mapping[str, Scenario]) -> None:
        self.scenarios = scenarios
        self.steps: list[Step] = []
        self._locations: dict[tuple[str, int], list[Step]] = {}
        self._tokens: dict[str, list[Step]] = {}
        self._conversations: dict[str, str] = {}
        self._streamed: dict[str, int] = {}
        self._answered: dict[tuple[str, int, str], list[Step]] = {}
        self._turns: dict[Hashable, tuple[Turn, tuple[PlannedCall, ...]]] = {}
        self._server_tools = tool_names(scenarios.values()), named_tools(scenarios.values())
        for exchange in journal:
            request = self._parse(exchange)
            if request is not None:
                self._add(exchange, request)

    def _parse(self, exchange: Exchange) -> Request | None:
        request = _parse(exchange)
        return None if request is None else with_server_tools(request, *self._server_tools)

    def streamed_before(self, step: Step, id: str) -> bool:
        """Whether an answer to any earlier request made a call with this id."""
        first = self._streamed.get(id)
        return first is not None and first < step.number

    def answered_before(self, trip: RoundTrip, call: HistoryCall) -> bool:
        """Whether an earlier request at another location of the conversation answered the call."""
        step = trip.step
        known = self._answered.get((step.request.api, trip.location, call.key), ())
        return any(
            other.number < step.number and other.location != step.location for other in known
        )

    def is_answered(self, api: str, call: HistoryCall) -> bool:
        """Whether any request answered a call."""
        return any((of, key) == (api, call.key) for of, _, key in self._answered)

    def expected_position(self, step: Step) -> tuple[Scenario, int] | None:
        """The scenario and the position of the turn that should answer the request, whether or not
        it did."""
        scenario = self.scenarios.get(step.exchange.scenario or "")
        position = step.exchange.played.position
        if scenario is not None and position is not None:
            selection = played_selection(scenario, step.exchange.played)
            return scenario if selection is None else selection.scenario, position
        if step.last is None or not step.last.played:
            return None
        last = step.last.played[-1].exchange.played
        if last.position is None:
            return None
        scenario = self.scenarios[last.scenario or ""]
        return way_on(scenario, last, step.request), last.position + 1

    def _add(self, exchange: Exchange, request: Request) -> None:
        step = Step(exchange, request)
        self._start_at_stored(step)
        self._read(step, read_history(request.messages))
        assign_results(step)
        step.hops = hops(step)
        step.turn, step.calls = self._turn(exchange, request)
        step.quirked = _is_quirked(step, self.scenarios)
        self._index(step)

    def _index(self, step: Step) -> None:
        api, exchange = step.request.api, step.exchange
        self.steps.append(step)
        at_location = self._locations.setdefault((api, step.location), [])
        step.previous = at_location[-1] if at_location else None
        at_location.append(step)
        for trip in step.round_trips:
            for call in trip.calls:
                if call.results:
                    self._answered.setdefault((api, trip.location, call.key), []).append(step)
        if step.turn is None or exchange.played.position is None:
            return
        for streamed in step.calls:
            self._streamed.setdefault(streamed.id, exchange.number)
        scenario = self.scenarios[exchange.scenario or ""]
        selection = played_selection(scenario, exchange.played)
        way = scenario if selection is None else selection.scenario
        token = mint_token(way, exchange.played.position)
        self._tokens.setdefault(token, []).append(step)
        stored = PROTOCOLS[api].stored
        prefix = stored.prefix if stored is not None else ""
        recorded = (exchange.played.answer_id or "").removeprefix(prefix)
        if recorded not in ("", token):  # a recorded answer has the id of the service
            self._tokens.setdefault(recorded, []).append(step)
        if step.request.conversation is not None:
            self._conversations[step.request.conversation] = token

    def _start_at_stored(self, step: Step) -> None:
        """Starts the history with the stored turn that a request refers to."""
        token = step.request.previous
        if token is None and step.request.conversation is not None:
            token = self._conversations.get(step.request.conversation)
        if token is not None:
            step.advance("stored", token)
            answers = self._tokens.get(token, ())
            step.add_turn(answers, stored=True)
            step.parent = answers[-1] if answers else None

    def _read(self, step: Step, history: History) -> None:
        """Reads the turns of a history, and the messages between them."""
        for turn in history.turns:
            _read_between(step, turn.before)
            earlier = self._locations.get((step.request.api, step.location), ())
            trip = step.add_turn(earlier, text=turn.text, echoes=list(turn.calls))
            step.advance("assistant")
            for message in turn.messages:
                if message.ref:
                    trip.stored = True
                    trip.answers = tuple(self._tokens.get(message.ref) or trip.answers)
        _read_between(step, history.after)

    def _turn(
        self, exchange: Exchange, request: Request
    ) -> tuple[Turn | None, tuple[StreamedCall, ...]]:
        scenario = self.scenarios.get(exchange.scenario or "")
        if exchange.outcome != "played" or scenario is None:
            return None, ()
        try:
            selection = played_selection(scenario, exchange.played, request)
        except RequestError:  # its texts may be shortened
            return None, ()
        if selection is None:
            return None, ()
        spec = turn_at(selection.scenario, selection.position, request.api)
        if spec is None or spec.http is not None:
            return None, ()  # the scenario has been changed since
        if (spec.is_auto or selection.variation) and len(exchange.body) > LONGEST:
            return None, ()  # the answer depends on texts that may be shortened
        try:
            adapted = adaptation(spec, selection.scenario, request, PROTOCOLS[request.api])
        except RequestError:
            return None, ()
        turn, planned = self._resolve_turn(selection, request.api, spec, adapted)
        offered = {tool.name for tool in request.tools}
        calls = tuple(
            StreamedCall(
                call.id,
                call.name,
                call.arguments,
                one.malformed,
                call.name in offered,
                one.any_id,
                one.refused,
            )
            for call, one in zip(turn.tool_calls if planned else (), planned, strict=True)
        )
        return turn, calls

    def _resolve_turn(
        self, selection: Selection, api: str, spec: TurnSpec, adapted: Adaptation | None
    ) -> tuple[Turn, tuple[PlannedCall, ...]]:
        """The turn that was selected, as a request gets it, and its calls as they are planned."""
        scenario, position = selection.scenario, selection.position
        key = (scenario.name, position, api, adapted, scenario.path, selection.variation)
        resolved = self._turns.get(key)
        if resolved is None:
            if adapted is not None:
                spec = adapted.apply(spec, scenario)
            turn = resolve(scenario, position, api, spec=spec)
            planned = planned_calls(scenario, position, api)
            if planned is None:
                planned = tuple(
                    PlannedCall(call.name, call.id, any_id=scenario.any_ids)
                    for call in turn.tool_calls
                )
            elif adapted is not None:  # the limits of a request may cut calls
                parts = tool_parts(spec.reply)
                planned = tuple(
                    replace(call, malformed=part.malformed)
                    for call, part in zip(planned, parts, strict=False)
                )
            resolved = self._turns[key] = (turn, planned)
        return resolved


def _read_between(step: Step, messages: Sequence[Message]) -> None:
    """Reads the messages of the user and the results of tools between two turns of the model."""
    trip, role = step.last, ""
    for message in messages:
        if message.role == "user":
            step.advance("user", message.text)
            if trip is not None:
                trip.user_follows = True
        else:
            if role != "tool":
                step.advance("tool")
            (trip.results if trip is not None else step.leading_results).append(message)
        role = message.role


def _parse(exchange: Exchange) -> Request | None:
    if exchange.received.target is None or exchange.played.api is None:
        return None
    if exchange.outcome == "auxiliary":  # it is beside the conversation
        return None
    try:
        body = parse_object(exchange.body)
        if len(exchange.body) > LONGEST:
            # As the journal keeps large bodies: otherwise one text would differ between requests.
            body = shortened_value(body)
        protocol = PROTOCOLS[exchange.played.api]
        return read_request(protocol, body, exchange.received.target, exchange.headers)
    except (RequestError, RecursionError):  # the latter where it was nested too deeply
        return None


def _is_quirked(step: Step, scenarios: Mapping[str, Scenario]) -> bool:
    exchange = step.exchange
    if exchange.played.quirks:
        return True
    if step.turn is None or exchange.played.position is None:
        return False
    spec = played_turn(scenarios[exchange.scenario or ""], exchange.played)
    return spec is not None and spec.wire is not None and bool(spec.wire.quirks)


@dataclass(frozen=True, slots=True)
class Violation:
    """One invariant that was broken.

    Args:
        exchange: the number of the request that shows it.
        location: in its conversation. Every later request repeats the history, so equal violations
            at one location are reported once.
    """

    invariant: str
    exchange: int
    message: str
    location: int = field(default=0, compare=False, repr=False)

    def as_json(self) -> dict[str, Any]:
        """As the control route sends it."""
        return {"invariant": self.invariant, "exchange": self.exchange, "message": self.message}

    def __str__(self) -> str:
        return f"{self.invariant}, request {self.exchange}: {self.message}"


def violation(name: str, where: RoundTrip | Step | Exchange, /, **values: object) -> Violation:
    """A violation in a request, which may be for no answer of a model, or in a round trip of it.

    Args:
        name: of the mistake, in `violations.yaml`.
        values: what its sentence is filled with.
    """
    ((invariant, sentence),) = table("conversations/violations.yaml")[name].items()
    if isinstance(where, Exchange):
        return Violation(invariant, where.number, sentence.format(**values))
    step = where.step if isinstance(where, RoundTrip) else where
    return Violation(invariant, step.number, sentence.format(**values), where.location)


@dataclass(slots=True)
class JudgedSession:
    """A session while it is judged.

    Args:
        depth: how many requests in a row a client may make for a model that never stops.
        reported: the numbers of the requests with a violation.
        traffic: of MCP servers, once `traffic_of` has read it.
    """

    journal: tuple[Exchange, ...]
    history: SessionHistory
    depth: int
    reported: set[int] = field(default_factory=set)
    traffic: object = None


Violations = Iterator[Violation]
Judge = Callable[[JudgedSession], Violations]
