"""Writes exchanges as a VCR cassette, the inverse of `vcr`, and makes the exchanges of a scenario.

`vcr.read` of such a cassette returns the same exchanges, but without times and chunks, which
cassettes cannot hold.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from mockllm.core.errors import UsageError
from mockllm.core.http import Ending, TimedBytes, reason_phrase
from mockllm.core.jsontext import json_bytes
from mockllm.core.request import Request
from mockllm.core.turn import ToolCall
from mockllm.play.matching.branching import way_after, way_of
from mockllm.play.matching.conversation import Selection, planned_calls, turn_at, turn_index
from mockllm.play.replay.client_requests import client_target, first_body, text_meeting, user_text
from mockllm.play.replay.compilation.compiler import Replayer
from mockllm.play.replay.compilation.http_answer import HttpAnswer
from mockllm.play.replay.decision import Decision, attempt_answer
from mockllm.play.replay.filling import in_form
from mockllm.play.tapes.captured import Captured, Cut, Tape, load_tape
from mockllm.record.redaction.credentials import header_is_secret
from mockllm.scenario import model as m
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.base import WireProtocol, dumps
from mockllm.wire.protocols.decoding import decode_turn
from mockllm.wire.protocols.records import Json
from mockllm.wire.protocols.values import json_object, utf8_text

_MODEL = "mock-model"


def cassette(exchanges: Iterable[Captured]) -> str:
    """The YAML text of a cassette, version 1, as vcrpy reads it."""
    interactions = [_interaction(exchange) for exchange in exchanges]
    text = _dump_yaml(interactions, allow_unicode=True)
    # PyYAML writes these line breaks of YAML 1.1 as they are, and reads them as spaces.
    return _dump_yaml(interactions, allow_unicode=False) if _BREAKS.search(text) else text


_BREAKS = re.compile("[\x85\u2028\u2029]")


def _dump_yaml(interactions: list[dict[str, Any]], *, allow_unicode: bool) -> str:
    text: str = yaml.dump(
        {"interactions": interactions, "version": 1},
        Dumper=yaml.SafeDumper,
        allow_unicode=allow_unicode,
        sort_keys=False,
        width=2**31,
    )
    return text


def _interaction(exchange: Captured) -> dict[str, Any]:
    reason = reason_phrase(exchange.status) if exchange.reason is None else exchange.reason
    return {
        "request": {
            "body": _text(exchange.request_body),
            "headers": _lists(exchange.request_headers),
            "method": exchange.method,
            "uri": exchange.url,
        },
        "response": {
            "body": {"string": _text(exchange.body)},
            "headers": _lists(exchange.headers),
            "status": {"code": exchange.status, "message": reason},
        },
    }


def _text(body: bytes) -> str | bytes:
    text = utf8_text(body)
    return body if text is None else text


def _lists(headers: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    lists: dict[str, list[str]] = {}
    for name, value in headers:
        lists.setdefault(name, []).append(value)
    return lists


# Exchanges


def exchanges(scenario: m.Scenario, api: m.Api | None = None) -> list[Captured]:
    """The exchanges of a conversation through all turns of a scenario.

    A turn with a tape gives the recorded exchange, and so does an attempt with one. Any other is
    played to the requests of a client of the API, as a stream. Turns before the first recorded one
    are left out.

    Args:
        api: the protocol of all exchanges; default: each tape keeps its own, and other turns have
            that of the first tape, else the first one of the scenario.

    Raises:
        UsageError: the scenario does not play over the protocol, or has a route and a turn that was
            not recorded.
    """
    if scenario.socket:
        raise UsageError(f"scenario {scenario.name!r} is a WebSocket, which no cassette can hold")
    if scenario.server is not None:
        raise UsageError(f"{scenario.name!r} is an MCP server, and no exchange with a model")
    recorded = [_tape(turn.recorded) for turn in scenario.turns]
    if scenario.route is not None:
        return _route_exchanges(scenario, recorded)
    recorded_api = next((tape.api for tape in recorded if tape is not None), None)
    name = api or recorded_api or next(iter(scenario.apis or PROTOCOLS.over_http))
    if not scenario.plays_over(name):
        known = ", ".join(scenario.apis)
        raise UsageError(f"scenario {scenario.name!r} does not play over {name}, only over {known}")
    if PROTOCOLS.addresses[name].is_socket:
        raise UsageError(f"{name} has only WebSockets, which no cassette can hold; choose an --api")
    client = _Client(scenario, PROTOCOLS[name])
    # What was before a recording began is in the history of its first request.
    begin = next((index for index, tape in enumerate(recorded) if tape is not None), 0)
    found: list[Captured] = []
    for position, index in enumerate(scenario.steps):
        tried = scenario.turns[index].for_api(name).attempts
        tapes = [*(_tape(attempt.recorded) for attempt in tried), recorded[index]]
        # A conversation that may go in several ways goes in one of them.
        exchanges = list(zip(client.turn(position), tapes, strict=not scenario.varies))
        if position >= begin:
            found += [
                _recorded_exchange(tape, api, exchange) or exchange for exchange, tape in exchanges
            ]
    return found


def client_requests(scenario: m.Scenario, protocol: WireProtocol) -> Iterator[Captured]:
    """The exchanges of a client that has the conversation of a scenario over a protocol, one for
    each turn, with nothing broken on the way. They end at a turn that is an HTTP error."""
    turns = tuple(turn.with_each(_unbroken) for turn in scenario.turns)
    client = _Client(replace(scenario, turns=turns), protocol)
    for position in range(len(client.scenario.steps)):
        yield from client.turn(position)
        if client.failed:
            return


def _unbroken(turn: m.TurnSpec) -> m.TurnSpec:
    return replace(turn, attempts=(), fault=(), recorded=None)


def _recorded_exchange(tape: Tape | None, api: m.Api | None, played: Captured) -> Captured | None:
    """The exchange of a tape; None where there is none, where its request is not known, or where
    it is of another API than the requested one."""
    if tape is None or not tape.exchange.method or api not in (None, tape.api):
        return None
    return replace(tape.exchange, source=played.source)


def _route_exchanges(scenario: m.Scenario, recorded: Sequence[Tape | None]) -> list[Captured]:
    """The recorded exchanges of a route that calls no model. What clients would send for an answer
    that was not recorded is not known."""
    tapes = [tape for tape in recorded if tape is not None and tape.exchange.method]
    if len(tapes) < len(recorded):
        raise UsageError(
            f"scenario {scenario.name!r} has the route {scenario.route} and a turn that was not "
            "recorded; only recorded answers of routes can be exported"
        )
    return [
        replace(tape.exchange, source=f"{scenario.name} turn {index + 1}")
        for index, tape in enumerate(tapes)
    ]


def _tape(recorded: m.Recorded | None) -> Tape | None:
    if recorded is None or recorded.path is None:
        return None
    path = Path(recorded.path)
    try:
        return load_tape(path.read_bytes(), str(path))
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from error


@dataclass(slots=True)
class _Client:
    """A client that has the conversation of a scenario, with its latest request and answer.

    Args:
        way: the scenario as the conversation goes.
        failed: whether the latest answer is an HTTP error.
    """

    scenario: m.Scenario
    protocol: WireProtocol
    body: Json = field(default_factory=dict)
    answer_id: str = ""
    text: str = ""
    calls: Sequence[ToolCall] = ()
    replayer: Replayer = field(default_factory=Replayer)
    way: m.Scenario = field(init=False)
    failed: bool = False

    def __post_init__(self) -> None:
        self.way = self.scenario

    def turn(self, position: int) -> Iterator[Captured]:
        """The exchanges of one turn: the attempts that fail, then the answer. None where the
        conversation has ended."""
        protocol, api = self.protocol, self.protocol.name
        if position and self.scenario.varies:
            taken = self.way.path[position - 1]
            self.way = way_after(self.scenario, position - 1, taken, self._request(), ())
        planned = turn_at(self.way, position, api)
        if planned is None:
            return
        self.body = self._next(planned, position) if position else self._first()
        decision = self._decision(position, planned)
        spec = decision.spec
        self.failed, tries = spec.http is not None, len(spec.attempts) + 1
        for attempt in range(1, tries + 1):
            self.calls, self.text, self.answer_id = (), "", ""
            if attempt == tries and spec.http is None:
                whole = self.replayer.answer(decision.selection, decision.request, protocol)
                turn, _ = decode_turn(protocol, protocol.usual.decode(b"".join(whole.data)))
                self.calls, self.text, self.answer_id = turn.tool_calls, turn.text, whole.id or ""
            answer = attempt_answer(self.replayer, decision, protocol, attempt)
            yield self._exchange(answer, position)

    def _decision(self, position: int, spec: m.TurnSpec) -> Decision:
        """The decision about the latest request."""
        request = self._request()
        index = turn_index(self.way, position)
        assert index is not None
        selection = Selection(self.way, position, index)
        if self.scenario.varies:
            if not position:
                way = way_of(self.scenario, request, 0, ())
                selection = Selection(way, position, position)
            selection = in_form(selection, request)
            self.way = selection.scenario
            spec = self.way.turns[position].for_api(request.api)
        return Decision(request, selection, spec)

    def _first(self) -> Json:
        text = user_text(self.scenario)
        return first_body(self.protocol, _MODEL, text, self.scenario.tools)

    def _next(self, spec: m.TurnSpec, position: int) -> Json:
        """The next request: with results where the answer has calls, else with a user message."""
        protocol, client, expected = self.protocol, self.protocol.client, spec.request
        before = position - 1
        planned = planned_calls(self.way, before, protocol.name) or ()
        # Some APIs have no ids (Gemini), so the ids of the scenario go to the calls in order.
        ids = [call.id for call in planned]
        if len(ids) != len(self.calls):
            ids = [call.id for call in self.calls]
        calls = [
            (id, call)
            for id, call in zip(ids, self.calls, strict=True)
            if not client.arguments_are_values or json_object(call.arguments) is not None
        ]
        if calls:
            conditions = dict(expected.results) if expected else {}
            results = [_result(conditions.get(id)) for id, _ in calls]
            tool_calls = [call for _, call in calls]
            return client.continuation(self.body, self.answer_id, tool_calls, results)
        user = text_meeting(expected.user, "Go on.") if expected and expected.user else "Go on."
        return client.next_message(self.body, self.answer_id, self.text, user)

    def _request(self) -> Request:
        target = client_target(self.protocol, _MODEL)
        return replace(self.protocol.parse(self.body, target, False), stream=True)

    def _exchange(self, answer: HttpAnswer, position: int) -> Captured:
        source = f"{self.scenario.name} turn {position + 1}"
        if answer.fault is not None and not answer.fault.has_head:
            raise UsageError(
                f"{source}: with the fault {answer.fault.faults} no answer is sent, which no "
                "export can express; take the fault away, or export another scenario"
            )
        client = self.protocol.client
        kept = {
            name: value
            for name, value in client.headers.items()
            if not header_is_secret(name, value)
        }
        return Captured(
            "POST",
            client.service + client.path_of(_MODEL),
            (("content-type", "application/json"), *kept.items()),
            json_bytes(dumps(self.body)),
            answer.status,
            tuple(
                (name, value) for name, value in answer.headers if not name.startswith("access-")
            ),
            (TimedBytes(0, b"".join(answer.data)),) if answer.size else (),
            cut=_CUTS[answer.ending],
            source=source,
        )


_CUTS: dict[Ending, Cut] = {
    "complete": "",
    "closed": "upstream",
    "reset": "reset",
    "chunk": "chunk",
    "open": "stalled",
}


def _result(condition: m.ResultCondition | None) -> str:
    if condition is None or (condition.text is None and not condition.error):
        return "ok"
    return "error" if condition.text is None else text_meeting(condition.text, "ok")
