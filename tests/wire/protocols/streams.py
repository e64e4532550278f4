"""Turns as the frames of a stream over any protocol, and read back."""

from __future__ import annotations

from collections.abc import Iterable

from mockllm.core.events import Frame, Timed
from mockllm.core.timeline import expand, fold
from mockllm.core.turn import Turn
from mockllm.wire.protocols.base import Reply, WireProtocol

TimedFrame = tuple[int, Frame]


def played(protocol: WireProtocol, turn: Turn, reply: Reply) -> list[TimedFrame]:
    """The frames of a turn, each with its time."""
    encoder = protocol.encoder(turn, reply)
    return [(item.at, frame) for item in expand(turn) for frame in encoder.encode(item.event)]


def encoded(protocol: WireProtocol, turn: Turn, reply: Reply) -> list[Frame]:
    """The frames of a turn."""
    return [frame for _, frame in played(protocol, turn, reply)]


def decoded(protocol: WireProtocol, frames: Iterable[TimedFrame], end: int = 0) -> list[Timed]:
    """The events of timed frames; those at the end of the stream have the time `end`."""
    decoder = protocol.decoder()
    events = [Timed(at, event) for at, frame in frames for event in decoder.decode(frame)]
    return [*events, *(Timed(end, event) for event in decoder.close())]


def read(protocol: WireProtocol, frames: list[TimedFrame]) -> Turn:
    """The turn of timed frames; the stream ends with the last of them."""
    return fold(decoded(protocol, frames, frames[-1][0] if frames else 0))


def untimed(frames: Iterable[Frame]) -> list[TimedFrame]:
    """Frames that all come at once."""
    return [(0, frame) for frame in frames]
