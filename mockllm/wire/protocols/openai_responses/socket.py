"""Responses over a WebSocket: https://platform.openai.com/docs/guides/websocket-mode. The messages
are those of `ResponsesClientEvent` and `ResponsesServerEvent` in OpenAI's Python SDK.

A `response.create` is a request over HTTP, with `stream_id` (the lane) and `generate` besides. The
messages of its answer are the data of the events over SSE.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mockllm.core.errors import RequestError
from mockllm.core.events import Finish, Start
from mockllm.core.http import NO_TARGET
from mockllm.core.record import record
from mockllm.core.seeded import derive
from mockllm.core.turn import Turn
from mockllm.wire.protocols.base import Reply, dumps
from mockllm.wire.protocols.openai_responses.encoder import Encoder
from mockllm.wire.protocols.openai_responses.objects import response_id
from mockllm.wire.protocols.openai_responses.request import options, parse
from mockllm.wire.protocols.openai_responses.routes import STORED_ANSWERS
from mockllm.wire.protocols.records import Fields, Json
from mockllm.wire.protocols.sockets import Ask, Close, Heard, Opening, Step
from mockllm.wire.protocols.values import array, mapping, string

MOST_LANES = 32
"""Named ones of a connection, as the service has it (its guide, "Multiplexing")."""

MOST_RUNNING = 16
"""Answers on their way at the same time (the same)."""

PREVIOUS = "previous_response_id"
_OUTPUTS = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "computer_call": "computer_call_output",
    "shell_call": "shell_call_output",
    "apply_patch_call": "apply_patch_call_output",
}
"""The item that a client sends for each kind of call that it carries out."""


@record
class Prepared:
    """A warm-up (`generate: false`): what the next request continues in its place.

    Args:
        previous: the id that it continues itself; "" for none.
        input: the items that it has.
    """

    previous: str
    input: tuple[Any, ...]


_EXPIRED = dumps(
    {
        "type": "error",
        "status": 400,
        "error": {
            "type": "invalid_request_error",
            "code": "websocket_connection_limit_reached",
            "message": "Responses websocket connection limit reached (60 minutes). Create a "
            "new websocket connection to continue.",
            "param": None,
        },
    }
)


class ResponsesConversation:
    """The client's side of one connection, as the service remembers it."""

    binary = False
    subprotocols: tuple[str, ...] = ()
    lifetime = 60 * 60.0
    notice = 0.0

    def __init__(self) -> None:
        self._latest: dict[str, str] = {}  # the id of the latest answer of each lane
        self._prepared: dict[str, Prepared] = {}
        self._running: dict[str, Ask] = {}
        self._ended: dict[str, Fields] = {}  # the last event of the latest answers
        self._steers: dict[str, list[tuple[str, list[Any]]]] = {}
        self._lanes: set[str] = set()
        self._count = 0

    def open(self, opening: Opening) -> list[Step]:
        """Nothing: the client speaks first."""
        return []

    def warn(self) -> list[Step]:
        """Nothing: the service gives no notice."""
        return []

    def expire(self) -> list[Step]:
        """The error for a connection that is 60 minutes old, and its end."""
        return [_EXPIRED, Close(1008)]

    def receive(self, message: Fields) -> list[Step]:
        """What follows from a client's message."""
        match message.get("type"):
            case "response.create":
                return [self._ask(message)]
            case "response.steer":
                return self._steer(message)
            case "response.processed" | "response.cancel":
                # Codex says what it has read; pipecat cancels also what is over, and then waits for
                # what is on its way. Neither is in the types of the SDK, and neither is answered.
                return []
        raise RequestError(
            f"Unknown event type {message.get('type')!r}: a client sends response.create or "
            "response.steer.",
            param="type",
            code="invalid_value",
            mistake="unknown-message",
        )

    def _ask(self, message: Fields) -> Ask:
        lane = message.get("stream_id", "")
        if not isinstance(lane, str) or (lane == "" and "stream_id" in message):
            raise RequestError("'stream_id' must be a text.", param="stream_id")
        if lane and lane not in self._lanes:
            if len(self._lanes) >= MOST_LANES:
                raise RequestError(
                    f"A connection has at most {MOST_LANES} streams.",
                    code="websocket_stream_limit_reached",
                )
            self._lanes.add(lane)
        return Ask(message, lane, string(message.get(PREVIOUS)))

    def request(self, ask: Ask, is_stored: Callable[[str], bool]) -> Json | tuple[str, ...]:
        """The body over HTTP; or the messages of a warm-up."""
        body = body_of(ask.message)
        previous = ask.previous
        if previous and previous not in self._latest.values() and not is_stored(previous):
            refusal = STORED_ANSWERS.previous_not_found(previous)
            refusal.mistake = "context-missing"
            raise refusal
        if len(self._running) >= MOST_RUNNING:
            raise RequestError(
                f"A connection has at most {MOST_RUNNING} responses in flight.",
                status=429,
                code="rate_limit_exceeded",
            )
        # Until it is answered: one that is refused is sent again.
        added = [item for _, items in self._steers.get(previous, ()) for item in items]
        prepared = self._prepared.get(previous)
        if prepared is not None:
            added = [*prepared.input, *added]
            body[PREVIOUS] = prepared.previous or None
        if added:
            body["input"] = [*added, *items_of(body.get("input"))]
        return self._warm_up(ask, body) if ask.message.get("generate") is False else body

    def _warm_up(self, ask: Ask, body: Json) -> tuple[str, ...]:
        """The messages of an answer without output, whose id the next request continues."""
        self._count += 1
        seed = derive("warm-up", dumps(body), self._count, length=40, hex=True)
        asked = parse({**body, "input": body.get("input") or ""}, NO_TARGET, True)
        encoder = Encoder(Turn(finish="stop"), Reply(seed, seed, asked.model, options(asked)))
        frames = [*encoder.encode(Start()), *encoder.encode(Finish("stop"))]
        created, completed = frames[0], frames[-1]
        id = response_id(seed)
        if len(self._prepared) >= MOST_LANES:  # a client continues the latest of each lane
            del self._prepared[next(iter(self._prepared))]
        self._prepared[id] = Prepared(
            string(body.get(PREVIOUS)), tuple(items_of(body.get("input")))
        )
        ended = {**json.loads(completed.data or ""), "sequence_number": 1}
        return created.data or "", dumps(ended)

    def messages(
        self, ask: Ask, status: int, headers: Mapping[str, str], payloads: list[str]
    ) -> list[str]:
        """The messages of an answer, with its lane."""
        if status >= 400:
            return [self._error(ask, status, headers, payloads)]
        self._steers.pop(ask.previous, None)
        first, last = (_fields(payloads[at]) if payloads else {} for at in (0, -1))
        id = string(mapping(first.get("response")).get("id"))
        if id:
            self._latest[ask.lane] = id
            self._running[id], self._ended[id] = ask, last
        prepared = self._prepared.get(ask.previous)
        if prepared is not None:
            stated = dumps(prepared.previous or None)
            payloads = [
                text.replace(f'"{PREVIOUS}":{stated}', f'"{PREVIOUS}":"{ask.previous}"', 1)
                for text in payloads
            ]
        return [_in_lane(text, ask.lane) for text in payloads] if ask.lane else payloads

    def _error(
        self, ask: Ask, status: int, headers: Mapping[str, str], payloads: Sequence[str]
    ) -> str:
        """An error that ends the request, and not the connection. Codex reads the headers beside
        the error, the types of the SDK have them in it."""
        for lane, id in tuple(self._latest.items()):
            if id == ask.previous:  # the service forgets what could not be continued
                del self._latest[lane]
        stated = _fields(payloads[0] if payloads else "").get("error")
        error = stated if isinstance(stated, dict) else {"message": "".join(payloads)}
        limits = {
            name: value
            for name, value in headers.items()
            if name.startswith(("x-ratelimit", "retry-after", "x-request-id"))
        }
        if limits:
            error = {**error, "headers": limits}
        message = {"type": "error", "status": status, "error": error}
        return _in_lane(dumps({**message, "headers": limits} if limits else message), ask.lane)

    # Steering: https://platform.openai.com/docs/guides/websocket-mode ("Steering"), and the
    # docstrings of `ResponseSteerEvent` in the SDK. A response is answered to its end, as the
    # service may do, and its successor follows.

    def _steer(self, message: Fields) -> list[Step]:
        id, input = string(message.get(PREVIOUS)), message.get("input")
        ask = self._running.get(id)
        steer: Json = {PREVIOUS: id}
        lane = "" if ask is None else ask.lane
        failure = self._steer_failure(id, input)
        if failure is not None:
            code, text = failure
            error = {"type": "invalid_request_error", "code": code, "message": text}
            failed = _event("failed", error=error, steer={**steer, "input": input})
            return [_in_lane(failed, lane)]
        self._count += 1
        number = derive("steer", id, self._count, length=24, hex=True)
        self._steers.setdefault(id, []).append((f"steer_{number}", items_of(input)))
        return [_in_lane(_event("accepted", steer={"id": f"steer_{number}", **steer}), lane)]

    def _steer_failure(self, id: str, input: object) -> tuple[str, str] | None:
        items = items_of(input)
        if not items or any(
            not isinstance(item, dict) or item.get("role") != "user" for item in items
        ):
            return "invalid_input", "'input' must be a text, or messages with the role 'user'."
        if id in self._running:
            return None
        if id in self._ended:
            return "response_already_completed", f"The response '{id}' is over."
        return "response_not_found", f"Response '{id}' not found on this connection."

    def hear(self, heard: Heard | None) -> list[Step]:
        """Nothing: the API takes no sound on the connection."""
        return []

    def finish(self, ask: Ask, sent: int) -> list[Step]:
        """The successor of an answer that was steered; where it waits for results of calls, that
        it does."""
        id = next((id for id, running in self._running.items() if running is ask), "")
        self._running.pop(id, None)
        if len(self._ended) > MOST_LANES:
            self._ended.pop(next(iter(self._ended)))
        steers = self._steers.get(id)
        if not steers:
            return []
        ended = mapping(self._ended[id].get("response"))
        required = [_stub(item) for item in array(ended.get("output")) if _awaits_result(item)]
        if required:
            return [
                _in_lane(
                    _event(
                        "pending",
                        reason="waiting_for_required_input",
                        required_input=required,
                        steer={"id": number, PREVIOUS: id},
                    ),
                    ask.lane,
                )
                for number, _ in steers
            ]
        message = {**ask.message, "input": [], PREVIOUS: id}
        return [replace(ask, message=message, previous=id)]


