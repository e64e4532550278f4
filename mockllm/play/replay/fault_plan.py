"""Which answers of a server or a session have a fault: drawn from a seed, so that a run repeats.

The time is an argument: bursts begin and end at times after the start of the server.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TypeVar

from mockllm.core.distributions import Distribution, read_distribution
from mockllm.core.errors import UsageError
from mockllm.core.pairs import read_pairs
from mockllm.core.record import record
from mockllm.core.seeded import derive_int
from mockllm.scenario.durations import read_duration, read_percent
from mockllm.scenario.fault_model import Fault
from mockllm.scenario.reading.faults import HANDSHAKE, OF_SERVERS, parse_faults

_PARTS = 1_000_000
_T = TypeVar("_T")


@record
class Bursts:
    """Times in which another share of the answers has faults.

    Args:
        rate: that share.
        every: the time from the end of a burst, or from the start of the server, to the begin of
            the next one; like `length` in microseconds, and with a median above 0.
        length: of a burst.
    """

    rate: float
    every: Distribution
    length: Distribution

    def is_on(self, seed: str, at: float) -> bool:
        """Whether there is a burst at a time, in seconds after the start of the server."""
        window = _CYCLES * (self.every.quantile(0.5) + self.length.quantile(0.5))
        number, rest = divmod(at * 1_000_000, window)
        return bisect_right(_edges(self, seed, int(number), window), rest) % 2 == 1


_CYCLES = 64
"""So many bursts, about, are drawn together. Each such window is drawn by itself, so that a time
costs the same however long a server has run; a burst ends with its window."""


@lru_cache(maxsize=64)
def _edges(bursts: Bursts, seed: str, window: int, length: float) -> tuple[float, ...]:
    """The begins and ends of the bursts of a window, in turn, as times after its own begin."""
    edges, at, block = [], 0.0, 0
    while at < length:
        what = "burst", window, block
        gaps = bursts.every.draw(seed, *what, "every", count=_CYCLES)
        lengths = bursts.length.draw(seed, *what, "for", count=_CYCLES)
        for pair in zip(gaps, lengths, strict=True):
            for part in pair:
                at += part
                edges.append(at)
        block += 1
    return tuple(edges)


@record
class FaultPlan:
    """The faults of a server or a session.

    Args:
        choices: one of them is drawn for an answer that has a fault; each may be several faults.
        rate: the share of the answers that have one.
        seed: of the draw; with it, the session and the number of the request decide.
        bursts: when another share has one; None: never.
        limit: how many connections a server has at the same time; None: any number.
        waits: whether connections beyond the limit wait; otherwise they are refused.
        openings: as `choices`, of requests that open a WebSocket.
    """

    choices: tuple[tuple[Fault, ...], ...] = ()
    rate: float = 1.0
    seed: str = "0"
    limit: int | None = None
    waits: bool = False
    bursts: Bursts | None = None
    openings: tuple[Fault, ...] = ()

    def draw(self, session: str, number: int, at: float) -> tuple[Fault, ...]:
        """The faults of an answer; () for none.

        Args:
            session: the name of the session of its request.
            number: of the request in its session, from 1.
            at: when the request came, in seconds after the start of the server.
        """
        chosen = self._draw(self.choices, ("fault",), session, number, at)
        return () if chosen is None else chosen

    def draw_opening(self, session: str, number: int, at: float) -> Fault | None:
        """The fault of a request that opens a WebSocket; the arguments are those of `draw`."""
        return self._draw(self.openings, ("fault", "opening"), session, number, at)

    def _draw(
        self, choices: Sequence[_T], what: tuple[str, ...], session: str, number: int, at: float
    ) -> _T | None:
        if not choices:
            return None
        rate, bursts = self.rate, self.bursts
        if bursts is not None and bursts.is_on(self.seed, at):
            rate = bursts.rate
        drawn = derive_int(self.seed, session, number, "rate", *what[1:], below=_PARTS)
        if drawn >= rate * _PARTS:
            return None
        return choices[derive_int(self.seed, session, number, *what, below=len(choices))]


NO_PLAN = FaultPlan()
"""No fault."""


def read_plan(
    written: Iterable[str], *, rate: float | None = None, seed: str = "0", burst: str = ""
) -> FaultPlan:
    """The plan of faults as options have them.

    Args:
        rate: None: every answer has one, or with `burst` none outside of bursts.
        burst: as `read_bursts` reads it; "" for none.

    Raises:
        UsageError: what is wrong in one of them.
    """
    choices: list[tuple[Fault, ...]] = []
    openings: list[Fault] = []
    limits: list[Fault] = []
    for text in written:
        faults = parse_faults(text)
        of_server = [fault for fault in faults if fault.name in (*OF_SERVERS, HANDSHAKE)]
        if of_server and len(faults) > 1:
            raise UsageError(
                f"fault {text!r}: {of_server[0].name} concerns connections, not answers; give it "
                "in an option of its own"
            )
        if faults[0].name == HANDSHAKE:
            openings += faults
        elif of_server:
            limits += of_server
        else:
            choices.append(faults)
    if len(limits) > 1:
        raise UsageError(
            f"{limits[0].name} and {limits[1].name} both bound the number of connections; keep one"
        )
    limit = limits[0] if limits else None
    bursts = read_bursts(burst) if burst else None
    if bursts is not None and not choices and not openings:
        raise UsageError("a burst needs a fault of answers, such as cut:after=3events")
    if rate is None:
        rate = 1.0 if bursts is None else 0.0
    return FaultPlan(
        tuple(choices),
        rate,
        seed,
        None if limit is None else limit.number("number", 1),
        limit is not None and limit.name == "slow-accept",
        bursts,
        tuple(openings),
    )


_KEYS = ("rate", "every", "for")
_EXAMPLE = "rate=50% every=exponential(60s) for=uniform(2s, 5s)"


def read_bursts(text: str) -> Bursts:
    """Bursts as an option has them: `rate=50% every=exponential(60s) for=uniform(2s, 5s)`.

    Raises:
        UsageError: what is wrong.
    """
    try:
        given = read_pairs(text, _KEYS, _EXAMPLE)
        if missing := [key for key in _KEYS if key not in given]:
            raise ValueError(f"needs {' and '.join(missing)}, such as {_EXAMPLE}")
        return Bursts(_rate(given["rate"]), _time("every", given), _time("for", given))
    except ValueError as error:
        raise UsageError(f"fault-burst {text!r}: {error}") from None


def _rate(text: str) -> float:
    try:
        return read_percent(text)
    except ValueError as error:
        raise ValueError(f"rate must be {error}") from None


def _time(key: str, given: Mapping[str, str]) -> Distribution:
    try:
        time = read_distribution(given[key], read_duration)
    except ValueError as error:
        raise ValueError(f"{key}: {error}") from None
    if not time.quantile(0.5):
        raise ValueError(f"{key} must be more than 0 in half of all cases")
    return time
