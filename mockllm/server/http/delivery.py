"""Writes compiled answers onto a client's connection, and waits: no other module does.

Answers go straight to the transport, in one write where they need no more. aiohttp reads the
requests and manages the connection. Its own responses would cost as much as the rest of a request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from itertools import accumulate
from time import perf_counter

from aiohttp import HttpVersion10, web

from mockllm.replay.compilation.http_answer import HttpAnswer, chunk
from mockllm.replay.sessions.exchange import Sent
from mockllm.server.http.aiohttp_internals import written_response
from mockllm.server.http.broken_delivery import deliver_broken
from mockllm.server.http.pacing import Paced, Pacer
from mockllm.server.http.sending import WATER, break_off, broken_chunk, drained, send
from mockllm.server.options import ServerOptions

__all__ = ["CLOSE", "KEEP_ALIVE", "deliver", "write_at_once"]

KEEP_ALIVE = written_response(keep_alive=True)
CLOSE = written_response(keep_alive=False)


def _nothing() -> None:
    """The usual `stalled`."""


def write_at_once(
    request: web.BaseRequest, answer: HttpAnswer, sent: Sent, options: ServerOptions
) -> web.StreamResponse | None:
    """Sends an answer that needs one write and no wait, as nearly all do that have no pauses; None
    where it may need more, and nothing was sent.

    It is no coroutine, and knows only the usual connection: that is half of the time of `deliver`.
    """
    transport = request.transport
    if (
        (answer.timed and options.speed > 0)
        or answer.segmented
        or answer.ending != "complete"
        or options.flush == "event"
        or not request.keep_alive
        or request.version <= HttpVersion10
        or transport is None
        or transport.is_closing()
        or transport.get_write_buffer_size()
    ):
        return None
    encoded = answer.encoded
    if len(encoded) > WATER:
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
    by_event: bool = False,
    close: bool = False,
    stalled: Callable[[], None] = _nothing,
    pacer: Pacer | None = None,
) -> web.StreamResponse:
    """Sends an answer, and notes in `sent` how much of it was sent.

    Args:
        speed: of timed answers; 0 removes the pauses.
        by_event: write each chunk by itself, also where one write would do.
        close: close the connection afterwards.
        stalled: called when nothing more will come of an answer that stays open.
        pacer: writes timed answers; None: one for this answer.
    """
    keep_alive = request.keep_alive and not close
    http_1_0 = request.version <= HttpVersion10
    transport = request.transport
    if transport is None or transport.is_closing():
        sent.leave()
        return CLOSE
    timed = answer.timed and speed > 0
    if answer.closes_connection:
        sent.break_off()
    if not timed:
        sent.end_at_once()
    # A server that is about to fail does not announce it: no `connection: close` in the head.
    if not timed and not by_event and not answer.segmented and not answer.closes_connection:
        if keep_alive and not http_1_0:
            transport.write(answer.encoded)
        else:
            transport.write(
                answer.head(http_1_0=http_1_0, close=not keep_alive) + _body(answer, http_1_0)
            )
        sent.at_once(answer.size)
        if transport.get_write_buffer_size() > WATER:
            await drained(request, sent)
        return KEEP_ALIVE if keep_alive and not http_1_0 else CLOSE
    if answer.fault is not None:
        return await deliver_broken(
            request,
            answer,
            answer.fault,
            sent,
            keep_alive=keep_alive,
            stalled=stalled,
            pacer=pacer or Pacer(),
        )
    if timed:
        await _pace(request, answer, sent, pacer or Pacer(), speed, by_event, keep_alive)
    else:
        await _send_parts(request, answer, sent, keep_alive)
    if answer.closes_connection:
        if answer.ending == "open":
            stalled()
            await asyncio.Event().wait()  # the handler is cancelled when the client leaves
        await break_off(request, "reset" if answer.ending == "reset" else "closed")
        return CLOSE
    return KEEP_ALIVE if keep_alive and not http_1_0 else CLOSE


async def _send_parts(
    request: web.BaseRequest, answer: HttpAnswer, sent: Sent, keep_alive: bool
) -> None:
    """Sends an answer without pauses, each part of its body in a write of its own."""
    http_1_0 = request.version <= HttpVersion10
    head = answer.head(http_1_0=http_1_0, close=not keep_alive)
    framed = answer.streamed and not http_1_0
    if answer.streamed:
        await send(request, head, sent)
        head = b""
    frames = _framed(answer) if framed else answer.data
    for data, frame in zip(answer.data, frames, strict=True):
        await send(request, head + frame, sent)
        head = b""
        sent.wrote(len(data), perf_counter())
        await asyncio.sleep(0)  # the loop sends it before the next is written
    if head:  # of an answer that breaks off before its body
        await send(request, head, sent)
    if framed and not answer.closes_connection:
        await send(request, answer.last_chunk, sent)


def _body(answer: HttpAnswer, http_1_0: bool) -> bytes:
    if answer.streamed and not http_1_0:
        return b"".join([*map(chunk, answer.data), answer.last_chunk])
    return b"".join(answer.data)


def _framed(answer: HttpAnswer) -> Sequence[bytes]:
    """The parts of a body as HTTP chunks; the last one may break off."""
    frames = [chunk(data) for data in answer.data]
    if answer.ending == "chunk" and frames:
        frames[-1] = broken_chunk(answer.data[-1])
    return frames


async def _pace(
    request: web.BaseRequest,
    answer: HttpAnswer,
    sent: Sent,
    pacer: Pacer,
    speed: float,
    by_event: bool,
    keep_alive: bool,
) -> None:
    """Sends a timed answer; the head of a stream goes out at once."""
    http_1_0 = request.version <= HttpVersion10
    framed = answer.streamed and not http_1_0
    if keep_alive and not http_1_0 and answer.ending != "chunk":
        data, ends = answer.encoded, answer.ends
    else:
        frames = _framed(answer) if framed else answer.data
        head = answer.head(http_1_0=http_1_0, close=not keep_alive)
        ends = tuple(accumulate(map(len, frames), initial=len(head)))[1:]
        last = answer.last_chunk if framed and not answer.closes_connection else b""
        data = b"".join([head, *frames, last])
    separate = by_event or answer.segmented
    complete = framed and not answer.closes_connection
    if complete and not separate:
        ends = (*ends[:-1], len(data))
    start, begin = pacer.start_of(request), 0
    if answer.streamed and (separate or pacer.waits(start, answer.times[0], speed)):
        begin = data.index(b"\r\n\r\n") + 4
        await send(request, data[:begin], sent)
    paced = Paced(data, ends, answer.times, answer.data, begin, separate)
    await pacer.play(request, paced, sent, start, speed)
    if complete and separate:
        await send(request, answer.last_chunk, sent)
