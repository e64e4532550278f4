"""The body of a streamed answer: events to frames, quirks, framing, and TCP segments."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import cycle
from typing import TYPE_CHECKING, Any

from mockllm.core.frame import Frame, LineEnd
from mockllm.core.seeded import derive_int
from mockllm.core.timed_bytes import TimedBytes
from mockllm.core.timeline import expand
from mockllm.core.turn import Turn
from mockllm.framing.sse import encode
from mockllm.protocols.base import Reply, WireProtocol
from mockllm.protocols.extra import with_extra
from mockllm.scenario.model import Wire

if TYPE_CHECKING:
    from mockllm.quirks.base import Variant

_NO_EXTRA: Mapping[str, Any] = {}


def stream(
    turn: Turn,
    protocol: WireProtocol,
    reply: Reply,
    wire: Wire | None,
    extra: Mapping[str, Any] = _NO_EXTRA,
) -> list[TimedBytes]:
    """The body of a streamed answer: a part for each frame (or segment, with `wire.segments`).

    Args:
        extra: by place, the fields that the service adds (`protocols.extra`).
    """
    wire = wire or Wire()
    quirks = variants(protocol, wire)
    encoder = protocol.encoder(turn, reply)
    frames = [(timed.at, frame) for timed in expand(turn) for frame in encoder.encode(timed.event)]
    if extra:
        frames = with_extra(protocol, frames, extra)
    if quirks:
        from mockllm.quirks.base import Context, change_frames

        context = Context(protocol.name, turn, reply)
        for variant in quirks:
            if variant.frames is not None:
                frames = change_frames(variant.frames, frames, context)
    if wire.group is not None:
        frames = list(_grouped(frames, protocol, wire.group))
    parts = _encoded(frames, wire, wire.line_end or protocol.line_end)
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


def variants(protocol: WireProtocol, wire: Wire) -> list[Variant]:
    """The quirks of a stream that apply to this protocol. Most have none, and never import any."""
    if not wire.quirks:
        return []
    from mockllm.quirks import find

    found = [find(name) for name in wire.quirks]
    return [variant for quirk, variant in found if quirk.applies_to(protocol.name)]


def _grouped(
    frames: Sequence[tuple[int, Frame]], protocol: WireProtocol, size: int
) -> Iterator[tuple[int, Frame]]:
    """Joins up to `size` consecutive frames into one, where the protocol can; it is due when the
    last of them is."""
    held: Frame | None = None
    due = count = 0
    for at, frame in frames:
        joined = None
        if held is not None and protocol.join is not None and count < size:
            joined = protocol.join(held, frame)
        if joined is not None:
            held, due, count = joined, at, count + 1
            continue
        if held is not None:
            yield due, held
        held, due, count = frame, at, 1
    if held is not None:
        yield due, held


def _encoded(
    frames: Sequence[tuple[int, Frame]], wire: Wire, line_end: LineEnd
) -> list[TimedBytes]:
    parts: list[TimedBytes] = []
    for count, (at, frame) in enumerate(frames, 1):
        written = _multiline(frame) if wire.multiline else frame
        parts.append(TimedBytes(at, encode(written, line_end)))
        if wire.comments is not None and count % wire.comments.every == 0:
            comment = Frame(comment=wire.comments.text)
            parts.append(TimedBytes(at, encode(comment, line_end)))
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
    text = json.dumps(value, ensure_ascii=False, indent=1)
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair cannot be UTF-8, only an escape
        text = json.dumps(value, indent=1)
    return replace(frame, data=text)


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
