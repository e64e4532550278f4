"""The frames of a stream to its turn, and what of a turn survives that. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from mockllm.core.events import Frame, Start, Timed
from mockllm.core.timeline import expand, fold
from mockllm.core.turn import TokenUsage, Turn
from mockllm.wire.protocols.base import Decoder, Encoder, Reply, WireProtocol


def decode_turn(protocol: WireProtocol, frames: Iterable[Frame]) -> tuple[Turn, str]:
    """The turn of a stream's frames, and the model that they name; "" if they name none."""
    decoder = protocol.decoder()
    events = [event for frame in frames for event in decoder.decode(frame)]
    events += decoder.close()
    models = [event.model for event in events if isinstance(event, Start) and event.model]
    return fold(Timed(0, event) for event in events), models[0] if models else ""


def projection(
    encoder: Callable[[Turn, Reply], Encoder], decoder: Callable[[], Decoder], options: Any
) -> Callable[[Turn], Turn]:
    """A function for `WireProtocol.project`: it encodes a turn and decodes the frames.

    Args:
        options: of the answer with the least losses (`Reply.options`).
    """

    def project(turn: Turn) -> Turn:
        usage = turn.usage or TokenUsage(0, 0)
        encoding = encoder(turn, Reply("projection", "0" * 40, "", options, usage))
        decoding, now = decoder(), 0
        timed = []
        for item in expand(turn):
            now = item.at
            frames = encoding.encode(item.event)
            timed += [Timed(now, event) for frame in frames for event in decoding.decode(frame)]
        return fold([*timed, *(Timed(now, event) for event in decoding.close())])

    return project
