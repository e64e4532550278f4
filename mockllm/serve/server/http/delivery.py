"""The one writer of answers: onto a client's connection, at their times, with their faults.

Answers go straight to the transport, in one write where they need no more. aiohttp reads the
requests and manages the connection. Its own responses would cost as much as the rest of a request.
What takes longer is written by the `Pacer`: it knows when each part is due; an answer without
pauses has parts that are all due at once. A fault is part of the answer (`Transmission`): when its
head goes, after which byte it strikes, and how it ends.
"""

from __future__ import annotations

import asyncio
import time
from bisect import bisect_left
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from email.utils import formatdate
from itertools import accumulate
from math import ceil
from time import perf_counter

from aiohttp import HttpVersion10, web

from mockllm.core.http import stated_wait
from mockllm.play.faults.transmission import Transmission
from mockllm.play.replay.compilation.gates import BEFORE_HEAD, AnswerGate
from mockllm.play.replay.compilation.http_answer import (
    HttpAnswer,
    bytes_answer,
    chunk,
    without_body,
)
from mockllm.play.replay.sessions.exchange import Sent
from mockllm.scenario.part_model import Gate
from mockllm.serve.server.http.aiohttp_internals import WrittenResponse, awaits_more
from mockllm.serve.server.http.connection_faults import close_at_next_request
from mockllm.serve.server.http.pacing import Paced, Pacer, reach_gate, sleep_until
from mockllm.serve.server.http.sending import WATER, break_off, drain_or_leave, end_early, send

KEEP_ALIVE = WrittenResponse(keep_alive=True)
CLOSE = WrittenResponse(keep_alive=False)

Hold = Callable[[Sent, Gate], Awaitable[float]]
"""Waits until a gate is open; returns how long that took, in seconds."""

_NO_FAULT = Transmission(200, (), (), True)


_AT_ONCE = 256 * 1024
"""Larger answers, in bytes, may have to wait for a client that reads slowly."""


def _nothing() -> None: ...


def write_at_once(
    request: web.BaseRequest, answer: HttpAnswer, sent: Sent, timed: bool
) -> web.StreamResponse | None:
    """Sends an answer that needs one write and no wait, as nearly all do that have no pauses; None
    where it may need more, and nothing was sent.

    It is no coroutine, and knows only the usual connection: that is half of the time of `deliver`.
    """
    transport = request.transport
    if (
        timed
        or answer.gates
        or answer.segmented
        or answer.ending != "complete"
        or not request.keep_alive
        or request.version <= HttpVersion10
        or transport is None
        or transport.is_closing()
        or transport.get_write_buffer_size()
    ):
        return None
    encoded = answer.encoded
    if len(encoded) > _AT_ONCE:
        return None
    transport.write(encoded)
    sent.at_once(answer.size)
    return KEEP_ALIVE


async def deliver(
    request: web.BaseRequest,
    answer: HttpAnswer,
    sent: Sent,
    *,
    speed: float = 1.0,
    close: bool = False,
    stalled: Callable[[], None] = _nothing,
    pacer: Pacer | None = None,
    since: float = 0.0,
    hold: Hold | None = None,
) -> web.StreamResponse:
    """Sends an answer, and notes in `sent` how much of it was sent. For HEAD it has no body.

    Args:
        speed: of timed answers; 0 removes the pauses.
        close: close the connection afterwards.
        stalled: called when nothing more will come of an answer that stays open.
        pacer: writes timed answers; None: one for this answer.
        since: before when no time of the answer counts, as `time.monotonic` has it.
        hold: waits at the gates of the answer; None: they are open.
    """
    transport = request.transport
    if transport is None or transport.is_closing():
        sent.leave()
        return CLOSE
    if request.method == "HEAD":
        answer = without_body(answer)
    if answer.closes_connection:
        sent.break_off()
    timed = answer.timed and speed > 0
    if hold is None and answer.gates:
        answer = replace(answer, gates=())
    if not timed and not answer.gates:
        sent.end_at_once()
    writer = _Writer(request, answer, sent, hold, close=close)
    if not (timed or answer.gates or answer.segmented or answer.closes_connection):
        transport.write(writer.whole())
        sent.at_once(answer.size)
        if transport.get_write_buffer_size() > WATER:
            await drain_or_leave(request, sent)
        return writer.response
    # Lateness is counted of what has times: an answer without has a pacer of its own.
    counting = pacer if timed or answer.fault is not None else None
    await writer.write(
        counting or Pacer(),
        speed=speed if timed and answer.fault is None else 1.0,
        timed=timed or answer.fault is not None,
        separate=answer.segmented or not (timed or answer.gates),
        since=since,
    )
    return await writer.end(stalled)


