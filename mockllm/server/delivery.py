"""Writes compiled answers onto a client's connection, and waits: no other module does.

Answers go straight to the transport, in one write where they need no more. aiohttp reads the
requests and manages the connection. Its own responses would cost as much as the rest of a request.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

from aiohttp import HttpVersion10, web

from mockllm.core.timed_bytes import TimedBytes
from mockllm.replay.answer import HttpAnswer, chunk
from mockllm.replay.session import Exchange
from mockllm.server.aiohttp_internals import written_response
from mockllm.server.broken_delivery import deliver_broken
from mockllm.server.sending import break_off, broken_chunk, drained, send

__all__ = ["CLOSE", "KEEP_ALIVE", "deliver"]

_WATER = 64 * 1024


KEEP_ALIVE = written_response(keep_alive=True)
CLOSE = written_response(keep_alive=False)


def _nothing() -> None:
    """The usual `stalled`."""


async def deliver(
    request: web.BaseRequest,
    answer: HttpAnswer,
    exchange: Exchange,
    *,
    speed: float = 1.0,
    by_event: bool = False,
    close: bool = False,
    stalled: Callable[[], None] = _nothing,
) -> web.StreamResponse:
    """Sends an answer, and notes in the exchange how much of it was sent.

    Args:
        speed: of timed answers; 0 removes the pauses.
        by_event: write each chunk by itself, also where one write would do.
        close: close the connection afterwards.
        stalled: called when nothing more will come of an answer that stays open.
    """
    keep_alive = request.keep_alive and not close
    http_1_0 = request.version <= HttpVersion10
    transport = request.transport
    if transport is None or transport.is_closing():
        exchange.client_gone = True
        return CLOSE
    timed = answer.timed and speed > 0
    if not timed:
        exchange.ended = 0.0
    # A server that is about to fail does not announce it: no `connection: close` in the head.
    if not timed and not by_event and not answer.segmented and not answer.closes_connection:
        if keep_alive and not http_1_0:
            transport.write(answer.encoded)
        else:
            transport.write(
                answer.head(http_1_0=http_1_0, close=not keep_alive) + _body(answer, http_1_0)
            )
        exchange.bytes_sent = answer.size
        if transport.get_write_buffer_size() > _WATER:
            await drained(request, exchange)
        return KEEP_ALIVE if keep_alive and not http_1_0 else CLOSE
    if answer.fault is not None:
        return await deliver_broken(
            request, answer, answer.fault, exchange, keep_alive=keep_alive, stalled=stalled
        )
    head = answer.head(http_1_0=http_1_0, close=not keep_alive)
    framed = answer.streamed and not http_1_0
    if answer.streamed:
        transport.write(head)
        head = b""
    frames = _framed(answer) if framed else answer.data
    if timed:
        await _send_timed(request, answer.chunks, frames, exchange, speed, head)
    else:
        for data, frame in zip(answer.data, frames, strict=True):
            await send(request, head + frame, exchange)
            head = b""
            exchange.bytes_sent += len(data)
            await asyncio.sleep(0)  # the loop sends it before the next is written
        if head:  # of an answer that breaks off before its body
            await send(request, head, exchange)
    if answer.closes_connection:
        if answer.ending == "open":
            stalled()
            await asyncio.Event().wait()  # the handler is cancelled when the client leaves
        await break_off(request, "reset" if answer.ending == "reset" else "closed")
        return CLOSE
    if framed:
        await send(request, answer.last_chunk, exchange)
    return KEEP_ALIVE if keep_alive and not http_1_0 else CLOSE


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


async def _send_timed(
    request: web.BaseRequest,
    chunks: Sequence[TimedBytes],
    frames: Sequence[bytes],
    exchange: Exchange,
    speed: float,
    head: bytes,
) -> None:
    """Writes each chunk at its time, counted from the start, so that delays do not add up.

    Args:
        frames: the chunks as they are written.
    """
    loop = asyncio.get_running_loop()
    start = loop.time()
    last = chunks[-1].at
    for timed, frame in zip(chunks, frames, strict=True):
        wait = start + timed.at / 1_000_000 / speed - loop.time()
        if wait > 0:
            await asyncio.sleep(wait)
        if timed.at == last and exchange.ended is None:
            exchange.ended = time.perf_counter() - exchange.clock
        await send(request, head + frame, exchange)
        head = b""
        exchange.bytes_sent += len(timed.data)
