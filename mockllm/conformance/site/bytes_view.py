"""The bytes of a stream as pages show them: line ends, cuts and escapes are visible. Pure."""

from __future__ import annotations

import base64
import gzip
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mockllm.conformance.results import Stream

__all__ = ["BytesView", "Line", "Piece", "Tick", "bytes_view"]

_FIRST_LINES, _LAST_LINES = 60, 15
_WIDEST, _TAIL = 700, 120
_MOST_SHOWN = 48 * 1024
"""Bytes that a page shows of one stream; all of them can be copied."""
_MOST_NUMBERED = 400
_MOST_TICKS = 200


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of characters on one line.

    Args:
        kind: `text`, `escape` (a byte that is no character, or a control character), `end` (a
            visible line end), `cut` (a new write begins), `fold` (a long part, shown on request).
        text: as shown.
        note: explains it, for readers who do not see colours.
    """

    kind: str
    text: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the stream."""

    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Tick:
    """A write on the time axis.

    Args:
        left: its place, in percent.
        label: its number, its time and its first characters.
    """

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

    first: tuple[Line, ...]
    folded: tuple[Line, ...]
    last: tuple[Line, ...]
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
    lines = list(_lines(_pieces(_shown(stream.writes))))
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


# Characters


_SPECIAL = re.compile(
    "\r\n|\r|\n|[\x00-\x09\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u200b-\u200f\u2028-\u202e"
    "\u2060-\u2069\ufeff\ufff9-\uffff\ud800-\udfff]"
)

# In letters: few fonts have the symbols for these (U+240D, U+240A).
_LINE_ENDS = {"\r\n": "CR LF", "\r": "CR", "\n": "LF"}


def _pieces(writes: Iterator[bytes]) -> Iterator[Piece]:
    """The pieces of all lines, an `end` after each.

    A character or a line end that is cut is shown in its halves, since each write is read by
    itself.
    """
    for number, data in enumerate(writes, 1):
        numbered = str(number) if number <= _MOST_NUMBERED else ""
        yield Piece("cut", numbered, f"write {number}: {len(data)} bytes")
        text = data.decode("utf-8", "surrogateescape")
        at = 0
        for found in _SPECIAL.finditer(text):
            if found.start() > at:
                yield Piece("text", text[at : found.start()])
            yield _special(found[0])
            at = found.end()
        if at < len(text):
            yield Piece("text", text[at:])


def _special(text: str) -> Piece:
    if text in _LINE_ENDS:
        return Piece("end", _LINE_ENDS[text])
    code = ord(text)
    if 0xDC80 <= code <= 0xDCFF:
        return Piece("escape", f"\\x{code - 0xDC00:02x}", "a byte that is not UTF-8")
    if code < 0x100:
        name = {0x00: "NUL", 0x09: "tab", 0x1B: "ESC"}.get(code, "a control character")
        return Piece("escape", f"\\x{code:02x}" if code != 0x09 else "\\t", name)
    return Piece("escape", f"\\u{code:04x}", "a character that is not visible")


def _lines(pieces: Iterator[Piece]) -> Iterator[Line]:
    line: list[Piece] = []
    returned = False  # after a carriage return, to whose line a line feed belongs, if one follows
    for piece in pieces:
        if returned and piece.kind != "cut" and piece != Piece("end", "LF"):
            rest = [line.pop()] if line[-1].kind == "cut" else []
            yield Line(tuple(_folded(line)))
            line, returned = rest, False
        line.append(piece)
        if piece.kind == "end":
            returned = piece.text == "CR"
            if not returned:
                yield Line(tuple(_folded(line)))
                line = []
    if line:
        yield Line(tuple(_folded(line)))


def _folded(pieces: list[Piece]) -> Iterator[Piece]:
    """The pieces of a line, the middle of each long text folded."""
    for piece in pieces:
        text = piece.text
        if piece.kind != "text" or len(text) <= _WIDEST:
            yield piece
            continue
        middle = text[_WIDEST - _TAIL : -_TAIL]
        yield Piece("text", text[: _WIDEST - _TAIL])
        yield Piece("fold", middle, f"{len(middle):,} more characters")
        yield Piece("text", text[-_TAIL:])


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
