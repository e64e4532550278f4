"""The choices of an answer as one stream or one body. Most answers have a single choice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from mockllm.core.events import Frame
from mockllm.core.timeline import expand
from mockllm.core.turn import Turn
from mockllm.protocols.base import Reply, WireProtocol
from mockllm.protocols.records import Json, NumberedFrame

TimedFrame = tuple[int, Frame]


def frames_of(
    turns: Sequence[Turn], protocol: WireProtocol, reply: Reply, timed: Sequence[Turn]
) -> list[TimedFrame]:
    """The frames of a stream, with the times when they are due. The chunks of several choices
    alternate.

    Args:
        timed: the turns with the times of their events.
    """
    if len(turns) == 1 or protocol.choices is None:
        return _encoded(turns[0], protocol, reply, timed[0])
    # By time, and at the same time one frame of each choice in turn.
    numbered: list[NumberedFrame] = [
        (at, number, frame)
        for at, _, number, frame in sorted(
            _placed(turns, protocol, reply, timed), key=lambda row: row[:3]
        )
    ]
    first = turns[0]
    if first.error is not None:  # it ends the stream
        last = max(i for i, (_, number, _) in enumerate(numbered) if not number)
        numbered = numbered[: last + 1]
    return protocol.choices.join_frames(numbered, first, reply)


def body_of(turns: Sequence[Turn], protocol: WireProtocol, reply: Reply) -> Json:
    """The body of an answer that is not streamed."""
    if len(turns) == 1 or protocol.choices is None:
        return protocol.encode_body(turns[0], reply)
    return protocol.choices.join_bodies(
        [
            protocol.encode_body(turn, _alone(protocol, reply, number))
            for number, turn in enumerate(turns)
        ]
    )


def _encoded(turn: Turn, protocol: WireProtocol, reply: Reply, timed: Turn) -> list[TimedFrame]:
    encoder = protocol.encoder(turn, reply)
    return [(item.at, frame) for item in expand(timed) for frame in encoder.encode(item.event)]


def _placed(
    turns: Sequence[Turn], protocol: WireProtocol, reply: Reply, timed: Sequence[Turn]
) -> Iterator[tuple[int, int, int, Frame]]:
    """Time, place in the choice, number of the choice, and frame."""
    for number, turn in enumerate(turns):
        frames = _encoded(turn, protocol, _alone(protocol, reply, number), timed[number])
        yield from ((at, place, number, frame) for place, (at, frame) in enumerate(frames))


def _alone(protocol: WireProtocol, reply: Reply, number: int) -> Reply:
    """The reply as it is for a choice that is the only one."""
    assert protocol.choices is not None
    return replace(reply, options=protocol.choices.alone(reply.options, number))
