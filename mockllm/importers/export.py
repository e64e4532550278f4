"""Exchanges as a VCR cassette, the way back of `vcr`; and the exchanges that a scenario makes.

`vcr.read` of a cassette made here gives the same exchanges, but for times and cuts between
chunks, which no cassette can hold.
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
from mockllm.matching.select import Pick
from mockllm.protocols import PROTOCOLS
from mockllm.protocols.base import Json, WireProtocol, dumps
from mockllm.protocols.decoding import decoded
from mockllm.replay.answer import Answer, http_answer
from mockllm.replay.client_requests import client_target, first_body, user_text
from mockllm.replay.compile import Replayer
from mockllm.scenario.model import Api, Http, ResultCondition, Scenario, TurnSpec
from mockllm.scenario.yamltext import write
from mockllm.tapes.captured import Captured
from mockllm.tapes.load import load_tape
from mockllm.tapes.model import Tape

__all__ = ["cassette", "exchanges"]

_MODEL = "mock-model"
_SECRET = ("authorization", "x-api-key", "x-goog-api-key")


def cassette(exchanges: Iterable[Captured]) -> str:
    """The YAML text of a cassette, version 1, as vcrpy reads it."""
    return write({"interactions": [_interaction(one) for one in exchanges], "version": 1})


def _interaction(one: Captured) -> dict[str, Any]:
    return {
        "request": {
            "body": _text(one.request_body),
            "headers": _lists(one.request_headers),
            "method": one.method,
            "uri": one.url,
        },
        "response": {
            "body": {"string": _text(one.body)},
            "headers": _lists(one.headers),
            "status": {"code": one.status, "message": _phrase(one.status)},
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

    A turn with a tape gives what was recorded, request and all. The others are asked for as a
    client of the API would, and streamed.

    Args:
        api: over which protocol the turns without a tape are played; default: that of the
            tapes, or the first that the scenario plays.

    Raises:
        UsageError: the scenario does not play over the protocol.
    """
    recorded = [_tape(turn) for turn in scenario.turns]
    told = next((tape.api for tape in recorded if tape is not None), None)
    name = api or told or next(iter(scenario.apis or PROTOCOLS))
    if not scenario.plays_over(name):
        known = ", ".join(scenario.apis)
        raise UsageError(f"scenario {scenario.name!r} does not play over {name}, only over {known}")
    talk = _Talk(scenario, PROTOCOLS[name])
    found: list[Captured] = []
    for position, tape in enumerate(recorded):
        made = list(talk.turn(position))
        asked = None if tape is None or tape.api != name else tape.request
        if tape is None or asked is None:
            found += made
            continue
        source = f"{scenario.name} turn {position + 1}"
        found += [
            *made[:-1],
            Captured(
                asked.method,
                asked.url,
                asked.headers,
                asked.body,
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
class _Talk:
    """A client that leads a conversation through the turns of a scenario."""

    scenario: Scenario
    protocol: WireProtocol
    body: Json = field(default_factory=dict)
    answer: str = ""
    said: str = ""
    calls: Sequence[ToolCall] = ()
    replayer: Replayer = field(default_factory=Replayer)

    def turn(self, position: int) -> Iterator[Captured]:
        """The exchanges of one turn: attempts that fail, then the one that counts."""
        spec = self.scenario.turns[position].for_api(self.protocol.name)
        self.body = self._next(spec, position) if position else self._first()
        picked = Pick(self.scenario, position, position)
        for attempt, failure in enumerate((*spec.attempts, spec.http), 1):
            if failure is not None:
                yield self._failed(failure, picked, attempt)
        if spec.http is None:
            yield self._played(picked)

    def _first(self) -> Json:
        text = user_text(self.scenario)
        return first_body(self.protocol, _MODEL, text, self.scenario.tools)

    def _next(self, spec: TurnSpec, position: int) -> Json:
        """The request after an answer: the results of its calls, or something else to say."""
        protocol, client, expected = self.protocol, self.protocol.client, spec.request
        before = position - 1
        planned = planned_calls(self.scenario, before, protocol.name, protocol.call_prefix) or ()
        # Some protocols have no ids, so calls are told apart by their order.
        ids = [call.id for call in planned]
        if len(ids) != len(self.calls):
            ids = [call.id for call in self.calls]
        calls = [
            (id, call)
            for id, call in zip(ids, self.calls, strict=True)
            if not client.arguments_are_values or _is_object(call)
        ]
        if calls:
            conditions = dict(expected.results) if expected else {}
            results = [_result(conditions.get(id)) for id, _ in calls]
            made = [call for _, call in calls]
            return client.continuation(self.body, self.answer, made, results)
        user = expected.user.value if expected and expected.user else "Go on."
        return client.next_message(self.body, self.answer, self.said, user)

    def _failed(self, failure: Http, picked: Pick, attempt: int) -> Captured:
        self.calls, self.said, self.answer = (), "", ""
        return self._captured(http_answer(self.protocol, failure, picked, attempt), picked)

    def _played(self, picked: Pick) -> Captured:
        target = client_target(self.protocol, _MODEL)
        request = replace(self.protocol.parse(self.body, target, False), stream=True)
        answer = self.replayer.answer(picked, request, self.protocol)
        turn, _ = decoded(self.protocol, decode(b"".join(answer.data)))
        self.calls, self.said, self.answer = turn.tool_calls, turn.text, answer.id or ""
        return self._captured(answer, picked)

    def _captured(self, answer: Answer, picked: Pick) -> Captured:
        client = self.protocol.client
        kept = {name: value for name, value in client.headers.items() if name not in _SECRET}
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
            source=f"{self.scenario.name} turn {picked.position + 1}",
        )


def _is_object(call: ToolCall) -> bool:
    try:
        return isinstance(call.parsed(), dict)
    except ValueError:
        return False


def _result(condition: ResultCondition | None) -> str:
    if condition is None or condition.text is None or condition.text.op == "regex":
        return "ok"
    return condition.text.value
