"""The event stream of AWS: binary frames with checksums (`application/vnd.amazon.eventstream`).

https://smithy.io/2.0/aws/amazon-eventstream.html

    4 bytes  length of the frame, both checksums included       all integers big-endian
    4        length of the headers
    4        CRC-32 of the 8 bytes before
    H        headers: length of the name (1), name, type of the value (1), value
    P        payload
    4        CRC-32 of everything before

A `Frame` holds what Bedrock sends: `event` is the name of the event, of the exception, or the code
of an error; `data` is the payload, or the message of an error; `kind` says which of them it is.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator

from mockllm.core.errors import WireError
from mockllm.core.events import Frame, FrameKind, LineEnd
from mockllm.core.jsontext import json_bytes
from mockllm.wire.framing.carrier import Carrier, Span

MAX_HEADERS = 128 * 1024
MAX_PAYLOAD = 24 * 1024 * 1024
"""In bytes, as botocore has them (`botocore/eventstream.py`)."""

PRELUDE = 12
"""Bytes before the headers: two lengths and their checksum."""

CHECKSUM = 4
LONGEST_HEADER = 0xFFFF
"""The value of a header has at most so many bytes: its length has two."""

_STRING = 7
_SIZES = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
"""Bytes of a header's value by its type; of types 6 and 7 its length stands before it."""

_NAMES: dict[FrameKind, str] = {
    "event": ":event-type",
    "exception": ":exception-type",
    "error": ":error-code",
}
"""The header with the name of a frame, by its kind."""


def encode(frame: Frame, _line_end: LineEnd = "lf") -> bytes:
    """The bytes of a frame."""
    if frame.raw is not None:
        return json_bytes(frame.raw)
    data, kind = frame.data or "", frame.kind
    named = (_NAMES[kind], frame.event or "")
    if kind == "error":
        return message([named, (":error-message", data), (":message-type", kind)], b"")
    typed = (":content-type", "application/json")
    return message([named, typed, (":message-type", kind)], json_bytes(data))


def message(headers: Iterable[tuple[str, str]], payload: bytes) -> bytes:
    """A frame with these headers, all of them strings."""
    return frame_bytes(b"".join(map(_header, headers)), payload)


def frame_bytes(headers: bytes, payload: bytes) -> bytes:
    """A frame with these bytes as its headers."""
    size = PRELUDE + len(headers) + len(payload) + CHECKSUM
    return with_checksum(prelude(size, len(headers)) + headers + payload)


def prelude(size: int, headers: int) -> bytes:
    """The first bytes of a frame of so many bytes, and with so many of headers."""
    return with_checksum(struct.pack(">II", size, headers))


def with_checksum(data: bytes) -> bytes:
    """Bytes with their checksum behind them."""
    return data + struct.pack(">I", zlib.crc32(data))


def _header(header: tuple[str, str]) -> bytes:
    name, value = (text.encode("utf-8", "replace") for text in header)
    if len(value) > LONGEST_HEADER:
        raise ValueError(
            f"a header of a frame has at most {LONGEST_HEADER} bytes, got {len(value)}"
        )
    return b"%c%b%c%b%b" % (len(name), name, _STRING, struct.pack(">H", len(value)), value)


def block(data: bytes) -> list[Frame]:
    """The frame of a whole message; none of one without a name, which clients pass over.

    Raises:
        WireError: its checksum is wrong, or its headers cannot be read.
    """
    length, end = struct.unpack_from(">I", data, 4)[0], len(data) - CHECKSUM
    (expected,) = struct.unpack_from(">I", data, end)
    found = zlib.crc32(data[:end])
    if found != expected:
        raise WireError(f"the checksum of the frame is {expected:08x}, of its bytes {found:08x}")
    own = data[PRELUDE : PRELUDE + length]
    headers = {
        name: own[begin:stop].decode("utf-8", "replace")
        for name, (begin, stop) in header_texts(own)
    }
    payload = data[PRELUDE + length : end].decode("utf-8", "replace")
    for kind, name in _NAMES.items():
        if name in headers:
            text = headers.get(":error-message", "") if kind == "error" else payload
            return [Frame(text, headers[name], kind=kind)]
    return []


def header_texts(data: bytes) -> Iterator[tuple[str, Span]]:
    """The headers whose values are strings, and where these are; the others are passed over.

    Raises:
        WireError: the headers end too early.
    """
    at = 0
    try:
        while at < len(data):
            start = at + 1 + data[at]
            name, type = data[at + 1 : start], data[start]
            at, size = start + 1, _SIZES.get(type)
            if size is None:
                (size,) = struct.unpack_from(">H", data, at)
                at += 2
            if type == _STRING:
                yield name.decode("utf-8", "replace"), (at, at + size)
            at += size
    except (IndexError, struct.error) as error:
        raise WireError("the headers of the frame end too early") from error
    if at > len(data):
        raise WireError("the headers of the frame end too early")


def lengths(data: bytes | bytearray) -> tuple[int, int]:
    """The length of the frame that begins with these bytes, at least 12, and of its headers.

    Raises:
        WireError: no frame begins so.
    """
    size, headers, checksum = struct.unpack_from(">III", data)
    payload = size - headers - PRELUDE - CHECKSUM
    if zlib.crc32(data[:8]) != checksum:
        raise WireError("the checksum of its lengths is wrong")
    if payload < 0 or payload > MAX_PAYLOAD or headers > MAX_HEADERS:
        raise WireError(f"its lengths are {size} in all and {headers} of headers")
    return size, headers


def begins_stream(data: bytes) -> bool:
    """Whether bytes begin with the lengths of a frame and their checksum."""
    try:
        return len(data) >= PRELUDE and lengths(data)[0] > 0
    except WireError:
        return False


class MessageScanner:
    """Finds the messages of a stream by their lengths."""

    def __init__(self) -> None:
        self._pending = bytearray()
        self._begin = 0

    def read(self, data: bytes) -> Iterator[Span]:
        """The messages that these bytes complete.

        Raises:
            WireError: the lengths of a message are wrong, so that no end of it can be found.
        """
        self._pending += data
        while len(self._pending) >= PRELUDE:
            try:
                end = self._begin + lengths(self._pending)[0]
            except WireError as error:
                problem = f"byte {self._begin} begins no frame of an AWS event stream: {error}"
                raise WireError(problem) from error
            if len(self._pending) < end - self._begin:
                break
            del self._pending[: end - self._begin]
            begin, self._begin = self._begin, end
            yield begin, end

    def close(self) -> list[Span]:
        """Nothing: a message that is not whole is none."""
        return []


def parts(data: bytes) -> dict[str, Span]:
    """The parts of a whole message."""
    begin, end = PRELUDE + struct.unpack_from(">I", data, 4)[0], len(data) - CHECKSUM
    return {
        "prelude": (0, PRELUDE),
        "headers": (PRELUDE, begin),
        "payload": (begin, end),
        "checksum": (end, len(data)),
    }


def repair(data: bytes) -> bytes:
    """A message whose payload was changed, with the right lengths and checksums."""
    begin, end = parts(data)["payload"]
    return frame_bytes(data[PRELUDE:begin], data[begin:end])


EVENTSTREAM = Carrier(
    "eventstream",
    "application/vnd.amazon.eventstream",
    encode,
    MessageScanner,
    block,
    parts,
    repair,
)
"""Amazon Bedrock."""
