"""Finds the byte of a stream at which a fault strikes, while the stream arrives, in any pieces.

It reads where the events of the stream begin and end in its bytes, and what each of them has.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mockllm.core import events as ev
from mockllm.core.errors import MockLLMError, WireError
from mockllm.core.events import Event, Frame
from mockllm.play.faults.transmission import Circumstances
from mockllm.scenario.fault_model import Place
from mockllm.wire.framing.carrier import Carrier, Span
from mockllm.wire.protocols.base import WireProtocol
from mockllm.wire.protocols.values import json_object

HEADERS = Place("before", name="headers")
_FIRST = Place("before", name="first")
_CONTENT = {"text": ev.TextDelta, "reasoning": ev.ReasoningDelta, "refusal": ev.RefusalDelta}


class PlaceFinder:
    """Finds a place in a stream, whose bytes arrive in any pieces.

    For a place in content or in arguments it waits for one event more: the place is in the second
    event with them, so that a part of them has arrived, or in the only one. A time is not found
    here: whoever sends knows it.
    """

    def __init__(self, place: Place, around: Circumstances) -> None:
        self._place = place
        self._names = {place.name, around.call_names.get(place.name, place.name)}
        self._carrier = around.carrier
        self._reader = EventReader(around.protocol, around.carrier)
        self._pending: SeenEvent | None = None
        self._calls: dict[int, tuple[str, str]] = {}
        self._ends: list[int] = []
        self.body = b""
        self.position: int | None = None
        """The byte, as soon as it is known; it may still have to arrive."""
        if place.kind == "bytes" or place == Place("events"):
            self.position = place.number
        elif place == _FIRST:
            self.position = 0

    def read(self, data: bytes) -> None:
        """Reads more bytes of the stream."""
        self.body += data
        self._see(self._reader.read(data))

    def close(self) -> None:
        """The stream has ended."""
        self._see(self._reader.close())
        if self.position is None and self._pending is not None:
            self.position = self._pending.middle
        if self.position is not None and self.position > len(self.body):
            self.position = None

    @property
    def sendable(self) -> int:
        """The byte up to which the stream may be sent: the place is not before it."""
        if self._place.kind in ("time", "bytes"):
            return len(self.body)
        return self.between(len(self.body)) if self._pending is None else self._pending.begin

    def between(self, at: int) -> int:
        """The end of the last event up to a byte."""
        return max((end for end in self._ends if end <= at), default=0)

    @property
    def why_missed(self) -> str:
        """Why a fault does not strike there."""
        place = self._place
        if place.kind == "in event" and place.number <= len(self._ends):
            return f"nothing is inside {place}: frames over {self._carrier.name} have no such part"
        return no_place(place, f"{len(self.body)} bytes and {len(self._ends)} events")

    def _see(self, events: list[SeenEvent]) -> None:
        for event in events:
            self._ends.append(event.end)
            if self.position is None:
                self.position = self._in_event(event)

    def _in_event(self, event: SeenEvent) -> int | None:
        place = self._place
        match place.kind:
            case "events" if place.number == len(self._ends):
                return event.end
            case "in event" if place.number == len(self._ends):
                return self._in_frame(event)
            case "in character":
                at = _first_long_character(self.body[event.begin : event.end])
                return None if at is None else event.begin + at
            case "before":
                return event.begin if _is_named(event, place.name) else None
            case "in content" | "in call":
                return self._in_fragment(event)
        return None

    def _in_frame(self, event: SeenEvent) -> int | None:
        """After the lengths of a frame, before its checksum, or in the middle of another part."""
        if not self._place.name:
            return event.middle
        parts = self._carrier.parts(self.body[event.begin : event.end])
        part = parts.get(self._place.name)
        if part is None:
            return None
        begin, end = part
        at = {"prelude": end, "checksum": begin}.get(self._place.name, (begin + end + 1) // 2)
        return event.begin + at

    def _in_fragment(self, event: SeenEvent) -> int | None:
        has = any(self._is_fragment(part) for part in event.events)
        if self._pending is not None:
            return event.middle if has else self._pending.middle
        if has:
            self._pending = event
        return None

    def _is_fragment(self, event: ev.Event) -> bool:
        if isinstance(event, ev.ToolStart):
            self._calls[event.part] = (event.id or "", event.name or "")
        if self._place.kind == "in call":
            if not isinstance(event, ev.ToolArgs) or not event.text:
                return False
            id, name = self._calls.get(event.part, ("", ""))
            return self._place.name in (id, name) or (not id and name in self._names)
        return isinstance(event, _CONTENT[self._place.name])


def _is_named(event: SeenEvent, name: str) -> bool:
    match name:
        case "finish":
            return event.finishes
        case "usage":
            return any(isinstance(part, ev.Usage) for part in event.events)
        case "done":
            return event.is_end
    return False


def _first_long_character(data: bytes) -> int | None:
    """After the first byte of the first character that takes several."""
    return next((at + 1 for at, byte in enumerate(data) if byte >= 0xC0), None)


def in_plain_body(place: Place, body: bytes) -> int | None:
    """The byte of an answer that is not streamed: it has no events, so a place among them is in its
    middle, or at its beginning. None: the body does not reach the place."""
    match place.kind:
        case "bytes":
            return place.number if place.number <= len(body) else None
        case "in character":
            return _first_long_character(body)
    return 0 if place in (_FIRST, Place("events")) else len(body) // 2


def no_place(place: Place, size: str) -> str:
    """The message that an answer of some size does not reach a place."""
    return f"nothing is {place.key} {place}: the answer has {size}"


@dataclass(frozen=True, slots=True)
class SeenEvent:
    """An event of a stream.

    Args:
        begin, end: the bytes of the body that it takes, with what ends it.
        events: what the decoder of the API reads in it; () where it cannot be read.
        finishes: whether it begins the end of the answer, with the finish reason or an error.
        is_end: whether the API defines the stream as complete with it.
        frame: the last of its frames with data.
    """

    begin: int
    end: int
    events: tuple[Event, ...]
    finishes: bool
    is_end: bool
    frame: Frame

    @property
    def data(self) -> str:
        """Its data, not parsed."""
        return self.frame.data or ""

    @property
    def middle(self) -> int:
        """A byte in the middle of its data."""
        return self.begin + (self.end - self.begin + 1) // 2


class EventReader:
    """Reads the events of one stream, without comments and empty blocks."""

    def __init__(self, protocol: WireProtocol, carrier: Carrier) -> None:
        self._protocol = protocol
        self._carrier = carrier
        self._scanner = carrier.scanner()
        self._decoder = protocol.decoder()
        self._pending = b""
        self._begin = 0
        self._complete = False
        self._readable = True
        self._framed = True

    def read(self, data: bytes) -> list[SeenEvent]:
        """The events that these bytes complete; none after bytes that are no frame."""
        self._pending += data
        return self._events(self._scanner.read(data)) if self._framed else []

    def close(self) -> list[SeenEvent]:
        """The event that ends with the stream, if there is one."""
        return self._events(self._scanner.close())

    def _events(self, spans: Iterable[Span]) -> list[SeenEvent]:
        events: list[SeenEvent] = []
        try:
            for begin, end in spans:
                block = self._pending[begin - self._begin : end - self._begin]
                self._pending, self._begin = self._pending[end - self._begin :], end
                frames = [frame for frame in self._carrier.block(block) if frame.data is not None]
                if frames:
                    events.append(self._event(begin, end, frames))
        except WireError:
            self._framed = False  # of an answer that is broken already
        return events

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
        frame, data = frames[-1], frames[-1].data or ""
        end_data = self._protocol.end_data
        ends = data == end_data if end_data is not None else self._complete and not before
        finishes = frame.kind != "event" or self._finishes(data)
        return SeenEvent(begin, end, tuple(events), finishes, ends, frame)

    def _finishes(self, data: str) -> bool:
        if data == self._protocol.end_data:
            return True
        value = json_object(data)
        return value is not None and self._protocol.events.is_end(value)


def seen_events(protocol: WireProtocol, body: bytes, carrier: Carrier) -> list[SeenEvent]:
    """All events of a stream."""
    reader = EventReader(protocol, carrier)
    return reader.read(body) + reader.close()