class _Writer:
    def __init__(
        self,
        request: web.BaseRequest,
        answer: HttpAnswer,
        sent: Sent,
        hold: Hold | None,
        *,
        close: bool,
    ) -> None:
        self._request, self._answer, self._sent, self._hold = request, answer, sent, hold
        self._fault = answer.fault or _NO_FAULT
        self._http_1_0 = request.version <= HttpVersion10
        # A server that is about to fail does not announce it: no `connection: close` in the head.
        self._leaves = close or not request.keep_alive
        self._framed = answer.streamed and not self._http_1_0
        self._start, self._last = 0.0, b""
        stays = not self._leaves and not self._http_1_0
        self.response = KEEP_ALIVE if stays else CLOSE
        """What the handler of the request returns where the answer ends properly."""

    def whole(self) -> bytes:
        """All bytes of an answer that breaks nowhere."""
        if self.response is KEEP_ALIVE:
            return self._answer.encoded
        last = self._answer.last_chunk if self._framed else b""
        return b"".join([self._head(), *self._frames(self._answer.data), last])

    def _head(self, more: Sequence[str] = ()) -> bytes:
        return self._answer.head(http_1_0=self._http_1_0, close=self._leaves, more=more)

    def _frames(self, parts: Sequence[bytes]) -> Sequence[bytes]:
        return [chunk(data) for data in parts] if self._framed else parts

    async def write(
        self, pacer: Pacer, *, speed: float, timed: bool, separate: bool, since: float
    ) -> None:
        """Writes head and body, each part at its time."""
        answer, fault, sent = self._answer, self._fault, self._sent
        self._start = max(pacer.start_of(self._request), since)
        for gate in answer.gates:
            if gate.before == BEFORE_HEAD:
                await self._pass_through(gate.gate)
        usual = self.response is KEEP_ALIVE and answer.fault is None and not answer.gates
        if usual and timed and not separate and not answer.closes_connection:
            await self._write_compiled(pacer, speed)
            return
        if answer.fault is not None:
            note_fault(answer, fault, sent)
        if fault.struck == 0 and (not fault.has_head or fault.head_at):
            sent.strike(time.perf_counter())
        head = await self._begin_head(pacer, speed, timed, separate) if fault.has_head else b""
        times = answer.times if timed else (0,) * len(answer.times)
        count = len(answer.data)
        is_cut = answer.ending == "chunk" and self._framed and count > 0
        await self._write_parts(pacer, head, times, count - is_cut, speed, separate)
        if is_cut:  # the last part is in a chunk that breaks off
            await self._until(times[-1] / speed)
            sent.wrote(len(answer.data[-1]), time.perf_counter())
        if fault.struck is not None and sent.bytes >= fault.struck:
            sent.strike(time.perf_counter())
        await self._until(fault.end_at)
        if sent.ended is None and (answer.fault is None or answer.ending != "open"):
            sent.end_pauses(time.perf_counter())

    async def _write_compiled(self, pacer: Pacer, speed: float) -> None:
        """Writes what was compiled with a timed answer. Nearly all go out so; when hundreds begin
        at the same time, each microsecond here makes the parts of all others late."""
        answer, begin = self._answer, 0
        if answer.streamed and pacer.waits(self._start, answer.times[0], speed):
            begin = answer.encoded.index(b"\r\n\r\n") + 4
            await send(self._request, answer.encoded[:begin], self._sent)
        paced = Paced(answer.encoded, answer.ends, answer.times, answer.data, begin)
        await pacer.play(self._request, paced, self._sent, self._start, speed)

    async def _begin_head(self, pacer: Pacer, speed: float, timed: bool, separate: bool) -> bytes:
        """Writes the head, where it does not go out with the first part; else it is returned."""
        answer, fault = self._answer, self._fault
        await self._until(fault.head_at)
        more = []
        if fault.retry_at is not None:
            # A date has no fractions: the next second, so that it is never too early.
            date = formatdate(ceil(time.time() + fault.retry_at / 1_000_000), usegmt=True)
            more = [f"retry-after: {date}"]
        head = self._head(more)
        first = answer.times[0] if timed and answer.times else 0
        is_held = any(gate.before == 0 for gate in answer.gates)
        is_alone = separate or is_held or pacer.waits(self._start, first, speed)
        if answer.data and not fault.head_alone and not (answer.streamed and is_alone):
            return head
        await send(self._request, head, self._sent)
        return b""

    async def _write_parts(
        self,
        pacer: Pacer,
        head: bytes,
        times: Sequence[int],
        count: int,
        speed: float,
        separate: bool,
    ) -> None:
        """Writes parts at their times; those before a gate, or before a fault strikes, first."""
        data, fault, begin = self._answer.data[:count], self._fault, 0
        last = b""
        if self._framed and not self._answer.closes_connection:
            last = self._answer.last_chunk
        stops = self._stops(data)
        waits_last = any(gate is not None and end == count for end, gate in stops)
        final = self._answer.fault is None and count == len(times) and not waits_last
        for end, gate in (*stops, (count, None)):
            if begin < end:
                if fault.struck is not None and self._sent.bytes >= fault.struck:
                    self._sent.strike(time.perf_counter())
                wire, ends, written = self._on_the_wire(head, begin, end)
                if last and not separate and end == count and not waits_last:
                    wire, last = wire + last, b""
                    ends = (*ends[:-1], len(wire))
                parts, is_final = data[begin:end], final and end == count
                paced = Paced(wire, ends, times[begin:end], parts, written, separate, is_final)
                head, begin = b"", end
                await pacer.play(self._request, paced, self._sent, self._start, speed)
            if gate is not None:
                await reach_gate(self._start, times, end, gate.pause, speed)
                await self._pass_through(gate.gate)
        self._last = last

    def _stops(self, data: Sequence[bytes]) -> list[tuple[int, AnswerGate | None]]:
        """After how many parts writing stops: at gates, and where the fault strikes."""
        sizes = list(accumulate(map(len, data), initial=0))

        def count(size: int) -> int:
            return min(bisect_left(sizes, size), len(data))

        gates = [gate for gate in self._answer.gates if gate.before != BEFORE_HEAD]
        stops: list[tuple[int, AnswerGate | None]] = [(count(gate.before), gate) for gate in gates]
        stops.append((count(self._fault.struck or 0), None))
        return sorted(stops, key=lambda stop: stop[0])

    async def _pass_through(self, gate: Gate) -> None:
        """Waits at a gate. The clock of the answer stands still meanwhile."""
        assert self._hold is not None
        self._start += await self._hold(self._sent, gate)

    def _on_the_wire(self, head: bytes, begin: int, end: int) -> tuple[bytes, tuple[int, ...], int]:
        """Parts as they go over the wire, where each ends there, and how much was written before.

        What was compiled with the answer is used where it is what this connection gets.
        """
        answer = self._answer
        is_usual = self.response is KEEP_ALIVE and answer.fault is None and not answer.gates
        if is_usual and end == len(answer.ends):
            written = 0 if head else answer.encoded.index(b"\r\n\r\n") + 4
            whole = len(answer.encoded) - (len(answer.last_chunk) if self._framed else 0)
            return answer.encoded, (*answer.ends[:-1], whole), written
        frames = self._frames(answer.data[begin:end])
        ends = tuple(accumulate(map(len, frames), initial=len(head)))[1:]
        return b"".join([head, *frames]), ends, 0

    async def end(self, stalled: Callable[[], None]) -> web.StreamResponse:
        """Ends the answer as it is to end."""
        answer, request, sent = self._answer, self._request, self._sent
        if answer.ending == "open":
            stalled()
            await asyncio.Event().wait()  # the handler is cancelled when the client leaves
        if answer.closes_connection:
            data = answer.data[-1] if answer.data else b""
            await end_early(request, answer.ending, sent, framed=self._framed, data=data)
            return CLOSE
        if self._last:
            await send(request, self._last, sent)
        if self._fault.idle_closed and self.response is KEEP_ALIVE and awaits_more(request):
            sent.strike(time.perf_counter())
            await break_off(request, "closed")
            return CLOSE
        if self._fault.idle_closed and self.response is KEEP_ALIVE:
            close_at_next_request(request, lambda: sent.strike(time.perf_counter()))
        elif self._fault.idle_closed:
            sent.miss("the connection ends with the answer")
        return self.response

    async def _until(self, at: float) -> None:
        if at:
            await sleep_until(self._start + at / 1_000_000)


