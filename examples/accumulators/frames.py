"""How to turn the bytes of an event stream of AWS into events for an accumulator.

https://smithy.io/2.0/aws/amazon-eventstream.html

A name in backquotes is the quirk that a rule is there for; `mockllm list quirks NAME` shows it.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["BrokenFrameError", "Frames"]

_PRELUDE = 12
_MOST = 25 * 1024 * 1024
"""The most bytes of a frame, so that no stream can fill the memory."""

_FIXED = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
"""The bytes of a header's value, by its type; strings and bytes have a length."""


class BrokenFrameError(ValueError):
    """Bytes that are no frame, so that nothing after them can be read."""


class Frames:
    """Splits bytes into frames; the bytes may be cut anywhere. `rest` is what has no end yet."""

    def __init__(self) -> None:
        self.rest = b""

    def feed(self, data: bytes) -> Iterator[dict[str, Any]]:
        """The events that these bytes complete, by their names.

        Raises:
            BrokenFrameError: a checksum is wrong. The events before it are complete.
        """
        self.rest += data
        while len(self.rest) >= _PRELUDE:
            size, headers, checksum = struct.unpack_from(">III", self.rest)
            # It may be no frame, but JSON (`bedrock-json-for-stream`).
            if zlib.crc32(self.rest[:8]) != checksum or not _PRELUDE + 4 <= size <= _MOST:
                raise BrokenFrameError("the lengths of a frame have a wrong checksum")
            if len(self.rest) < size:
                return
            frame, self.rest = self.rest[:size], self.rest[size:]
            if zlib.crc32(frame[:-4]) != struct.unpack_from(">I", frame, size - 4)[0]:
                raise BrokenFrameError("a frame has a wrong checksum")
            if headers > size - _PRELUDE - 4:
                raise BrokenFrameError("the headers are longer than their frame")
            yield from _event(_headers(frame[_PRELUDE:][:headers]), frame[_PRELUDE + headers : -4])


def _headers(data: bytes) -> Mapping[str, str]:
    """The headers that are strings, in whatever order (`bedrock-header-order`)."""
    found = {}
    while data:
        name, type, data = data[1:][: data[0]], data[1 + data[0]], data[2 + data[0] :]
        size = _FIXED.get(type)
        if size is None:
            (size,), data = struct.unpack_from(">H", data), data[2:]
        if type == 7:
            found[name.decode()] = data[:size].decode()
        data = data[size:]
    return found


def _event(headers: Mapping[str, str], payload: bytes) -> Iterator[dict[str, Any]]:
    """The event of a frame; none of one without a name. The content type may be missing
    (`bedrock-no-content-type`)."""
    if ":error-code" in headers:
        message = headers.get(":error-message", "")
        yield {"error": {"code": headers[":error-code"], "message": message}}
        return
    name = headers.get(":exception-type") or headers.get(":event-type")
    if name is None:
        return
    try:
        # An empty payload is an object without fields (`bedrock-empty-stop`).
        yield {name: json.loads(payload or b"{}")}
    except ValueError as error:
        raise BrokenFrameError(f"the payload of {name} is no JSON ({error})") from None
