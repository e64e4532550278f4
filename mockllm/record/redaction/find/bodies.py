"""A body as the text that is searched for secrets, and its bytes after edits of that text.

Most bodies are text. An event stream of AWS is searched as server-sent events, one for the payload
of each frame, so that a secret that lies across several of them is found there, too. Edits go back
into the frames, also into the base64 of Anthropic's events (`{"bytes": "..."}`), and their lengths
and checksums follow.
"""

from __future__ import annotations

import base64
import re
import struct
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from mockllm.core.errors import WireError
from mockllm.wire.framing.eventstream import (
    CHECKSUM,
    LONGEST_HEADER,
    PRELUDE,
    begins_stream,
    header_texts,
    lengths,
    prelude,
)


@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """A part of a text, from `start` to `end`, and what replaces it."""

    start: int
    end: int
    text: str


def edit_text(text: str, changes: Sequence[Edit]) -> str:
    """A text with edits made, which must be in its order."""
    parts, last = [], 0
    for change in changes:
        parts += [text[last : change.start], change.text]
        last = change.end
    return "".join([*parts, text[last:]])


Moved = tuple[int, int, int]
"""Where bytes that changed begin and end in a body, and how many there are afterwards."""


def decode_bytes(data: bytes) -> str:
    """Bytes as text; those that are no UTF-8 become surrogates, which are encoded back."""
    return data.decode("utf-8", "surrogateescape")


def encode_text(text: str) -> bytes:
    """The inverse of `decode_bytes`."""
    return text.encode("utf-8", "surrogateescape")


@dataclass(frozen=True, slots=True)
class TextBody:
    """A body that is text."""

    text: str

    def edit(self, changes: Sequence[Edit]) -> tuple[bytes, list[Moved]]:
        """The bytes with edits made."""
        moved, last, at = [], 0, 0
        for change in changes:
            start = at + _size(self.text[last : change.start])
            at = start + _size(self.text[change.start : change.end])
            last = change.end
            moved.append((start, at, _size(change.text)))
        return encode_text(edit_text(self.text, changes)), moved


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(encode_text(text))


@dataclass(frozen=True, slots=True)
class _Slot:
    """A part of a frame that is searched.

    Args:
        start: in the text that is searched.
        form: of its bytes: as they are, with their length before them, or as base64.
    """

    start: int
    text: str
    form: Literal["plain", "sized", "base64"]

    @property
    def end(self) -> int:
        """In the text that is searched."""
        return self.start + len(self.text)

    def edited_bytes(self, changes: Iterable[Edit]) -> bytes:
        """Its bytes with edits made. An edit that begins in another slot leaves nothing here."""
        own = [
            Edit(
                max(change.start - self.start, 0),
                min(change.end, self.end) - self.start,
                change.text if change.start >= self.start else "",
            )
            for change in changes
            if change.start < self.end and self.start < change.end
        ]
        data = encode_text(edit_text(self.text, own))
        if self.form == "base64":
            return base64.b64encode(data)
        if self.form == "sized":
            return struct.pack(">H", len(data[:LONGEST_HEADER])) + data[:LONGEST_HEADER]
        return data


_Pieces = list[bytes | _Slot]


@dataclass(frozen=True, slots=True)
class _Part:
    """A frame, whole or broken off, or (`framed`) what follows the last one.

    Args:
        start, end: its bytes.
        missing: how many bytes of it have not arrived.
        head, payload: what it consists of.
    """

    start: int
    end: int
    head: _Pieces
    payload: _Pieces
    missing: int = 0
    framed: bool = True

    @property
    def slots(self) -> tuple[int, int]:
        """Where what is searched of it begins and ends in the text."""
        slots = [piece for piece in (*self.head, *self.payload) if isinstance(piece, _Slot)]
        return min(slot.start for slot in slots), max(slot.end for slot in slots)


_FIXED = frozenset((":event-type", ":exception-type", ":error-code", ":message-type"))
_TYPE = ":content-type"
"""Headers that hold words of the protocol."""

_CHUNK = re.compile(r'"bytes"\s*:\s*"([A-Za-z0-9+/]+={0,2})("|\Z)')
_LINE_BREAKS = str.maketrans("\r\n", "  ")
"""In JSON they stand between values only; in server-sent events they would end a line of data."""
_EVENT = "\n\ndata: "


