"""The requests and answers on a recorded WebSocket, as they would be over HTTP: the inverse of
`socket`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from mockllm.core.jsontext import compact
from mockllm.wire.protocols.base import dumps
from mockllm.wire.protocols.openai_responses.socket import PREVIOUS, Prepared, body_of, items_of
from mockllm.wire.protocols.records import Fields, Json
from mockllm.wire.protocols.sockets import SocketExchange
from mockllm.wire.protocols.values import json_object, mapping, string

_ENDS = ("response.completed", "response.incomplete", "response.failed", "error")
_STEER = "response.steer."


@dataclass(slots=True)
class _Answer:
    """An answer that was asked for.

    Args:
        warms_up: whether it only prepares the next one, which over HTTP nothing does.
        continues: the id that the client named, and the one that it stands for over HTTP, where
            these differ.
    """

    asked: int
    message: Fields
    body: Json
    warms_up: bool = False
    continues: tuple[str, str] = ("", "")
    events: list[tuple[int, Fields, str]] = field(default_factory=list)
    is_over: bool = False

    def exchange(self) -> SocketExchange:
        """The request with its answer."""
        number, last, _ = self.events[-1]
        error = mapping(last.get("error"))
        if last.get("type") == "error" and error and len(self.events) == 1:
            body = {name: value for name, value in error.items() if name != "headers"}
            headers = {**mapping(error.get("headers")), **mapping(last.get("headers"))}
            status = last.get("status", last.get("status_code"))
            return SocketExchange(
                self.asked,
                self.body,
                ((number, dumps({"error": body})),),
                status if isinstance(status, int) and 400 <= status <= 599 else 400,
                tuple((str(name).lower(), str(value)) for name, value in headers.items()),
            )
        data = tuple((number, self._data(event, text)) for number, event, text in self.events)
        return SocketExchange(self.asked, self.body, data, is_over=self.is_over)

    def _data(self, event: Fields, text: str) -> str:
        """The data of an event over HTTP: without its lane, and with the id that was continued."""
        if event.get("type") == "error" and "error" in event:
            named = mapping(event["error"])
            kept = {name: named.get(name) for name in ("code", "message", "param")}
            number = len(self.events) - 1
            return dumps({"type": "error", **kept, "sequence_number": number})
        if "stream_id" in event or "\n" in text or "\r" in text:
            text = compact({name: item for name, item in event.items() if name != "stream_id"})
        named_id, id = self.continues
        if named_id:
            text = text.replace(dumps(named_id), dumps(id or None), 1)
        return text


def recorded_exchanges(
    messages: Sequence[tuple[bool, bytes]],
) -> tuple[list[SocketExchange], list[int]]:
    """The requests and answers on one connection, and the messages without a place in them.

    A warm-up is none: the request that continues it has its input. What a client added by steering
    is the input of the successor. A request without any answer is left out.
    """
    connection = _Connection()
    for number, (from_client, data) in enumerate(messages):
        message = json_object(data)
        if message is None:
            connection.others.append(number)
        elif from_client:
            connection.receive(number, message)
        else:
            connection.answer(number, message, data.decode())
    answers = [one for one in connection.answers if not one.warms_up]
    others = [*connection.others, *(one.asked for one in answers if not one.events)]
    return [one.exchange() for one in answers if one.events], sorted(others)


class _Connection:
    """What was read of one connection."""

    def __init__(self) -> None:
        self.answers: list[_Answer] = []
        self.others: list[int] = []
        self._prepared: dict[str, Prepared] = {}
        self._sent_steers: list[tuple[str, list[Any]]] = []
        self._steers: dict[str, list[Any]] = {}
        self._latest: dict[str, _Answer] = {}

    def receive(self, number: int, message: Fields) -> None:
        """Reads a client's message."""
        if message.get("type") == "response.create":
            self._ask(number, message)
        elif message.get("type") == "response.steer":
            steer = string(message.get(PREVIOUS)), items_of(message.get("input"))
            self._sent_steers.append(steer)
        else:
            self.others.append(number)

    def answer(self, number: int, event: Fields, text: str) -> None:
        """Reads a service's message."""
        kind, lane = string(event.get("type")), string(event.get("stream_id"))
        if kind.startswith(_STEER):
            self._steer(kind.removeprefix(_STEER))
            return
        running = next((one for one in self.answers if _is_awaited(one, lane)), None)
        if running is None and kind == "response.created":
            running = self._successor(number, lane)
        if running is None:
            self.others.append(number)
            return
        running.events.append((number, event, text))
        running.is_over = kind in _ENDS
        id = string(mapping(event.get("response")).get("id"))
        if kind == "response.created" and running.warms_up:
            body = running.body
            self._prepared[id] = Prepared(
                string(body.get(PREVIOUS)), tuple(items_of(body.get("input")))
            )
        self._latest[lane] = running

    def _ask(self, number: int, message: Fields) -> _Answer:
        body, previous = body_of(message), string(message.get(PREVIOUS))
        added, continues = self._steers.pop(previous, []), ("", "")
        prepared = self._prepared.get(previous)
        if prepared is not None:
            added, continues = [*prepared.input, *added], (previous, prepared.previous)
            body.pop(PREVIOUS)
            if prepared.previous:
                body[PREVIOUS] = prepared.previous
        if added:
            body["input"] = [*added, *items_of(body.get("input"))]
        warms_up = message.get("generate") is False
        self.answers.append(_Answer(number, message, body, warms_up, continues))
        return self.answers[-1]

    def _steer(self, outcome: str) -> None:
        """Reads what becomes of what a client added; they are told in their order."""
        if outcome in ("accepted", "failed") and self._sent_steers:
            previous, items = self._sent_steers.pop(0)
            if outcome == "accepted":
                self._steers.setdefault(previous, []).extend(items)

    def _successor(self, number: int, lane: str) -> _Answer | None:
        """The answer that follows one which was steered, without a further request."""
        last = self._latest.get(lane)
        id = "" if last is None else _id_of(last)
        if last is None or id not in self._steers:
            return None
        return self._ask(number, {**last.message, "input": [], PREVIOUS: id})


def _is_awaited(answer: _Answer, lane: str) -> bool:
    return not answer.is_over and string(answer.message.get("stream_id")) == lane


def _id_of(answer: _Answer) -> str:
    ids = (string(mapping(event.get("response")).get("id")) for _, event, _ in answer.events)
    return next(filter(None, ids), "")
