"""Writes answers with faults onto a client's connection: late, cut, slow, or not at all."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from email.utils import formatdate
from itertools import accumulate
from math import ceil

from aiohttp import HttpVersion10, web

from mockllm.core.timed_bytes import Ending, TimedBytes
from mockllm.replay.compilation.http_answer import FaultNote, HttpAnswer, chunk, stated_wait
from mockllm.replay.sessions.exchange import Sent
from mockllm.server.http.aiohttp_internals import written_response
from mockllm.server.http.connection_faults import close_at_next_request
from mockllm.server.http.pacing import Paced, Pacer
from mockllm.server.http.sending import break_off, broken_chunk, send

__all__ = ["deliver_broken"]

_KEEP_ALIVE = written_response(keep_alive=True)
_CLOSE = written_response(keep_alive=False)


async def deliver_broken(
    request: web.BaseRequest,
    answer: HttpAnswer,
    note: FaultNote,
    sent: Sent,
    *,
    keep_alive: bool,
    stalled: Callable[[], None],
    pacer: Pacer,
) -> web.StreamResponse:
    """Sends an answer with a fault, and notes in `sent` when it struck.

    Args:
        note: the faults of the answer.
        keep_alive: whether the connection may stay open.
        stalled: called when nothing more will come of an answer that stays open.
        pacer: writes the parts.
    """
    _note(answer, note, sent)
    sending = _Sending(request, answer, note, sent, pacer)
    await sending.head(close=not keep_alive)
    await sending.body()
    ending = answer.ending
    if ending == "open":
        stalled()
        await asyncio.Event().wait()  # the handler is cancelled when the client leaves
    if ending != "complete":
        await _end(request, sending, ending)
        return _CLOSE
    if sending.framed:
        await send(request, answer.last_chunk, sent)
    stays = keep_alive and request.version > HttpVersion10
    if note.idle_closed and stays:
        close_at_next_request(request, sending.struck)
    elif note.idle_closed:
        sent.miss("the connection ends with the answer")
    return _KEEP_ALIVE if stays else _CLOSE


def _note(answer: HttpAnswer, note: FaultNote, sent: Sent) -> None:
    wait = note.retry_at / 1_000_000 if note.retry_at is not None else stated_wait(answer.headers)
    sent.break_with(note.text, answer.status if note.has_head else 0, wait)
    if note.struck is not None:
        sent.break_off()
    if note.missed:
        sent.miss(note.missed)


async def _end(request: web.BaseRequest, sending: _Sending, ending: Ending) -> None:
    if ending == "chunk" and sending.framed:
        await send(request, broken_chunk(sending.last), sending.sent)
        await break_off(request, "closed")
    else:
        await break_off(request, "closed" if ending == "chunk" else ending)


class _Sending:
    """One answer while it is sent."""

    def __init__(
        self,
        request: web.BaseRequest,
        answer: HttpAnswer,
        note: FaultNote,
        sent: Sent,
        pacer: Pacer,
    ) -> None:
        self._request, self._answer, self._note = request, answer, note
        self.sent = sent
        self._http_1_0 = request.version <= HttpVersion10
        self._pacer = pacer
        self._start = pacer.start_of(request)
        self._head = b""
        self.framed = answer.streamed and not self._http_1_0
        self.last = b""
        """The end of the body that is held back, to be sent in a chunk that breaks off."""

    async def head(self, *, close: bool) -> None:
        """Sends status and headers, where the answer has them, or keeps them for its body."""
        note, answer = self._note, self._answer
        if note.struck == 0 and (not note.has_head or note.head_at):
            self.struck()
        if not note.has_head:
            return
        await self._until(note.head_at)
        more = []
        if note.retry_at is not None:
            # A date has no fractions: the next second, so that it is never too early.
            date = formatdate(ceil(time.time() + note.retry_at / 1_000_000), usegmt=True)
            more = [f"retry-after: {date}"]
        leaves = close or not self._request.keep_alive
        self._head = answer.head(http_1_0=self._http_1_0, close=leaves, more=more)
        waits = bool(answer.times) and answer.times[0] > note.head_at and answer.streamed
        if answer.streamed or waits or not answer.data:
            await send(self._request, self._head, self.sent)
            self._head = b""

    async def body(self) -> None:
        """Sends the parts at their times, and waits until the ending is due."""
        note, answer, sent = self._note, self._answer, self.sent
        parts = list(answer.chunks)
        broken = answer.ending == "chunk" and self.framed and parts
        if broken:
            self.last = parts.pop().data
        await self._send(parts)
        if broken:
            await self._until(answer.times[-1])
        sent.hold(len(self.last))
        self._check()
        await self._until(note.end_at)
        if answer.ending != "open":
            sent.end_pauses(time.perf_counter())

    async def _send(self, parts: list[TimedBytes]) -> None:
        """Sends parts at their times, and notes where the fault strikes before one of them."""
        frames = [chunk(part.data) if self.framed else part.data for part in parts]
        sent = list(accumulate((len(part.data) for part in parts), initial=0))
        struck = self._note.struck
        first = next((n for n, size in enumerate(sent) if size >= (struck or 0)), len(parts))
        for some in (slice(first), slice(first, None)):
            if not parts[some]:
                continue
            self._check()
            data = self._head + b"".join(frames[some])
            ends = tuple(accumulate(map(len, frames[some]), initial=len(self._head)))[1:]
            times, bodies = zip(*((part.at, part.data) for part in parts[some]), strict=True)
            paced = Paced(data, ends, times, bodies, separate=True, final=False)
            self._head = b""
            await self._pacer.play(self._request, paced, self.sent, self._start)

    def struck(self) -> None:
        """Notes that the fault strikes now."""
        self.sent.strike(time.perf_counter())

    def _check(self) -> None:
        struck = self._note.struck
        if struck is not None and self.sent.bytes >= struck:
            self.struck()

    async def _until(self, at: int) -> None:
        wait = self._start + at / 1_000_000 - time.monotonic() if at else 0
        if wait > 0:
            await asyncio.sleep(wait)
