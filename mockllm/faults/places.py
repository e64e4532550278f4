"""Finds the byte of a stream at which a fault strikes, while the events of the stream arrive."""

from __future__ import annotations

from collections.abc import Mapping

from mockllm.core import events as ev
from mockllm.faults.events import SeenEvent
from mockllm.scenario.fault_model import Place

_CONTENT = {"text": ev.TextDelta, "reasoning": ev.ReasoningDelta, "refusal": ev.RefusalDelta}


class PlaceFinder:
    """Finds a place in a stream.

    For a place in content or in arguments it waits for one event more: the place is in the second
    event with them, so that a part of them has arrived, or in the only one.

    Args:
        place: any but one `after` a time.
        call_names: the names of calls by their ids, which some services do not send.
    """

    def __init__(self, place: Place, call_names: Mapping[str, str]) -> None:
        self._place = place
        self._names = {place.name, call_names.get(place.name, place.name)}
        self._count = 0
        self._held: SeenEvent | None = None
        self._calls: dict[int, tuple[str, str]] = {}

    def begin(self) -> int | None:
        """The byte, where no event is needed to find it."""
        place = self._place
        if place.kind == "bytes":
            return place.number
        at_once = place.kind == "events" and not place.number
        return 0 if at_once or place == Place("before", name="first") else None

    def see(self, event: SeenEvent, data: bytes) -> int | None:
        """The byte, as soon as it is known.

        Args:
            data: the bytes of the event.
        """
        self._count += 1
        place = self._place
        match place.kind:
            case "events" if place.number == self._count:
                return event.end
            case "in event" if place.number == self._count:
                return event.middle
            case "in character":
                return _in_character(event, data)
            case "before":
                return event.begin if _is_named(event, place.name) else None
            case "in content" | "in call":
                return self._in_fragment(event)
        return None

    def safe(self, whole: int) -> int:
        """Up to which byte the stream may be sent, as the place is not before it.

        Args:
            whole: the end of the last event that was seen.
        """
        return whole if self._held is None else self._held.begin

    def end(self) -> int | None:
        """The byte, where the end of the stream decides it."""
        return None if self._held is None else self._held.middle

    def _in_fragment(self, event: SeenEvent) -> int | None:
        has = any(self._is_fragment(one) for one in event.events)
        if self._held is not None:
            return event.middle if has else self._held.middle
        if has:
            self._held = event
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
            return any(isinstance(one, ev.Usage) for one in event.events)
        case "done":
            return event.is_end
    return False


def _in_character(event: SeenEvent, data: bytes) -> int | None:
    """After the first byte of the first character that takes several."""
    return next((event.begin + at + 1 for at, byte in enumerate(data) if byte >= 0xC0), None)


def in_plain_body(place: Place, body: bytes) -> int:
    """The byte of an answer that is not streamed: it has no events, so a place among them is in its
    middle, or at its beginning."""
    if place.kind == "bytes":
        return place.number
    if place.kind == "in character":
        return next((at + 1 for at, byte in enumerate(body) if byte >= 0xC0), len(body) + 1)
    if place == Place("before", name="first") or (place.kind == "events" and not place.number):
        return 0
    return len(body) // 2


def described(place: Place) -> str:
    """A place in words: `after 3 events`, `inside event 2`."""
    return f"{place.key} {place}"
