"""Messages on a WebSocket (RFC 6455, section 5.2).

A server sends each in one frame, without a mask, unless a fault wants several; what clients send it
is read by aiohttp. What passes between others is read here, for recordings.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from mockllm.core.errors import WireError
from mockllm.core.record import record

_CONTINUED, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
"""Opcodes (section 11.8)."""

_FIN, _RESERVED, _DEFLATED = 0x80, 0x70, 0x40
_FLUSHED = b"\0\0\xff\xff"
"""The end of each compressed message, which is not sent (RFC 7692, section 7.2.1)."""


def encode_message(message: bytes, *, binary: bool = False) -> bytes:
    """A message in its frame."""
    return _frame(_FIN | (BINARY if binary else TEXT), message)


def encode_fragments(message: bytes, size: int, *, binary: bool = False) -> bytes:
    """A message in several frames, of so many bytes each (RFC 6455, section 5.4)."""
    pieces = [message[at : at + size] for at in range(0, len(message), size)]
    first, *more = pieces or [b""]
    if not more:
        return encode_message(message, binary=binary)
    frames = [begin_message(first, binary=binary)]
    frames += [_frame(_CONTINUED, piece) for piece in more[:-1]]
    return b"".join([*frames, _frame(_FIN | _CONTINUED, more[-1])])


def begin_message(data: bytes, *, binary: bool = False) -> bytes:
    """The first frame of a message that has others; control frames may come between them."""
    return _frame(BINARY if binary else TEXT, data)


def _frame(first: int, data: bytes) -> bytes:
    """A frame; its length has 7, 7 + 16 or 7 + 64 bits."""
    size = len(data)
    if size < 126:
        return bytes((first, size)) + data
    if size < 1 << 16:
        return bytes((first, 126)) + size.to_bytes(2) + data
    return bytes((first, 127)) + size.to_bytes(8) + data


@record
class ReadMessage:
    """A message, or a control frame.

    Args:
        data: inflated.
        fragments: how many bytes of it each of its frames had, where there were several.
    """

    opcode: int
    data: bytes
    fragments: tuple[int, ...] = ()


class MessageReader:
    """Reads what one side of a WebSocket sends, masked or not.

    Args:
        inflates: whether permessage-deflate was negotiated (RFC 7692).
        most: bytes of the largest message, inflated.
    """

    def __init__(self, *, inflates: bool, most: int) -> None:
        self._inflates, self._most = inflates, most
        self._buffer = bytearray()
        self._opcode, self._compressed = 0, False
        self._parts: list[bytes] = []
        self._size = 0
        self._inflater = zlib.decompressobj(-zlib.MAX_WBITS)

    def read(self, data: bytes) -> Iterator[ReadMessage]:
        """The messages that are whole with some further bytes.

        Raises:
            WireError: they are no frames, use an unknown extension, or have too large a message.
        """
        self._buffer += data
        while (frame := self._next_frame()) is not None:
            first, payload = frame
            opcode = first & 0x0F
            if opcode in (CLOSE, PING, PONG) and first & ~0x0F == _FIN:
                yield ReadMessage(opcode, payload)
                continue
            self._add(first, opcode, payload)
            if first & _FIN:
                yield self._whole()

    @property
    def is_inside(self) -> bool:
        """Whether a message has begun and is not whole."""
        return bool(self._buffer or self._parts)

    def _next_frame(self) -> tuple[int, bytes] | None:
        """The first byte and the payload of a frame that is whole; None: none is."""
        buffer = self._buffer
        if len(buffer) < 2:
            return None
        size, start = buffer[1] & 0x7F, 2
        if size >= 126:
            start = 4 if size == 126 else 10
            if len(buffer) < start:
                return None
            size = int.from_bytes(buffer[2:start])
        if size > self._most:
            raise WireError(self._too_large())
        masked = bool(buffer[1] & 0x80)
        start += 4 * masked
        if len(buffer) < start + size:
            return None
        first, payload = buffer[0], bytes(buffer[start : start + size])
        if masked:
            payload = _unmask(payload, bytes(buffer[start - 4 : start]))
        del buffer[: start + size]
        return first, payload

    def _add(self, first: int, opcode: int, payload: bytes) -> None:
        """Adds a frame to the message that it begins or goes on."""
        goes_on = bool(self._opcode)
        expected = (_CONTINUED,) if goes_on else (TEXT, BINARY)
        if opcode not in expected or (goes_on and first & _DEFLATED):
            raise WireError(f"a frame has the opcode {opcode}, where none such may come")
        if first & _RESERVED & ~(_DEFLATED if self._inflates else 0):
            raise WireError("a frame uses an extension that is not known")
        if not goes_on:
            self._opcode, self._compressed = opcode, bool(first & _DEFLATED)
        if self._compressed:
            payload = self._inflate(payload + (_FLUSHED if first & _FIN else b""))
        self._parts.append(payload)
        self._size += len(payload)
        if self._size > self._most:
            raise WireError(self._too_large())

    def _inflate(self, payload: bytes) -> bytes:
        try:
            data = self._inflater.decompress(payload, self._most + 1)
        except zlib.error as error:
            raise WireError(f"a message is not compressed as it says: {error}") from None
        if self._inflater.eof:  # a sender that keeps no window may end it (RFC 7692, 7.2.3.4)
            self._inflater = zlib.decompressobj(-zlib.MAX_WBITS)
        return data

    def _whole(self) -> ReadMessage:
        opcode, parts = self._opcode, self._parts
        self._opcode, self._parts, self._size = 0, [], 0
        lengths = tuple(map(len, parts)) if len(parts) > 1 else ()
        return ReadMessage(opcode, b"".join(parts), lengths)

    def _too_large(self) -> str:
        return f"a message is larger than {self._most} bytes"


def _unmask(payload: bytes, key: bytes) -> bytes:
    """A payload without its mask (RFC 6455, section 5.3)."""
    size = len(payload)
    mask = (key * (size // 4 + 1))[:size]
    return (int.from_bytes(payload) ^ int.from_bytes(mask)).to_bytes(size)
