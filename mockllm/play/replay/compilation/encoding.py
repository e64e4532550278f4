"""Turns as the parts of a stream or as one body: their choices side by side, quirks, and how the
frames are written and cut into segments. Pure.

Most answers have a single choice, no quirk, and a part for each frame.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import cycle
from typing import TYPE_CHECKING, Any

from mockllm.core.events import Frame, LineEnd
from mockllm.core.http import TimedBytes
from mockllm.core.seeded import derive_int
from mockllm.core.timeline import expand
from mockllm.core.turn import Turn
from mockllm.play.replay.compilation.grouping import in_groups
from mockllm.play.replay.compilation.http_answer import NO_EXTRA
from mockllm.scenario.model import Wire
from mockllm.wire.framing.carrier import Carrier
from mockllm.wire.protocols.base import Reply, WireProtocol
from mockllm.wire.protocols.extra import with_extra
from mockllm.wire.protocols.records import Json, NumberedFrame

if TYPE_CHECKING:
    from mockllm.play.quirks.base import Variant

TimedFrame = tuple[int, Frame]


def stream(
    turns: Sequence[Turn],
    protocol: WireProtocol,
    reply: Reply,
    wire: Wire | None = None,
    extra: Mapping[str, Any] = NO_EXTRA,
    timed: Sequence[Turn] | None = None,
    before: Sequence[Frame] = (),
) -> list[TimedBytes]:
    """The body of a streamed answer: a part for each frame (or segment, with `wire.segments`).

    Args:
        turns: one for each choice.
        extra: fields that one service adds.
        timed: the same turns with other times for their events; no event says them.
        before: frames that are sent before those of the turns.
    """
    wire = wire or Wire()
    carrier = protocol.carrier(reply.options)
    quirks = variants(protocol, wire, carrier)
    timed = timed or turns
    if wire.group is not None:
        turns = [in_groups(turn, wire.group) for turn in turns]
        timed = [in_groups(turn, wire.group) for turn in timed]
    frames = _frames(turns, protocol, reply, timed)
    if extra:
        frames = with_extra(protocol, frames, extra)
    frames = [*((frames[0][0] if frames else 0, frame) for frame in before), *frames]
    if quirks:
        from mockllm.play.quirks.base import Context, change_frames

        context = Context(protocol.name, turns[0], reply)
        for variant in quirks:
            if variant.frames is not None:
                frames = change_frames(variant.frames, frames, context)
    parts = _write(frames, wire, wire.line_end or protocol.line_end, carrier)
    for variant in quirks:
        if variant.bytes is not None:
            parts = variant.bytes(parts, context)
    # An empty HTTP chunk ends the body (RFC 9112, section 7.1).
    parts = [part for part in parts if part.data]
    if isinstance(wire.segments, tuple):
        parts = list(_segments(parts, cycle(wire.segments)))
    elif wire.segments is not None:
        sizes = _sizes(reply.seed, wire.segments.low, wire.segments.high)
        parts = list(_segments(parts, sizes))
    return parts


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


def variants(protocol: WireProtocol, wire: Wire, carrier: Carrier) -> list[Variant]:
    """The quirks of a stream that apply to this protocol and carrier. Most have none, and never
    import any."""
    if not wire.quirks:
        return []
    from mockllm.play.quirks import find

    named = map(find, wire.quirks)
    # A change of the bytes of server-sent events would break the binary frames of another carrier.
    usual = carrier is protocol.usual
    return [
        variant
        for quirk, variant in named
        if quirk.applies_to(protocol.name)
        and (usual or carrier.name in quirk.carriers or not variant.changes_bytes)
    ]


def _frames(
    turns: Sequence[Turn], protocol: WireProtocol, reply: Reply, timed: Sequence[Turn]
) -> list[TimedFrame]:
    """The frames of a stream, with the times when they are due. The chunks of several choices
    alternate.

    Args:
        timed: the turns with the times of their events.
    """
    if len(turns) == 1 or protocol.choices is None:
        return _encode(turns[0], protocol, reply, timed[0])
    # By time, and at the same time one frame of each choice in turn.
    numbered: list[NumberedFrame] = [
        (at, number, frame)
        for at, _, number, frame in sorted(
            _placed_frames(turns, protocol, reply, timed), key=lambda row: row[:3]
        )
    ]
    first = turns[0]
    if first.error is not None:  # it ends the stream
        last = max(i for i, (_, number, _) in enumerate(numbered) if not number)
        numbered = numbered[: last + 1]
    return protocol.choices.join_frames(numbered, first, reply)


def _encode(turn: Turn, protocol: WireProtocol, reply: Reply, timed: Turn) -> list[TimedFrame]:
    encoder = protocol.encoder(turn, reply)
    return [(item.at, frame) for item in expand(timed) for frame in encoder.encode(item.event)]


def _placed_frames(
    turns: Sequence[Turn], protocol: WireProtocol, reply: Reply, timed: Sequence[Turn]
) -> Iterator[tuple[int, int, int, Frame]]:
    """Time, place in the choice, number of the choice, and frame."""
    for number, turn in enumerate(turns):
        frames = _encode(turn, protocol, _alone(protocol, reply, number), timed[number])
        yield from ((at, place, number, frame) for place, (at, frame) in enumerate(frames))


def _alone(protocol: WireProtocol, reply: Reply, number: int) -> Reply:
    """The reply as it is for a choice that is the only one."""
    assert protocol.choices is not None
    return replace(reply, options=protocol.choices.single(reply.options, number))


def _write(
    frames: Sequence[TimedFrame], wire: Wire, line_end: LineEnd, carrier: Carrier
) -> list[TimedBytes]:
    if carrier.name != "sse":  # the others have one way of writing a frame
        return [TimedBytes(at, carrier.encode(frame, line_end)) for at, frame in frames]
    parts: list[TimedBytes] = []
    for count, (at, frame) in enumerate(frames, 1):
        written = _multiline(frame) if wire.multiline else frame
        parts.append(TimedBytes(at, carrier.encode(written, line_end)))
        if wire.comments is not None and count % wire.comments.every == 0:
            comment = Frame(comment=wire.comments.text)
            parts.append(TimedBytes(at, carrier.encode(comment, line_end)))
    if wire.bom and parts:
        parts[0] = TimedBytes(parts[0].at, "\ufeff".encode() + parts[0].data)
    return parts


def _multiline(frame: Frame) -> Frame:
    """The same frame with its data, if they are JSON, on several lines."""
    if frame.data is None or frame.data[:1] not in ("{", "["):
        return frame
    try:
        value = json.loads(frame.data)
    except ValueError:
        return frame
    return replace(frame, data=json.dumps(value, ensure_ascii=False, indent=1))


def _sizes(seed: str, low: int, high: int) -> Iterator[int]:
    number = 0
    while True:
        yield low + derive_int(seed, "segment", number, below=high - low + 1)
        number += 1


def _segments(parts: Sequence[TimedBytes], sizes: Iterator[int]) -> Iterator[TimedBytes]:
    """The same bytes cut into segments; no segment has bytes that are due at different times."""
    held = b""
    at = 0
    size = next(sizes)
    for part in parts:
        if held and part.at != at:
            yield TimedBytes(at, held)
            held = b""
        at = part.at
        held += part.data
        while len(held) >= size:
            yield TimedBytes(at, held[:size])
            held = held[size:]
            size = next(sizes)
    if held:
        yield TimedBytes(at, held)
