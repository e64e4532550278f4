"""Faults in an answer that arrives: what to send, how long to wait, how to end. Pure.

`cut`, `stall`, `error` and `drip` of an event stream need no later byte than the next event; for
the others the whole answer is needed (`break_answer`).
"""

from __future__ import annotations

from collections.abc import Iterator

from mockllm.play.faults.places import HEADERS, PlaceFinder
from mockllm.play.faults.strikes import Strike, carrier_mismatch, pace, place_of, strike_of
from mockllm.play.faults.transmission import Circumstances
from mockllm.scenario.fault_model import Fault

Step = bytes | Strike
"""What the server does next; bytes are sent."""


def is_live(faults: tuple[Fault, ...]) -> bool:
    """Whether a stream can have these faults while it arrives."""
    if len(faults) != 1:
        return False
    (fault,) = faults
    if carrier_mismatch(fault, on_socket=False):
        return False
    at_place = fault.name in ("cut", "stall", "error") and place_of(fault) != HEADERS
    return at_place or fault.name == "drip"


class LiveFault:
    """A fault in one stream, whose bytes arrive in any pieces.

    It holds back an event until it is whole, where the place of the fault is in or before one.
    """

    def __init__(self, fault: Fault, around: Circumstances) -> None:
        self._fault, self._around = fault, around
        self._place = place_of(fault)
        self._finder = PlaceFinder(self._place, around)
        self._sent = 0
        self._struck = fault.name == "drip"
        self.over = False

    @property
    def missed(self) -> str:
        """Why the fault has not struck; "" where it has."""
        return "" if self._struck else f"{self._fault}: {self._finder.why_missed}"

    @property
    def at(self) -> int | None:
        """The time at which it strikes, in microseconds after the request; None where events or
        bytes decide."""
        return self._place.number if self._place.kind == "time" and not self._struck else None

    def feed(self, data: bytes) -> Iterator[Step]:
        """The steps for more bytes of the answer."""
        if self._fault.name == "drip":
            size, gap = pace(self._fault)
            for begin in range(0, len(data), size):
                yield from (Strike(), data[begin : begin + size], Strike(pause=gap))
            return
        self._finder.read(data)
        yield from self._steps(self._before(self._finder.sendable))

    def close(self) -> Iterator[Step]:
        """The steps at the end of the answer."""
        if not self.over and self._fault.name != "drip":
            self._finder.close()
            yield from self._steps(len(self._finder.body))

    def strike(self, at: int | None = None) -> Iterator[Step]:
        """The fault strikes.

        Args:
            at: after this byte; None: its time has come, and all that has arrived is sent before.
        """
        body = self._finder.body
        at = self._before(len(body) if at is None else at)
        yield from self._rest(at)
        strike = strike_of(self._fault, self._around, body[:at])
        self._struck, self.over = True, strike.ending is not None
        yield strike
        if not self.over:
            yield from self._rest(len(body))

    def _steps(self, sendable: int) -> Iterator[Step]:
        """Strikes where that can be done now; else sends what is sendable."""
        position, size = self._finder.position, len(self._finder.body)
        if self._struck:
            yield from self._rest(size)
        elif position is not None and position <= size:
            yield from self.strike(position)
        else:
            yield from self._rest(sendable)

    def _before(self, at: int) -> int:
        """The byte of a place: an error comes between two events."""
        return self._finder.between(at) if self._fault.name == "error" else at

    def _rest(self, end: int) -> Iterator[bytes]:
        if end > self._sent:
            yield self._finder.body[self._sent : end]
            self._sent = end
