"""The only place that sleeps and writes: compiled answers onto a client's connection.

Answers go straight to the transport, in one write where nothing asks for more. aiohttp reads
the requests and minds the connection; its own response machinery would cost as much as all
the rest of a request.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import sys
import time
from collections.abc import Sequence

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http import HttpVersion10

from mockllm.core.timed_bytes import TimedBytes
from mockllm.quirks.base import Ending
from mockllm.replay.answer import LAST_CHUNK, Answer, chunk
from mockllm.replay.session import Exchange

if sys.platform == "linux":
    import fcntl
    import termios

__all__ = ["CLOSE", "KEEP_ALIVE", "break_off", "deliver", "send"]

_WATER = 64 * 1024
_PATIENCE = 0.005


class _Delivered(web.StreamResponse):
    """Tells aiohttp that the answer has been written, and whether the connection stays."""

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        return None

    async def write_eof(self, data: bytes = b"") -> None:
        return None


def _delivered(*, keep_alive: bool) -> web.StreamResponse:
    response = _Delivered()
    if not keep_alive:
        response.force_close()
    else:
        response._keep_alive = True  # noqa: SLF001 - it has no public way to say so
    return response


KEEP_ALIVE = _delivered(keep_alive=True)
CLOSE = _delivered(keep_alive=False)


async def deliver(
    request: web.BaseRequest,
    answer: Answer,
    exchange: Exchange,
    *,
    speed: float = 1.0,
    by_event: bool = False,
    close: bool = False,
) -> web.StreamResponse:
    """Sends an answer and notes in the exchange how much of it went out.

    Args:
        speed: of timed answers; 0 removes the pauses.
        by_event: write each piece by itself, also where nothing asks for it.
        close: close the connection afterwards.
    """
    keep_alive = request.keep_alive and not close
    old = request.version <= HttpVersion10
    transport = request.transport
    if transport is None or transport.is_closing():
        exchange.client_gone = True
        return CLOSE
    timed = answer.timed and speed > 0
    if not timed:
        exchange.ended = 0.0
    # A server that is about to break off does not announce it: the head says nothing of closing.
    if not timed and not by_event and not answer.segmented and not answer.breaks:
        if keep_alive and not old:
            transport.write(answer.instant)
        else:
            transport.write(answer.head(http_1_0=old, close=not keep_alive) + _body(answer, old))
        exchange.bytes_sent = answer.size
        if transport.get_write_buffer_size() > _WATER:
            await _drain(request, exchange)
        return KEEP_ALIVE if keep_alive and not old else CLOSE
    head = answer.head(http_1_0=old, close=not keep_alive)
    framed = answer.streamed and not old
    if answer.streamed:
        transport.write(head)
        head = b""
    if timed:
        await _on_time(request, answer.chunks, exchange, speed, head, framed=framed)
    else:
        for piece in answer.chunks:
            await send(request, chunk(piece.data) if framed else head + piece.data, exchange)
            head = b""
            exchange.bytes_sent += len(piece.data)
            await asyncio.sleep(0)  # lets the loop send it before the next is written
    if answer.breaks:
        await break_off(request, answer.ending)
        return CLOSE
    if framed:
        await send(request, LAST_CHUNK, exchange)
    return KEEP_ALIVE if keep_alive and not old else CLOSE


async def break_off(request: web.BaseRequest, ending: Ending) -> None:
    """Ends the connection in the middle of an answer; what was written before arrives."""
    if ending == "reset":
        await _arrival(request)
    transport = request.transport
    if transport is None or transport.is_closing():
        return
    if ending == "closed":
        transport.close()
        return
    # A socket with no time to linger is reset where it would be closed.
    sock = transport.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()


async def _arrival(request: web.BaseRequest) -> None:
    """Waits until the other side has all that was written, or is gone: a reset throws away
    what is still on its way."""
    while (transport := request.transport) is not None and not transport.is_closing():
        sock = transport.get_extra_info("socket")
        if not transport.get_write_buffer_size() and not _unacknowledged(sock.fileno()):
            return
        await asyncio.sleep(_PATIENCE)


def _unacknowledged(descriptor: int) -> int:
    """How many bytes the kernel holds for a socket; 0 where it has no way to tell."""
    if sys.platform != "linux":
        return 0
    count: int
    (count,) = struct.unpack("i", fcntl.ioctl(descriptor, termios.TIOCOUTQ, b"\0" * 4))
    return count


def _body(answer: Answer, old: bool) -> bytes:
    if answer.streamed and not old:
        return b"".join([*map(chunk, answer.data), LAST_CHUNK])
    return b"".join(answer.data)


async def _on_time(
    request: web.BaseRequest,
    pieces: Sequence[TimedBytes],
    exchange: Exchange,
    speed: float,
    head: bytes,
    *,
    framed: bool,
) -> None:
    """Writes each piece at its time: counted from the start, so that delays do not add up."""
    loop = asyncio.get_running_loop()
    start = loop.time()
    last = pieces[-1].at
    for piece in pieces:
        wait = start + piece.at / 1_000_000 / speed - loop.time()
        if wait > 0:
            await asyncio.sleep(wait)
        if piece.at == last and exchange.ended is None:
            exchange.ended = time.perf_counter() - exchange.clock
        await send(request, chunk(piece.data) if framed else head + piece.data, exchange)
        head = b""
        exchange.bytes_sent += len(piece.data)


async def send(request: web.BaseRequest, data: bytes, exchange: Exchange) -> None:
    """Writes bytes of an answer; waits where the client is slower than they come.

    Raises:
        ConnectionResetError: the client is gone, which is noted in the exchange.
    """
    transport = request.transport
    if transport is None or transport.is_closing():
        exchange.client_gone = True
        raise ConnectionResetError("the client closed the connection")
    transport.write(data)
    if transport.get_write_buffer_size() > _WATER:
        await _drain(request, exchange)


async def _drain(request: web.BaseRequest, exchange: Exchange) -> None:
    try:
        await request.writer.drain()
    except ConnectionError:
        exchange.client_gone = True
        raise
