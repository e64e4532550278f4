"""A scenario with a WebSocket as it is played: its connections, what the client has to send on
them, and the bytes that the service sends, with their times.

Where the scenario is as it was recorded, bytes and times are those of the tape, message by message.
"""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any, Literal

from mockllm.core.jsontext import compact, json_bytes
from mockllm.core.record import record
from mockllm.play.matching.socket_changes import opaque_values
from mockllm.play.tapes.socket_session import SocketSession
from mockllm.play.tapes.socket_turns import (
    MediaStream,
    TakenMessage,
    TakenTurn,
    message_count,
    shortened_size,
    stream_of,
    taken_turns,
    value_of,
    with_bytes,
)
from mockllm.scenario.model import Scenario, TurnSpec
from mockllm.scenario.route_model import CloseSpec, MessageSpec


@record
class ExpectedMessage:
    """A message of the client.

    Args:
        value: a JSON value, a text, bytes, or the end of the connection.
        partial: whether it may have more fields.
        stream, size: what the client streams in any number of messages, and how many bytes.
    """

    value: Any
    partial: bool = True
    stream: MediaStream | None = None
    size: int = 0


@record
class ServedMessage:
    """A message of the service.

    Args:
        at: when it is due, in microseconds after the client's messages.
        close: the end of the connection; None: it is a message.
    """

    at: int
    data: bytes
    binary: bool = False
    close: CloseSpec | None = None


@record
class ScriptTurn:
    """A turn, by its index in the scenario."""

    index: int
    expected: tuple[ExpectedMessage, ...]
    served: tuple[ServedMessage, ...]


@record
class SocketScript:
    """The connections of a scenario, one after the other; one with an `answer` is refused.

    Args:
        served: the ids and other opaque values that the service sends, each with the turn in which
            it comes first.
        headers: of the answer that accepts the opening.
        recorded: as `Played` has it.
        problems: why the tape cannot be read.
    """

    scenario: Scenario
    connections: tuple[tuple[ScriptTurn, ...], ...]
    served: Mapping[str, int]
    headers: tuple[tuple[str, str], ...] = ()
    recorded: Literal["", "exact", "edited", "unreadable"] = ""
    problems: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """The bytes of its messages."""
        turns = (turn for connection in self.connections for turn in connection)
        return sum(len(served.data) for turn in turns for served in turn.served)


def connections_of(scenario: Scenario) -> tuple[tuple[int, ...], ...]:
    """The turns of each connection, by their indices: a close ends one, and so does an answer."""
    connections: list[list[int]] = [[]]
    for index, turn in enumerate(scenario.turns):
        if turn.answer is not None and connections[-1]:
            connections.append([])
        connections[-1].append(index)
        closes = any(message.kind == "close" for message in (*turn.client, *turn.service))
        if turn.answer is not None or closes:
            connections.append([])
    return tuple(tuple(connection) for connection in connections if connection)


def make_script(scenario: Scenario, session: SocketSession | None = None) -> SocketScript:
    """The script of a scenario, and of the session from which it was recorded."""
    taken = [] if session is None else taken_turns(session)
    found = _recorded_messages(scenario.turns, taken)
    binary = scenario.socket == "binary"
    streams = _streams(scenario.turns)
    turns = [
        _turn(index, turn, found, streams, binary) for index, turn in enumerate(scenario.turns)
    ]
    connections = tuple(
        tuple(turns[index] for index in connection) for connection in connections_of(scenario)
    )
    served = {
        value: turn.index
        for turn in reversed(turns)
        for message in turn.served
        for value in opaque_values(message.data)
    }
    if session is None:
        return SocketScript(scenario, connections, served)
    count = sum(len(turn.client) + len(turn.service) for turn in scenario.turns)
    headers = tuple((name, value) for name, value in session.headers if name not in _HANDSHAKE)
    is_exact = len(found) == count
    return SocketScript(scenario, connections, served, headers, "exact" if is_exact else "edited")


_HANDSHAKE = frozenset(
    (
        *("connection", "upgrade", "date", "content-length", "transfer-encoding", "alt-svc"),
        *("sec-websocket-accept", "sec-websocket-extensions", "sec-websocket-version"),
    )
)
"""Headers that the server makes itself, or that belong to another host."""

_Place = tuple[int, str, int]


