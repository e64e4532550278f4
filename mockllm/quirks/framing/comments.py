"""Changes of a stream: comments that have no blank line behind them. Only pure functions."""

from __future__ import annotations

from mockllm.core.timed_bytes import TimedBytes
from mockllm.quirks.base import BytesChange, Context
from mockllm.quirks.framing.changes import several_lines


def before(comment: bytes) -> BytesChange:
    """Adds a comment directly before the lines of every event but the first."""

    def change(stream: list[TimedBytes], _context: Context) -> list[TimedBytes]:
        events = [number for number, timed in enumerate(stream) if _data_lines(timed)]
        return [
            TimedBytes(timed.at, comment + _line_end(timed) + timed.data)
            if number in events[1:]
            else timed
            for number, timed in enumerate(stream)
        ]

    return change


def inside(comment: bytes) -> BytesChange:
    """Spreads the JSON of each event over several data lines, and adds a comment after the first
    and the last of them."""

    def change(stream: list[TimedBytes], context: Context) -> list[TimedBytes]:
        return [_with_inside(timed, comment) for timed in several_lines(stream, context)]

    return change


def _with_inside(timed: TimedBytes, comment: bytes) -> TimedBytes:
    lines, data = _lines(timed), _data_lines(timed)
    if not data or not lines[data[-1]].endswith((b"\r", b"\n")):
        return timed
    for number in (data[-1], data[0]):
        lines.insert(number + 1, comment + _line_end(timed))
    return TimedBytes(timed.at, b"".join(lines))


def _lines(timed: TimedBytes) -> list[bytes]:
    # Bytes are split at CR, LF and CRLF only.
    return timed.data.splitlines(keepends=True)


def _data_lines(timed: TimedBytes) -> list[int]:
    return [number for number, line in enumerate(_lines(timed)) if line.startswith(b"data:")]


def _line_end(timed: TimedBytes) -> bytes:
    first = _lines(timed)[0]
    return first[len(first.rstrip(b"\r\n")) :] or b"\n"
