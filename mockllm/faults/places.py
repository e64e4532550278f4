"""Finds the byte of a stream at which a fault strikes, while the stream arrives."""

from __future__ import annotations

from mockllm.core import events as ev
from mockllm.faults.events import EventReader, SeenEvent
from mockllm.faults.transmission import Circumstances
from mockllm.scenario.fault_model import Place

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
        self._reader = EventReader(around.protocol)
        self._pending: SeenEvent | None = None
        self._calls: dict[int, tuple[str, str]] = {}
        self._ends: list[int] = []
        self.body = b""
        self.found: int | None = None
        """The byte, as soon as it is known; it may still have to arrive."""
        if place.kind == "bytes" or place == Place("events"):
            self.found = place.number
        elif place == _FIRST:
            self.found = 0

    def read(self, data: bytes) -> None:
        """Reads more bytes of the stream."""
        self.body += data
        self._see(self._reader.read(data))

    def close(self) -> None:
        """The stream has ended."""
        self._see(self._reader.close())
        if self.found is None and self._pending is not None:
            self.found = self._pending.middle
        if self.found is not None and self.found > len(self.body):
            self.found = None

    @property
    def safe(self) -> int:
        """Up to which byte the stream may be sent, as the place is not before it."""
        if self._place.kind in ("time", "bytes"):
            return len(self.body)
        return self.between(len(self.body)) if self._pending is None else self._pending.begin

    def between(self, at: int) -> int:
        """The end of the last event up to a byte."""
        return max((end for end in self._ends if end <= at), default=0)

    @property
    def why_missed(self) -> str:
        """Why a fault does not strike there."""
        return no_place(self._place, f"{len(self.body)} bytes and {len(self._ends)} events")

    def _see(self, events: list[SeenEvent]) -> None:
        for event in events:
            self._ends.append(event.end)
            if self.found is None:
                self.found = self._in_event(event)

    def _in_event(self, event: SeenEvent) -> int | None:
        place = self._place
        match place.kind:
            case "events" if place.number == len(self._ends):
                return event.end
            case "in event" if place.number == len(self._ends):
                return event.middle
            case "in character":
                at = _first_long_character(self.body[event.begin : event.end])
                return None if at is None else event.begin + at
            case "before":
                return event.begin if _is_named(event, place.name) else None
            case "in content" | "in call":
                return self._in_fragment(event)
        return None

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
    middle, or at its beginning. None: the place does not come in it."""
    match place.kind:
        case "bytes":
            return place.number if place.number <= len(body) else None
        case "in character":
            return _first_long_character(body)
    return 0 if place in (_FIRST, Place("events")) else len(body) // 2


def no_place(place: Place, size: str) -> str:
    """That a place does not come in an answer of some size."""
    return f"nothing is {place.key} {place}: the answer has {size}"