class FramesBody:
    """An event stream of AWS. The last frame may be broken off, and other bytes may follow."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._texts: list[str] = []
        self._size = 0
        self._parts = list(self._read())
        self.text = "".join(self._texts)

    def edit(self, changes: Sequence[Edit]) -> tuple[bytes, list[Moved]]:
        """The bytes with edits made. A frame without any keeps its bytes."""
        data: list[bytes] = []
        moved: list[Moved] = []
        starts, ends = [change.start for change in changes], [change.end for change in changes]
        for part in self._parts:
            first, last = bisect_right(ends, part.slots[0]), bisect_left(starts, part.slots[1])
            if first >= last:
                data.append(self._data[part.start : part.end])
                continue
            data.append(self._edit_part(part, changes[first:last]))
            moved.append((part.start, part.end, len(data[-1])))
        return b"".join(data), moved

    def _read(self) -> Iterator[_Part]:
        start = 0
        while begins_stream(self._data[start : start + PRELUDE]):
            size, headers = lengths(self._data[start : start + PRELUDE])
            yield self._frame(start, size, headers)
            start += size
        if start < len(self._data):
            rest = self._slot(decode_bytes(self._data[start:]), "plain", "\n\n")
            yield _Part(start, len(self._data), [], [rest], framed=False)

    def _frame(self, start: int, size: int, headers: int) -> _Part:
        end = min(start + size, len(self._data))
        body = self._data[start + PRELUDE : min(start + size - CHECKSUM, end)]
        head = self._head(body[:headers], headers)
        payload = self._payload(decode_bytes(body[headers:]))
        return _Part(start, end, head, payload, start + size - end)

    def _head(self, data: bytes, size: int) -> _Pieces:
        if len(data) < size:
            return [self._slot(decode_bytes(data), "plain", "\n\n")]
        pieces: _Pieces = []
        last = 0
        try:
            for name, (begin, end) in header_texts(data):
                if name not in _FIXED and name != _TYPE:
                    pieces.append(data[last : begin - 2])
                    pieces.append(self._slot(decode_bytes(data[begin:end]), "sized"))
                    last = end
        except WireError:
            return [self._slot(decode_bytes(data), "plain", "\n\n")]
        return [*pieces, data[last:]]

    def _payload(self, text: str) -> _Pieces:
        chunk = _CHUNK.search(text)
        if chunk is not None:
            # A payload that breaks off may end within four characters, which are three bytes.
            whole = chunk[1][: len(chunk[1]) // 4 * 4]
            inner = decode_bytes(base64.b64decode(whole))
            if inner.lstrip()[:1] in ("{", "["):
                event = self._slot(inner, "base64")
                before = self._slot(text[: chunk.start(1)], "plain")
                after = self._slot(text[chunk.end(1) :], "plain", "")
                return [before, event, after]
        return [self._slot(text, "plain")]

    def _slot(
        self,
        text: str,
        form: Literal["plain", "sized", "base64"],
        before: str = _EVENT,
    ) -> _Slot:
        """A slot with this text, which is searched after `before`."""
        self._texts += [before, text.translate(_LINE_BREAKS)]
        start = self._size + len(before)
        self._size = start + len(text)
        return _Slot(start, text, form)

    def _edit_part(self, part: _Part, changes: Sequence[Edit]) -> bytes:
        head, payload = (
            b"".join(
                piece.edited_bytes(changes) if isinstance(piece, _Slot) else piece
                for piece in pieces
            )
            for pieces in (part.head, part.payload)
        )
        if not part.framed:
            return payload
        old = self._data[part.start : part.end]
        size, headers = lengths(old)
        body = len(old) - PRELUDE - max(0, CHECKSUM - part.missing)
        size += len(head) + len(payload) - body
        headers += len(head) - min(headers, body)
        data = prelude(size, headers) + head + payload
        # A checksum that was wrong stays as wrong as it was.
        wrong = 0
        if not part.missing:
            (stored,) = struct.unpack(">I", old[-CHECKSUM:])
            wrong = stored ^ zlib.crc32(old[:-CHECKSUM])
        return data + struct.pack(">I", zlib.crc32(data) ^ wrong)[: max(0, CHECKSUM - part.missing)]


class MessagesBody:
    """The messages of one side of a WebSocket. They are searched as the events of a stream are, so
    that a secret that lies across several of them is found there, too."""

    def __init__(self, messages: Iterable[bytes]) -> None:
        self._slots: list[_Slot] = []
        texts: list[str] = []
        size = 0
        for data in messages:
            text = decode_bytes(data)
            texts += [_EVENT, text.translate(_LINE_BREAKS)]
            self._slots.append(_Slot(size + len(_EVENT), text, "plain"))
            size = self._slots[-1].end
        self.text = "".join(texts)

    def edit(self, changes: Sequence[Edit]) -> list[bytes]:
        """The messages with edits made."""
        starts, ends = [change.start for change in changes], [change.end for change in changes]

        def within(slot: _Slot) -> Sequence[Edit]:
            return changes[bisect_right(ends, slot.start) : bisect_left(starts, slot.end)]

        return [slot.edited_bytes(within(slot)) for slot in self._slots]


Body = TextBody | FramesBody
"""The bytes of a body as a text."""


def body_of(data: bytes) -> Body:
    """The body that has these bytes."""
    return FramesBody(data) if _is_frames(data) else TextBody(decode_bytes(data))


def binary_body(data: bytes) -> Body:
    """The body that has these bytes.

    Raises:
        UnicodeDecodeError: they are no text, and no event stream of AWS.
    """
    return FramesBody(data) if _is_frames(data) else TextBody(data.decode())


def _is_frames(data: bytes) -> bool:
    # A frame is shorter than 32 MiB, so its length begins with one of these bytes; text does not.
    return data[:1] in (b"\0", b"\1") and begins_stream(data)
