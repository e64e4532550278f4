"""The bytes of a stream as pages show them: line ends, cuts and escapes are visible. Pure."""

from __future__ import annotations

import base64
import gzip
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mockllm.conformance.results import Stream
from mockllm.core.visible_bytes import VisibleLine, visible_lines

_FIRST_LINES, _LAST_LINES = 60, 15
_MOST_SHOWN = 48 * 1024
"""Bytes that a page shows of one stream; all of them can be copied."""
_MOST_TICKS = 200


@dataclass(frozen=True, slots=True)
class Tick:
    """A write on the time axis."""

    left: float
    label: str


@dataclass(frozen=True, slots=True)
class BytesView:
    """What a page shows of a stream.

    Args:
        first, folded, last: its lines; `folded` are shown on request.
        unshown: bytes at the end that are not shown at all.
        packed: all bytes, in base64 if `packing` is `base64`, compressed before if it is `gzip`.
        is_text: whether they are UTF-8 without NUL, so that they can be copied as text.
        timed: whether the writes have different times, or only an order.
    """

    first: tuple[VisibleLine, ...]
    folded: tuple[VisibleLine, ...]
    last: tuple[VisibleLine, ...]
    size: int
    writes: int
    unshown: int
    packed: str
    packing: str
    is_text: bool
    ticks: tuple[Tick, ...]
    timed: bool
    duration: str


def bytes_view(stream: Stream) -> BytesView:
    """The view of a stream."""
    data = b"".join(stream.writes)
    lines = list(visible_lines(_shown(stream.writes)))
    edge = _FIRST_LINES + _LAST_LINES
    whole = len(lines) <= edge + 5
    packed, packing = _packed(data)
    timed = len(set(stream.times)) > 1
    return BytesView(
        first=tuple(lines if whole else lines[:_FIRST_LINES]),
        folded=() if whole else tuple(lines[_FIRST_LINES:-_LAST_LINES]),
        last=() if whole else tuple(lines[-_LAST_LINES:]),
        size=len(data),
        writes=len(stream.writes),
        unshown=max(0, len(data) - _MOST_SHOWN),
        packed=packed,
        packing=packing,
        is_text=_is_text(data),
        ticks=tuple(_ticks(stream, timed=timed)),
        timed=timed,
        duration=_time(max(stream.times)) if timed else "",
    )


def _shown(writes: Sequence[bytes]) -> Iterator[bytes]:
    left = _MOST_SHOWN
    for data in writes:
        if left <= 0:
            return
        yield data[:left]
        left -= len(data)


def _is_text(data: bytes) -> bool:
    try:
        return "\0" not in data.decode()
    except UnicodeDecodeError:
        return False


def _packed(data: bytes) -> tuple[str, str]:
    packed = gzip.compress(data, mtime=0)
    small = len(packed) < len(data)
    return base64.b64encode(packed if small else data).decode(), "gzip" if small else "base64"


# Times


def _ticks(stream: Stream, *, timed: bool) -> Iterator[Tick]:
    """The writes on the axis: by time, or in their order where all are sent at once."""
    if len(stream.writes) > _MOST_TICKS:
        return
    last = max(stream.times) if timed else max(1, len(stream.writes) - 1)
    for number, data in enumerate(stream.writes):
        at = stream.times[number] if timed else number
        when = f" at {_time(at)}" if timed else ""
        start = " ".join(data[:60].decode("utf-8", "replace").split())
        yield Tick(round(100 * at / last, 2), f"write {number + 1}{when}: {start}")


def _time(microseconds: int) -> str:
    if microseconds >= 1_000_000:
        return f"{microseconds / 1_000_000:g} s"
    return f"{microseconds / 1000:g} ms"