def _awaits_result(item: object) -> bool:
    return isinstance(item, dict) and item.get("type") in _OUTPUTS


def _stub(call: Json) -> Json:
    """The item that a client fills in for a call."""
    kind = _OUTPUTS[call["type"]]
    named = {"name": call.get("name")} if kind == "function_call_output" else {}
    return {"type": kind, "call_id": call.get("call_id"), **named}


def _event(kind: str, **fields: Any) -> str:
    return dumps({"type": f"response.steer.{kind}", "sequence_number": 0, **fields})


def body_of(message: Fields) -> Json:
    """The body of a request over HTTP that streams its answer."""
    own = ("type", "stream_id", "generate", "background")
    return {**{name: value for name, value in message.items() if name not in own}, "stream": True}


def items_of(input: object) -> list[Any]:
    """An input as items."""
    if isinstance(input, str):
        return [{"type": "message", "role": "user", "content": input}]
    return list(input) if isinstance(input, list) else []


def _fields(text: str) -> Fields:
    try:
        return mapping(json.loads(text))
    except ValueError:  # broken on purpose
        return {}


def _in_lane(text: str, lane: str) -> str:
    """A message with the lane that the client named."""
    return f'{text[:-1]},"stream_id":{dumps(lane)}}}' if lane and text.endswith("}") else text