def note_fault(answer: HttpAnswer, fault: Transmission, sent: Sent) -> None:
    """Notes the fault of an answer that is about to be sent."""
    wait = fault.retry_at / 1_000_000 if fault.retry_at is not None else stated_wait(answer.headers)
    sent.break_with(fault.faults, answer.status if fault.has_head else 0, wait)
    if fault.struck is not None:
        sent.break_off()
    if fault.missed:
        sent.miss(fault.missed)


_WRITE = 32 * 1024
"""Smaller parts are joined up to this size, in bytes."""


async def deliver_parts(
    request: web.BaseRequest, headers: Mapping[str, str], parts: AsyncIterator[bytes], sent: Sent
) -> web.StreamResponse:
    """Sends a JSON body in HTTP chunks; for HEAD none of it is made. It waits while the client
    reads slowly, and lets other requests go on after each part.

    Args:
        parts: of the body; where making one fails, the connection ends without the last chunk.
        sent: its `bytes` are 0 as long as nothing was sent at all.
    """
    http_1_0 = request.version <= HttpVersion10
    close = http_1_0 or not request.keep_alive
    fields = {"content-type": "application/json", **headers}
    head: HttpAnswer = bytes_answer(200, fields.items(), (), streamed=True)
    if request.method == "HEAD":
        return await deliver(request, head, sent)
    begin = head.head(http_1_0=http_1_0, close=close)  # is sent with the first part

    async def write(data: bytes) -> None:
        nonlocal begin
        written, begin = begin, b""
        sent.wrote(len(data), perf_counter())
        await send(request, written + (data if http_1_0 else chunk(data)), sent)

    pending = bytearray()
    async for part in parts:
        pending += part
        if len(pending) >= _WRITE:
            data = bytes(pending)
            pending.clear()
            await write(data)
        await asyncio.sleep(0)
    if pending:
        await write(bytes(pending))
    if not http_1_0:
        await send(request, head.last_chunk, sent)
    return CLOSE if close else KEEP_ALIVE