def _recorded_messages(
    turns: Sequence[TurnSpec], taken: Sequence[TakenTurn]
) -> Mapping[_Place, tuple[TakenTurn, TakenMessage]]:
    """By its place in the scenario, the recorded form of each message that is as it was."""
    written = [
        (_key(side, spec), (index, side, number))
        for index, turn in enumerate(turns)
        for side, messages in (("client", turn.client), ("service", turn.service))
        for number, spec in enumerate(messages)
    ]
    recorded = [
        (_key(side, message.spec), (turn, message))
        for turn in taken
        for side, messages in (("client", turn.client), ("service", turn.service))
        for message in messages
    ]
    old, new = [key for key, _ in recorded], [key for key, _ in written]
    if old == new:
        blocks = [(0, 0, len(new))]
    else:
        matcher = SequenceMatcher(None, old, new, autojunk=False)
        blocks = [(a, b, size) for a, b, size in matcher.get_matching_blocks()]
    return {written[b + n][1]: recorded[a + n][1] for a, b, size in blocks for n in range(size)}


def _key(side: str, spec: MessageSpec) -> str:
    value = spec.value if spec.kind != "close" else repr(spec.value)
    return compact([side, spec.kind, value])


def _turn(
    index: int,
    turn: TurnSpec,
    found: Mapping[_Place, tuple[TakenTurn, TakenMessage]],
    streams: Iterable[MediaStream],
    binary: bool,
) -> ScriptTurn:
    expected = []
    for number, spec in enumerate(turn.client):
        known = found.get((index, "client", number))
        expected.append(_expected_message(spec, None if known is None else known[1], streams))
    times = _written_times(turn)
    served: list[ServedMessage] = []
    for number, spec in enumerate(turn.service):
        at = served[-1].at if served else 0
        known = found.get((index, "service", number))
        if times:
            at = times[number]
        elif known is not None:
            at = max(at, known[1].recorded[0].at - known[0].since)
        served.append(_served_message(spec, None if known is None else known[1], at, binary))
    return ScriptTurn(index, tuple(expected), tuple(served))


def _written_times(turn: TurnSpec) -> tuple[int, ...]:
    """When the messages of a turn are due; () where only its tape says it."""
    timing = turn.timing
    if timing is None or not timing.is_exact:
        return ()
    first, pause = timing.ttft or 0, timing.every or 0
    return timing.at or tuple(first + pause * number for number in range(len(turn.service)))


def _expected_message(
    spec: MessageSpec, known: TakenMessage | None, streams: Iterable[MediaStream]
) -> ExpectedMessage:
    if spec.kind == "close":
        return ExpectedMessage(spec.value)
    value = _written(spec)
    for stream in streams:
        size = shortened_size(value) if not stream.path else stream.size_in(value)
        if size is not None:
            return ExpectedMessage(value, stream=stream, size=size)
    if known is None:
        return ExpectedMessage(value)
    return ExpectedMessage(value_of(known.recorded[0].data), partial=False)


def _written(spec: MessageSpec) -> Any:
    """The value of a message as it is written: JSON, a text, bytes, or the number of bytes."""
    if spec.kind == "json" or (spec.kind == "base64" and shortened_size(spec.value) is not None):
        return spec.value
    return value_of(_data(spec))


def _streams(turns: Iterable[TurnSpec]) -> tuple[MediaStream, ...]:
    """What the client streams: what comes in one message stands in its order."""
    counts: Counter[MediaStream] = Counter()
    for turn in turns:
        for spec in turn.client:
            stream = None if spec.kind == "close" else stream_of(_written(spec))
            if stream is not None:
                counts[stream] += message_count(spec.value)
    return tuple(stream for stream, count in counts.items() if count > 1)


def _served_message(
    spec: MessageSpec, known: TakenMessage | None, at: int, binary: bool
) -> ServedMessage:
    if spec.kind == "close":
        return ServedMessage(at, b"", close=spec.value)
    if known is not None:
        message = known.recorded[0]
        return ServedMessage(at, message.data, message.kind == "binary")
    return ServedMessage(at, _data(spec), binary or spec.kind == "base64")


def _data(spec: MessageSpec) -> bytes:
    """The bytes of a message as it is written; bytes that are only counted are zero."""
    match spec.kind:
        case "json":
            return json_bytes(compact(with_bytes(spec.value)))
        case "text":
            return json_bytes(spec.value)
    size = shortened_size(spec.value)
    return base64.b64decode(spec.value) if size is None else bytes(size)
