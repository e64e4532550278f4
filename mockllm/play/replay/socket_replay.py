"""One connection of a WebSocket on which a scenario is played. No clock, no network.

What a client sends is compared in its order with what is expected; what it streams, such as audio,
is counted, wherever it comes. A turn of the service is due when all messages of the client before
it are there.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from mockllm.core.jsontext import compact
from mockllm.core.record import record
from mockllm.core.text import quantity
from mockllm.play.matching.socket_changes import SocketIds, message_changes
from mockllm.play.replay.socket_script import (
    ExpectedMessage,
    ScriptTurn,
    ServedMessage,
    SocketScript,
)
from mockllm.play.tapes.socket_session import SocketMessage
from mockllm.play.tapes.socket_turns import MediaStream, TakenMessage, add_sent, value_of
from mockllm.scenario.model import Ignored, Match
from mockllm.scenario.route_model import CloseSpec

_MOST_SHOWN = 3
"""Further differences of a message are counted."""


@record
class DueTurn:
    """A turn of the service that is due.

    Args:
        index: of the turn.
        received: what the client has sent since the turn before, a line for each message.
    """

    index: int
    received: str
    served: tuple[ServedMessage, ...]


class SocketReplay:
    """What is left to play on one connection.

    Args:
        number: of the connection in its script.
    """

    def __init__(self, script: SocketScript, number: int) -> None:
        self.script = script
        self._turns = script.connections[number]
        self._ordered: list[tuple[ScriptTurn, ExpectedMessage]] = []
        self._streamed: dict[MediaStream, int] = {}
        self._needed: list[tuple[int, dict[MediaStream, int]]] = []
        """For each turn, how many messages are due before it, and how many streamed bytes."""
        needed: Counter[MediaStream] = Counter()
        for turn in self._turns:
            for message in turn.expected:
                if message.stream is None:
                    self._ordered.append((turn, message))
                else:
                    needed[message.stream] += message.size
                    self._streamed[message.stream] = 0
            self._needed.append((len(self._ordered), dict(needed)))
        self._ids = SocketIds(script.served)
        self._received: list[TakenMessage] = []
        self._done = self._matched = 0

    @property
    def _ignored(self) -> Ignored:
        scenario = self.script.scenario
        recorded = scenario.turns[0].recorded
        return (*(scenario.match or Match()).ignore, *(recorded.ignore if recorded else ()))

    def receive(self, data: bytes) -> tuple[str, ...]:
        """Takes a message of the client; how it differs from the one that is expected."""
        value = value_of(data)
        self._note(data)
        for stream in self._streamed:
            size = stream.size_in(value)
            if size is not None:
                self._streamed[stream] += size
                return ()
        if self._matched == len(self._ordered):
            return ("no further message is expected",)
        turn, expected = self._ordered[self._matched]
        changes: tuple[str, ...] = ("the connection was to be closed instead",)
        self._ids.turn = turn.index
        if not isinstance(expected.value, CloseSpec):
            changes = message_changes(
                expected.value, value, self._ids, self._ignored, partial=expected.partial
            )
        if not changes:
            self._matched += 1
            return ()
        more = len(changes) - _MOST_SHOWN
        shown = (*changes[:_MOST_SHOWN], *([f"and {more} more"] if more > 0 else []))
        return tuple(f"turn {turn.index + 1}: {change}" for change in shown)

    def close(self) -> None:
        """The client has closed the connection."""
        if self._matched < len(self._ordered):
            _, expected = self._ordered[self._matched]
            self._matched += isinstance(expected.value, CloseSpec)

    def next_due(self) -> DueTurn | None:
        """The next turn, where the client has sent what comes before it; else None."""
        if self._done == len(self._turns) or self._missing():
            return None
        turn = self._turns[self._done]
        self._done += 1
        served = tuple(
            ServedMessage(one.at, self._ids.put_into(one.data), one.binary, one.close)
            for one in turn.served
        )
        return DueTurn(turn.index, self.take_received(), served)

    def _missing(self) -> list[str]:
        """What the client has not sent yet of what comes before the next turn."""
        count, sizes = self._needed[self._done]
        missing = [] if self._matched >= count else [_described(self._ordered[self._matched][1])]
        for stream, size in sizes.items():
            if self._streamed[stream] < size:
                missing.append(f"{size - self._streamed[stream]} bytes of {_path(stream)}")
        return missing

    def take_received(self) -> str:
        """The messages of the client since the last turn that was due, a line for each; what it
        streams is one."""
        specs = [taken.spec for taken in self._received]
        self._received = []
        return "\n".join(
            value if isinstance(value := spec.value, str) else compact(value) for spec in specs
        )

    @property
    def has_received(self) -> bool:
        """Whether the client has sent anything since the last turn that was due."""
        return bool(self._received)

    def unfinished(self) -> str:
        """What the client should have sent, in words; "" where it has sent all."""
        if self._done == len(self._turns):
            return ""
        turn = self._turns[self._done]
        missing = self._missing()
        what = f", before it had sent {missing[0]}" if missing else ""
        count = quantity(len(self.script.scenario.turns), "turn")
        return f"the client left before turn {turn.index + 1} of {count}{what}"

    def surplus(self) -> tuple[str, ...]:
        """What the client has streamed beyond what was recorded."""
        sizes = self._needed[-1][1]
        return tuple(
            f"{_path(stream)}: {sizes[stream]} bytes → {received} bytes"
            for stream, received in self._streamed.items()
            if received > sizes[stream]
        )

    def _note(self, data: bytes) -> None:
        add_sent(self._received, SocketMessage(0, 0, "client", "text", data), self._streamed)
        for taken in self._received:
            taken.recorded.clear()


def _path(stream: MediaStream) -> str:
    return ".".join(map(str, stream.path)) or "binary messages"


def _described(message: ExpectedMessage) -> str:
    """A message in a few words: its type, or its first field."""
    value: Any = message.value
    if isinstance(value, CloseSpec):
        return "a close frame"
    if isinstance(value, dict):
        first = next(iter(value.items()), ("", ""))
        return f"{first[0]}: {compact(first[1])[:60]}"
    return f"{len(value)} bytes" if isinstance(value, bytes) else compact(value)[:60]
