"""Turns the bytes of a stream into events: JSON in the binary frames of AWS. A name in brackets is
a quirk of servers that a rule is there for; `mockllm list quirks NAME` describes it.

https://smithy.io/2.0/aws/amazon-eventstream.html
"""

import json
import struct
import zlib

PRELUDE, CHECKSUM = 12, 4  # bytes: two lengths with their checksum, and the checksum of the frame
SIZES = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}  # of a header's value, by its type
STRING = 7  # this type, and bytes, have a length


class Frames:
    """Passes events on to `answer.feed({name: payload})`, errors to `answer.fail`."""

    def __init__(self, answer):
        self.answer = answer
        self.rest = bytearray()  # of the frame that has not ended

    def feed(self, data):
        """Takes one read, which may end anywhere."""
        self.rest += data
        while len(self.rest) >= PRELUDE and not self.answer.failed:
            size, headers_size = struct.unpack_from(">II", self.rest)
            headers_end = PRELUDE + headers_size
            if not is_intact(self.rest, 8) or size < headers_end + CHECKSUM:
                # It may be no frame at all [bedrock-json-for-stream].
                self.answer.fail("the lengths of a frame have a wrong checksum")
            elif len(self.rest) < size:
                return
            else:
                frame = bytes(self.rest[:size])
                del self.rest[:size]
                self.frame(frame, headers_end, size - CHECKSUM)

    def frame(self, frame, headers_end, payload_end):
        if not is_intact(frame, payload_end):
            self.answer.fail("a frame has a wrong checksum")
            return
        headers, payload = headers_of(frame[PRELUDE:headers_end]), frame[headers_end:payload_end]
        name = headers.get(":exception-type") or headers.get(":event-type")
        if ":error-code" in headers:
            error = {"code": headers[":error-code"], "message": headers.get(":error-message")}
            self.answer.feed({"error": error})
        elif name:
            try:
                value = json.loads(payload or "{}")  # [bedrock-empty-stop]
            except (ValueError, RecursionError):
                self.answer.fail(f"the payload of {name} is no JSON: {payload[:200]}")
            else:
                self.answer.feed({name: value})

    def close(self):
        """Ends the input. HTTP may end properly within a frame [bedrock-truncated-frame]."""
        if self.rest:
            self.answer.fail("the stream was cut inside of a frame")


def is_intact(data, end):
    """Whether the bytes before a place have the checksum that stands there."""
    return zlib.crc32(data[:end]) == struct.unpack_from(">I", data, end)[0]


def headers_of(data):
    """The headers that are strings, in whatever order [bedrock-header-order]."""
    found, at = {}, 0
    while at < len(data):
        name_end = at + 1 + data[at]
        name, type, start = data[at + 1 : name_end], data[name_end], name_end + 1
        size = SIZES.get(type)
        if size is None:
            (size,) = struct.unpack_from(">H", data, start)
            start += 2
        at = start + size
        if type == STRING:
            found[name.decode()] = data[start:at].decode()
    return found
