"""One scheduler for all timed answers of an event loop: it writes what is due.

The task of a request sleeps until its whole answer is written. A task that woke for each part would
cost several times as much as the write itself, and a core would be full with a few hundred streams.
Whatever is due of one answer at the same time goes out in one write, so that a loop that is late
catches up.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from time import monotonic, perf_counter
from weakref import WeakKeyDictionary

from aiohttp import web

from mockllm.play.replay.sessions.exchange import Sent
from mockllm.serve.server.http.sending import WATER, drain_or_leave

_LAST_RECEIVED = 8 + 4 * 11
"""Where `tcpi_last_data_recv` begins in `struct tcp_info` (linux/tcp.h), in bytes."""

_LENGTH = _LAST_RECEIVED + 4


def age(transport: asyncio.BaseTransport) -> float:
    """For how long at least the last bytes of a connection are there, in seconds.

    Linux keeps that in milliseconds, counted in steps of its timer (4 ms with 250 Hz). One step is
    left out, so that no answer starts before its request came. Other systems do not say it: 0.
    """
    sock = transport.get_extra_info("socket") if sys.platform == "linux" else None
    if sock is None:
        return 0.0
    try:
        info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _LENGTH)
    except OSError:  # it is none of TCP, or closed
        return 0.0
    (milliseconds,) = struct.unpack_from("I", info, _LAST_RECEIVED)
    return max(0.0, float(milliseconds) / 1000 - _STEP)


_MONOTONIC_COARSE = 6  # linux/time.h; Python has no name for it
_STEP = time.clock_getres(_MONOTONIC_COARSE) if sys.platform == "linux" else 0.0


async def sleep_until(due: float) -> None:
    """Waits until a time, as `time.monotonic` has it."""
    wait = due - monotonic()
    if wait > 0:
        await asyncio.sleep(wait)


async def reach_gate(
    start: float, times: Sequence[int], count: int, pause: int, speed: float
) -> None:
    """Waits until an answer comes to a gate.

    Args:
        times: when each part is due, in microseconds after the start.
        count: how many parts are before the gate, which were written.
        pause: between the last of them and the gate, in microseconds.
    """
    if pause and any(times):  # without times the answer is played without pauses
        due = (times[count - 1] if count else 0) + pause
        await sleep_until(start + due / (speed * 1_000_000))


_TICKS = 1000
"""How many times a second something may be due: epoll and uvloop wait for whole milliseconds."""

_SLICE = 0.003, 0.0005
"""For how long answers are written before the loop reads and accepts again: for as long as that
took the last time, in seconds, at most and at least. So neither can hold up the other."""

_NEVER = 1 << 62

Late = Callable[[float], None]
"""Is called with the seconds by which a part was late."""


@dataclass(slots=True)
class Paced:
    """Bytes that are written part by part.

    Args:
        data: all bytes, as they go over the wire.
        ends: where each part ends in `data`.
        times: when each part is due, in microseconds after the start.
        parts: the bytes of the body in each part, without framing.
        begin: where the first part begins; what is before it was written.
        separate: whether each part is a write of its own, also where several are due.
        final: whether the answer is over with the last part, which is noted.
    """

    data: bytes
    ends: Sequence[int]
    times: Sequence[int]
    parts: Sequence[bytes]
    begin: int = 0
    separate: bool = False
    final: bool = True


class _Stream:
    __slots__ = ("begin", "done", "index", "last", "paced", "rate", "sent", "start", "to")

    def __init__(
        self, to: asyncio.Transport, paced: Paced, sent: Sent, start: float, rate: float
    ) -> None:
        self.to = to
        self.paced = paced
        self.sent = sent
        self.start, self.rate = start, rate
        self.index, self.begin = 0, paced.begin
        self.last = paced.times[-1] if paced.final else None
        """When the pauses are over, in microseconds after the start."""
        self.done: asyncio.Future[None]
        """Of the task that sleeps until all is written, or until the client has to read first."""

    @property
    def due(self) -> float:
        """When the next part is due."""
        return self.start + self.paced.times[self.index] / self.rate


class Pacer:
    """Writes the parts of all timed answers of an event loop when they are due."""

    def __init__(self, late: Late | None = None) -> None:
        self._late = late
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.Handle | None = None
        self._armed = _NEVER
        self._ticks: list[int] = []  # a heap
        self._due: dict[int, list[_Stream]] = {}
        self._again: list[_Stream] = []
        self._left = 0.0
        # A request that was sent before the answer to the one before it was over starts then.
        self._ended: WeakKeyDictionary[asyncio.BaseTransport, float] = WeakKeyDictionary()

    def start_of(self, request: web.BaseRequest) -> float:
        """When the answer to a request starts, as `time.monotonic` has it: when the request came,
        also where it had to wait until the loop read it."""
        now, transport = monotonic(), request.transport
        if transport is None:
            return now
        return max(now - age(transport), self._ended.get(transport, 0.0))

    @staticmethod
    def waits(start: float, at: int, speed: float = 1.0) -> bool:
        """Whether something is not due yet."""
        return monotonic() < start + at / (speed * 1_000_000)

    async def play(
        self, request: web.BaseRequest, paced: Paced, sent: Sent, start: float, speed: float = 1.0
    ) -> None:
        """Writes all parts, each at its time, and notes in `sent` how much was sent.

        Where the client reads slowly, only its own parts wait.

        Raises:
            ConnectionError: the client is gone; `sent` says so.
        """
        transport = request.transport
        if transport is None:
            raise _client_left(sent)
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._begin(loop)
        stream = _Stream(transport, paced, sent, start, speed * 1_000_000)
        count = len(paced.times)
        try:
            while stream.index < count:
                stream.done = loop.create_future()
                now = monotonic()
                if stream.due <= now:
                    self._write(stream, now)
                else:
                    self._plan(stream)
                await stream.done
                if transport.get_write_buffer_size() > WATER:
                    await drain_or_leave(request, sent)
        finally:
            if stream.index < count:  # it may stand in the plan for long
                stream.paced = _NOTHING
            self._ended[transport] = monotonic()

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        """Serves another loop; the one before, if there was one, has ended."""
        self._loop, self._timer, self._armed = loop, None, _NEVER
        for kept in (self._ticks, self._due, self._again):
            kept.clear()

    def _plan(self, stream: _Stream) -> None:
        at = stream.paced.times[stream.index]
        tick = int((stream.start + at / stream.rate) * _TICKS) + 1
        streams = self._due.get(tick)
        if streams is not None:
            streams.append(stream)
            return
        self._due[tick] = [stream]
        heappush(self._ticks, tick)
        if tick < self._armed:
            self._arm(tick)

    def _arm(self, tick: int) -> None:
        assert self._loop is not None
        if self._timer is not None:
            self._timer.cancel()
        wait = tick / _TICKS - monotonic()
        if wait <= 0:
            self._timer = self._loop.call_soon(self._run)
        else:
            # uvloop rounds to milliseconds, and would call again and again in the last half.
            self._timer = self._loop.call_later(max(wait, 1 / _TICKS), self._run)
        self._armed = tick

    def _run(self) -> None:
        """Writes what is due, for `_SLICE` at most, and sets the timer for the next time."""
        self._timer, self._armed = None, -1  # nothing arms meanwhile
        now = monotonic()
        most, least = _SLICE
        stop = now + min(max(now - self._left, least), most)
        current = int(now * _TICKS)
        ticks = self._ticks
        if self._again:
            # Tick 0 is no time: it stands for a round before all that is due. These wait for it so
            # that each part is a segment of its own, and other answers come in between.
            self._due[0] = self._again + self._due.get(0, [])
            self._again = []
            if not ticks or ticks[0]:
                heappush(ticks, 0)
        while ticks and ticks[0] <= current and now < stop:
            tick = heappop(ticks)
            streams = self._due.pop(tick)
            for done, stream in enumerate(streams):
                now = monotonic()
                if now >= stop and done:
                    self._due[tick] = streams[done:]
                    heappush(ticks, tick)
                    break
                self._write(stream, now)
        self._left, self._armed = monotonic(), _NEVER
        if self._again or ticks:
            self._arm(0 if self._again else ticks[0])

    def _write(self, stream: _Stream, now: float) -> None:
        """Writes what is due of an answer, and plans the rest or wakes the task."""
        done = stream.done
        if done.done():  # the task was cancelled
            return
        try:
            if self._write_due(stream, now):
                done.set_result(None)
        except Exception as error:  # noqa: BLE001 - the task of the request raises it
            done.set_exception(error)

    def _write_due(self, stream: _Stream, now: float) -> bool:
        """Writes what is due; returns whether the task is to go on."""
        to, paced, index, sent = stream.to, stream.paced, stream.index, stream.sent
        if to.is_closing():
            raise _client_left(sent)
        times, passed = paced.times, (now - stream.start) * stream.rate
        count = len(times)
        if self._late is not None:
            self._late((passed - times[index]) / stream.rate)
        size = len(paced.parts[index])
        index += 1
        if index < count and times[index] <= passed and not paced.separate:
            first, index = index, self._all_due(stream, passed)
            size += sum(map(len, paced.parts[first:index]))
        end = paced.ends[index - 1]
        to.write(paced.data[stream.begin : end])
        stream.begin, stream.index = end, index
        sent.wrote(size, now - stream.start + sent.clock)
        if times[index - 1] == stream.last and sent.ended is None:
            sent.end_pauses(perf_counter())
        if index == count or to.get_write_buffer_size() > WATER:
            return True
        if times[index] > passed:
            self._plan(stream)
        else:  # in a round of its own: in another segment, and after other answers
            self._again.append(stream)
            if self._armed > 0:
                self._arm(0)
        return False

    def _all_due(self, stream: _Stream, passed: float) -> int:
        """Where the parts end that are due after so many microseconds and go out with the first in
        one write."""
        paced, index = stream.paced, stream.index + 1
        times, ends, bound = paced.times, paced.ends, stream.begin + WATER
        while index < len(times) and times[index] <= passed and ends[index] <= bound:
            if self._late is not None:
                self._late((passed - times[index]) / stream.rate)
            index += 1
        return index


_NOTHING = Paced(b"", (0,), (0,), (b"",))


def _client_left(sent: Sent) -> ConnectionResetError:
    sent.leave()
    return ConnectionResetError("the client closed the connection")
