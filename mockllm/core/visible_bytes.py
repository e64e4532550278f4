"""Bytes of a stream as people read them: line ends, cuts and escapes are visible. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from mockllm.core.text import NOT_VISIBLE

_WIDEST, _TAIL = 700, 120
_MOST_NUMBERED = 400


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


VisibleLine = tuple[Piece, ...]
"""One line of the stream."""


def visible_lines(
    writes: Iterable[bytes], texts: Iterable[bytes] | None = None
) -> Iterator[VisibleLine]:
    """The lines of some writes, with a `cut` where each write begins.

    A character or a line end that is cut is shown in its halves, since each write is read by
    itself.

    Args:
        texts: what is shown of each write; None: its bytes.
    """
    writes = list(writes)
    return _lines(_pieces(map(len, writes), writes if texts is None else texts))


_SPECIAL = re.compile(f"\r\n|[{NOT_VISIBLE}]")

# In letters: few fonts have the symbols for these (U+240D, U+240A).
_LINE_ENDS = {"\r\n": "CR LF", "\r": "CR", "\n": "LF"}


def _pieces(sizes: Iterable[int], texts: Iterable[bytes]) -> Iterator[Piece]:
    """The pieces of all lines, an `end` after each."""
    for number, (size, data) in enumerate(zip(sizes, texts, strict=True), 1):
        numbered = str(number) if number <= _MOST_NUMBERED else ""
        yield Piece("cut", numbered, f"write {number}: {size} bytes")
        text = data.decode("utf-8", "surrogateescape")
        at = 0
        for special in _SPECIAL.finditer(text):
            if special.start() > at:
                yield Piece("text", text[at : special.start()])
            yield _special(special[0])
            at = special.end()
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


def _lines(pieces: Iterator[Piece]) -> Iterator[VisibleLine]:
    line: list[Piece] = []
    returned = False  # after a carriage return, to whose line a line feed belongs, if one follows
    for piece in pieces:
        if returned and piece.kind != "cut" and piece != Piece("end", "LF"):
            rest = [line.pop()] if line[-1].kind == "cut" else []
            yield tuple(_fold_long_texts(line))
            line, returned = rest, False
        line.append(piece)
        if piece.kind == "end":
            returned = piece.text == "CR"
            if not returned:
                yield tuple(_fold_long_texts(line))
                line = []
    if line:
        yield tuple(_fold_long_texts(line))


def _fold_long_texts(pieces: list[Piece]) -> Iterator[Piece]:
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
