"""Where the events of a stream begin and end in its bytes, and what each of them has.

A stream may be read as it arrives, in any pieces: the events are the same.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from mockllm.core.events import Event
from mockllm.errors import MockLLMError
from mockllm.framing.sse import Decoder
from mockllm.protocols.base import WireProtocol

__all__ = ["EventReader", "SeenEvent", "seen_events"]

_BLANK = re.compile(rb"(?>\r\n|\r|\n)(?>\r\n|\r|\n)")
"""The end of a line, and the blank line after it: the end of an event (HTML, section 9.2.6)."""


@dataclass(frozen=True, slots=True)
class SeenEvent:
    """An event of a stream.

    Args:
        begin, end: the bytes of the body that it takes, with its blank line.
        events: what the decoder of the API reads in it; () where it cannot be read.
        finishes: whether it begins the end of the answer, with the finish reason or an error.
        is_end: whether the API defines the stream as complete with it.
        data: its data, not parsed.
    """

    begin: int
    end: int
    events: tuple[Event, ...] = ()
    finishes: bool = False
    is_end: bool = False
    data: str = ""

    @property
    def middle(self) -> int:
        """A byte in the middle of its data."""
        return self.begin + (self.end - self.begin + 1) // 2


class EventReader:
    """Reads the events of one stream. Comments and empty blocks are no events.

    Args:
        protocol: the API of the stream.
    """

    def __init__(self, protocol: WireProtocol) -> None:
        self._protocol = protocol
        self._decoder = protocol.decoder()
        self._held = b""
        self._begin = 0
        self._complete = False
        self._readable = True

    def read(self, data: bytes) -> list[SeenEvent]:
        """The events that these bytes complete."""
        self._held += data
        return self._blocks(final=False)

    def close(self) -> list[SeenEvent]:
        """The event that ends with the stream and not with a blank line, if there is one."""
        found = self._blocks(final=True)
        if self._held.strip():
            found += self._block(self._held)
        return found

    def _blocks(self, *, final: bool) -> list[SeenEvent]:
        found: list[SeenEvent] = []
        at = 0
        for blank in _BLANK.finditer(self._held):
            if not final and blank.end() == len(self._held) and blank[0].endswith(b"\r"):
                break  # the first half of CRLF, perhaps
            found += self._block(self._held[at : blank.end()])
            at = blank.end()
        self._held = self._held[at:]
        return found

    def _block(self, block: bytes) -> list[SeenEvent]:
        begin, self._begin = self._begin, self._begin + len(block)
        frames = Decoder().decode(block if block[-1:] in b"\r\n" else block + b"\n\n")
        frames = [frame for frame in frames if frame.data is not None]
        if not frames:
            return []
        events: list[Event] = []
        before = self._complete
        for frame in frames:
            try:
                if self._readable:
                    events += self._decoder.decode(frame)
            except MockLLMError:
                self._readable = False  # of an answer that is broken already
        self._complete = self._readable and self._decoder.complete
        data = frames[-1].data or ""
        ends = self._complete and not before
        return [
            SeenEvent(begin, self._begin, tuple(events), self._finishes(data), ends, data),
        ]

    def _finishes(self, data: str) -> bool:
        if data == self._protocol.end_data:
            return True
        try:
            value = json.loads(data)
        except ValueError:
            return False
        return isinstance(value, dict) and self._protocol.events.is_end(value)


def seen_events(protocol: WireProtocol, body: bytes) -> list[SeenEvent]:
    """All events of a stream."""
    reader = EventReader(protocol)
    return reader.read(body) + reader.close()
