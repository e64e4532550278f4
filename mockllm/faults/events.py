"""Where the events of a stream begin and end in its bytes, and what each of them has.

A stream may be read as it arrives, in any pieces: the events are the same.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from mockllm.core.events import Event, Frame
from mockllm.errors import MockLLMError
from mockllm.framing.json_array import ElementScanner
from mockllm.framing.sse import SSEDecoder
from mockllm.protocols.base import WireProtocol

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
    """Reads the events of one stream: those of an event stream, without comments and empty blocks,
    or the elements of a JSON array."""

    def __init__(self, protocol: WireProtocol) -> None:
        self._protocol = protocol
        self._decoder = protocol.decoder()
        self._pending = b""
        self._begin = 0
        self._complete = False
        self._readable = True
        self._elements: ElementScanner | None = None
        self._begun = False
        self._scanned = 0

    def read(self, data: bytes) -> list[SeenEvent]:
        """The events that these bytes complete."""
        self._pending += data
        if not self._begun and (first := self._pending.lstrip()[:1]):
            self._begun = True
            self._elements = ElementScanner() if first == b"[" else None
        if not self._begun:
            return []
        return self._blocks(final=False) if self._elements is None else self._found_elements()

    def close(self) -> list[SeenEvent]:
        """The event that ends with the stream and not with a blank line, if there is one."""
        if self._elements is not None:
            return []
        events = self._blocks(final=True)
        if self._pending.strip():
            events += self._block(self._pending)
        return events

    def _found_elements(self) -> list[SeenEvent]:
        assert self._elements is not None
        spans = self._elements.read(self._pending[self._scanned :])
        events: list[SeenEvent] = []
        for begin, end in spans:
            text = self._pending[begin - self._begin : end - self._begin].decode(errors="replace")
            events.append(self._event(begin, end, [Frame(text)]))
        if spans:
            self._pending = self._pending[spans[-1][1] - self._begin :]
            self._begin = spans[-1][1]
        self._scanned = len(self._pending)
        return events

    def _blocks(self, *, final: bool) -> list[SeenEvent]:
        events: list[SeenEvent] = []
        at = 0
        for blank in _BLANK.finditer(self._pending):
            if not final and blank.end() == len(self._pending) and blank[0].endswith(b"\r"):
                break  # the first half of CRLF, perhaps
            events += self._block(self._pending[at : blank.end()])
            at = blank.end()
        self._pending = self._pending[at:]
        return events

    def _block(self, block: bytes) -> list[SeenEvent]:
        begin, self._begin = self._begin, self._begin + len(block)
        frames = SSEDecoder().decode(block if block[-1:] in b"\r\n" else block + b"\n\n")
        frames = [frame for frame in frames if frame.data is not None]
        return [self._event(begin, self._begin, frames)] if frames else []

    def _event(self, begin: int, end: int, frames: list[Frame]) -> SeenEvent:
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
        end_data = self._protocol.end_data
        ends = data == end_data if end_data is not None else self._complete and not before
        return SeenEvent(begin, end, tuple(events), self._finishes(data), ends, data)

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
