"""Faults in an answer that arrives: what to send, how long to wait, how to end. Pure.

`cut`, `stall`, `error` and `drip` of an event stream need no later byte than the next event; for
the others the whole answer is needed (`break_answer`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mockllm.core.timed_bytes import Ending
from mockllm.faults.breaking import ENDINGS, pace
from mockllm.faults.events import EventReader
from mockllm.faults.places import PlaceFinder, described
from mockllm.faults.service_errors import error_frames
from mockllm.faults.transmission import Circumstances
from mockllm.scenario.fault_model import Fault, Place


@dataclass(frozen=True, slots=True)
class Pause:
    """Nothing is sent for a time, in microseconds."""

    time: int


@dataclass(frozen=True, slots=True)
class Struck:
    """The fault strikes here."""


@dataclass(frozen=True, slots=True)
class End:
    """Nothing more is sent."""

    ending: Ending


Step = bytes | Pause | Struck | End
"""What the server does next; bytes are sent."""

_HEADERS = Place("before", name="headers")


def is_live(faults: tuple[Fault, ...]) -> bool:
    """Whether a stream can have these faults while it arrives."""
    if len(faults) != 1 or faults[0].name not in ("cut", "stall", "error", "drip"):
        return False
    return faults[0].name != "stall" or faults[0].place not in (None, _HEADERS)


class LiveFault:
    """A fault in one stream, whose bytes arrive in any pieces.

    It holds back an event until it is whole, where the place of the fault is in or before one.

    Args:
        fault: one for which `is_live` holds.
    """

    def __init__(self, fault: Fault, around: Circumstances) -> None:
        self._fault, self._around = fault, around
        place = fault.place or (Place("before", name="first") if fault.name == "error" else None)
        self.place = place
        self._finder: PlaceFinder | None = None
        if place is not None and place.kind != "time":
            self._finder = PlaceFinder(place, around.call_names)
        self._reader = EventReader(around.protocol)
        self._body = b""
        self._sent = 0
        self._whole = 0
        self._ends = [0]
        self._struck = False
        self._found = None if self._finder is None else self._finder.begin()
        self.over = False

    @property
    def missed(self) -> str:
        """Why the fault has not struck; "" where it has."""
        if self._struck or self._fault.name == "drip":
            return ""
        where = "" if self.place is None else f": nothing is {described(self.place)}"
        return f"{self._fault}{where}: the answer has {len(self._body)} bytes"

    @property
    def at(self) -> int | None:
        """The time at which it strikes, in microseconds after the request; None where events or
        bytes decide."""
        if self.place is None or self.place.kind != "time" or self._struck:
            return None
        return self.place.number

    def feed(self, data: bytes) -> Iterator[Step]:
        """What to do with more bytes of the answer."""
        self._body += data
        if self._fault.name == "drip":
            yield from self._dripping(data)
            return
        if self._struck:
            yield from self._rest(len(self._body))
            return
        for event in self._reader.read(data):
            self._whole = event.end
            self._ends.append(event.end)
            if self._found is None and self._finder is not None:
                own = self._body[event.begin : event.end]
                self._found = self._finder.see(event, own)
        if self._finder is None:
            yield from self._rest(self._before(len(self._body)))
        else:
            yield from self._until_found(final=False)

    def close(self) -> Iterator[Step]:
        """What to do at the end of the answer."""
        if self.over:
            return
        if self._finder is not None and not self._struck:
            for event in self._reader.close():
                self._ends.append(event.end)
                if self._found is None:
                    self._found = self._finder.see(event, self._body[event.begin :])
            self._found = self._finder.end() if self._found is None else self._found
            if self._found is not None and self._found > len(self._body):
                self._found = None
            yield from self._until_found(final=True)
        if not self.over:
            yield from self._rest(len(self._body))

    def strike(self) -> Iterator[Step]:
        """The time of the fault has come: all that has arrived is sent, and it strikes."""
        at = self._before(len(self._body))
        yield from self._rest(at)
        yield from self._strikes(at)

    def _before(self, at: int) -> int:
        """The byte of a place: an error comes between two events."""
        if self._fault.name != "error":
            return at
        return max(end for end in self._ends if end <= at)

    def _until_found(self, *, final: bool) -> Iterator[Step]:
        place, found = self.place, self._found
        assert place is not None
        if found is not None and found <= len(self._body):
            found = self._before(found)
            yield from self._rest(found)
            yield from self._strikes(found)
        elif final:
            yield from self._rest(len(self._body))
        elif found is not None:
            yield from self._rest(self._before(len(self._body)))
        else:
            assert self._finder is not None
            yield from self._rest(self._finder.safe(self._whole))

    def _strikes(self, at: int) -> Iterator[Step]:
        self._struck = True
        yield Struck()
        fault = self._fault
        if fault.name == "cut":
            yield self._end(ENDINGS[fault.text("end", "close")])
        elif fault.name == "error":
            kind = fault.text("kind", "overloaded")
            error = self._around.protocol.service_errors[kind].error
            yield error_frames(self._around, self._body[:at], error)
            yield self._end("complete")
        elif isinstance(pause := fault.get("for"), int):
            yield Pause(pause)
            yield from self._rest(len(self._body))
        else:
            yield self._end("open")

    def _end(self, ending: Ending) -> End:
        self.over = True
        return End(ending)

    def _rest(self, end: int) -> Iterator[bytes]:
        if end > self._sent:
            yield self._body[self._sent : end]
            self._sent = end

    def _dripping(self, data: bytes) -> Iterator[Step]:
        size, gap = pace(self._fault)
        if not self._struck:
            self._struck = True
            yield Struck()
        for begin in range(0, len(data), size):
            yield data[begin : begin + size]
            yield Pause(gap)
        self._sent = len(self._body)
