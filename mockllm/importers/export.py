"""Writes exchanges as a VCR cassette, the inverse of `vcr`, and makes the exchanges of a scenario.

`vcr.read` of such a cassette returns the same exchanges, but without times and chunks, which
cassettes cannot hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from pathlib import Path
from typing import Any

from mockllm.core.timed_bytes import TimedBytes
from mockllm.core.turn import ToolCall
from mockllm.errors import UsageError
from mockllm.framing.sse import decode
from mockllm.matching.positions import planned_calls
from mockllm.matching.select import Selection
from mockllm.protocols import PROTOCOLS
from mockllm.protocols.base import WireProtocol, dumps
from mockllm.protocols.decoding import decoded
from mockllm.protocols.records import Json
from mockllm.protocols.values import json_object
from mockllm.redaction.credentials import header_is_secret
from mockllm.replay.answer import HttpAnswer, http_error_answer
from mockllm.replay.client_requests import client_target, first_body, user_text
from mockllm.replay.compile import Replayer
from mockllm.scenario.model import Api, Http, ResultCondition, Scenario, TurnSpec
from mockllm.scenario.yamltext import write
from mockllm.tapes.captured import Captured
from mockllm.tapes.load import load_tape
from mockllm.tapes.model import Tape

__all__ = ["cassette", "exchanges"]

_MODEL = "mock-model"


def cassette(exchanges: Iterable[Captured]) -> str:
    """The YAML text of a cassette, version 1, as vcrpy reads it."""
    return write({"interactions": [_interaction(one) for one in exchanges], "version": 1})


def _interaction(exchange: Captured) -> dict[str, Any]:
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
            "status": {"code": exchange.status, "message": _phrase(exchange.status)},
        },
    }


def _text(body: bytes) -> str | bytes:
    try:
        return body.decode()
    except UnicodeDecodeError:
        return body


def _lists(headers: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    lists: dict[str, list[str]] = {}
    for name, value in headers:
        lists.setdefault(name, []).append(value)
    return lists


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


# Exchanges


def exchanges(scenario: Scenario, api: Api | None = None) -> list[Captured]:
    """The exchanges of a conversation through all turns of a scenario.

    A turn with a tape gives the recorded exchange. Any other is played to the requests of a client
    of the API, as a stream.

    Args:
        api: the protocol of turns without a tape; default: that of the tapes, else the first one
            of the scenario.

    Raises:
        UsageError: the scenario does not play over the protocol.
    """
    recorded = [_tape(turn) for turn in scenario.turns]
    recorded_api = next((tape.api for tape in recorded if tape is not None), None)
    name = api or recorded_api or next(iter(scenario.apis or PROTOCOLS))
    if not scenario.plays_over(name):
        known = ", ".join(scenario.apis)
        raise UsageError(f"scenario {scenario.name!r} does not play over {name}, only over {known}")
    client = _Client(scenario, PROTOCOLS[name])
    found: list[Captured] = []
    for position, tape in enumerate(recorded):
        played = list(client.turn(position))
        sent = None if tape is None or tape.api != name else tape.request
        if tape is None or sent is None:
            found += played
            continue
        source = f"{scenario.name} turn {position + 1}"
        found += [
            *played[:-1],
            Captured(
                sent.method,
                sent.url,
                sent.headers,
                sent.body,
                tape.status,
                tape.headers,
                tape.chunks,
                tape.cut,
                source=source,
            ),
        ]
    return found


def _tape(turn: TurnSpec) -> Tape | None:
    if turn.recorded is None or turn.recorded.path is None:
        return None
    path = Path(turn.recorded.path)
    try:
        return load_tape(path.read_bytes(), str(path))
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from error


@dataclass(slots=True)
class _Client:
    """A client that has the conversation of a scenario, turn by turn.

    Args:
        body: of the latest request.
        answer_id, text, calls: of the latest answer.
    """

    scenario: Scenario
    protocol: WireProtocol
    body: Json = field(default_factory=dict)
    answer_id: str = ""
    text: str = ""
    calls: Sequence[ToolCall] = ()
    replayer: Replayer = field(default_factory=Replayer)

    def turn(self, position: int) -> Iterator[Captured]:
        """The exchanges of one turn: the attempts that fail, then the answer."""
        spec = self.scenario.turns[position].for_api(self.protocol.name)
        self.body = self._next(spec, position) if position else self._first()
        selection = Selection(self.scenario, position, position)
        for attempt, failure in enumerate((*spec.attempts, spec.http), 1):
            if failure is not None:
                yield self._failed(failure, selection, attempt)
        if spec.http is None:
            yield self._played(selection)

    def _first(self) -> Json:
        text = user_text(self.scenario)
        return first_body(self.protocol, _MODEL, text, self.scenario.tools)

    def _next(self, spec: TurnSpec, position: int) -> Json:
        """The next request: with results where the answer has calls, else with a user message."""
        protocol, client, expected = self.protocol, self.protocol.client, spec.request
        before = position - 1
        planned = planned_calls(self.scenario, before, protocol.name, protocol.call_prefix) or ()
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
        user = expected.user.value if expected and expected.user else "Go on."
        return client.next_message(self.body, self.answer_id, self.text, user)

    def _failed(self, failure: Http, selection: Selection, attempt: int) -> Captured:
        self.calls, self.text, self.answer_id = (), "", ""
        return self._captured(
            http_error_answer(self.protocol, failure, selection, attempt), selection
        )

    def _played(self, selection: Selection) -> Captured:
        target = client_target(self.protocol, _MODEL)
        request = replace(self.protocol.parse(self.body, target, False), stream=True)
        answer = self.replayer.answer(selection, request, self.protocol)
        turn, _ = decoded(self.protocol, decode(b"".join(answer.data)))
        self.calls, self.text, self.answer_id = turn.tool_calls, turn.text, answer.id or ""
        return self._captured(answer, selection)

    def _captured(self, answer: HttpAnswer, selection: Selection) -> Captured:
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
            dumps(self.body).encode(),
            answer.status,
            tuple(
                (name, value) for name, value in answer.headers if not name.startswith("access-")
            ),
            (TimedBytes(0, b"".join(answer.data)),) if answer.size else (),
            source=f"{self.scenario.name} turn {selection.position + 1}",
        )


def _result(condition: ResultCondition | None) -> str:
    """A tool result that meets a condition."""
    if condition is None or condition.text is None or condition.text.op == "regex":
        return "ok"
    return condition.text.value
