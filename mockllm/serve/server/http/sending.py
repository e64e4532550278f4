"""Writes bytes onto a client's connection, waits while the client reads slowly, and breaks off."""

from __future__ import annotations

import asyncio
import struct
import sys

from aiohttp import web

from mockllm.core.http import Ending
from mockllm.play.replay.sessions.exchange import Sent
from mockllm.serve.server.http.aiohttp_internals import drain
from mockllm.serve.server.http.connection_faults import reset

if sys.platform == "linux":
    import fcntl
    import termios

_PROMISED = 64
"""How many more bytes an HTTP chunk promises that breaks off."""

WATER = 64 * 1024
"""How many bytes of an answer may wait in the connection before the next ones, in bytes."""

_PATIENCE = 0.005
"""Seconds between two looks: no event reports that all bytes were acknowledged."""


async def break_off(request: web.BaseRequest, ending: Ending) -> None:
    """Ends the connection in the middle of an answer; the bytes written before arrive."""
    if ending == "reset":
        await _wait_for_acknowledgement(request)
    transport = request.transport
    if transport is None or transport.is_closing():
        return
    if ending == "closed":
        transport.close()
        return
    reset(transport)


async def end_early(
    request: web.BaseRequest, ending: Ending, sent: Sent, *, framed: bool, data: bytes = b""
) -> None:
    """Ends an answer that is not whole.

    Args:
        framed: whether it goes in HTTP chunks: of these one may break off.
        data: begins that chunk.
    """
    if ending == "chunk" and framed:
        await send(request, b"%x\r\n" % (len(data) + _PROMISED) + data, sent)
    await break_off(request, "reset" if ending == "reset" else "closed")


async def _wait_for_acknowledgement(request: web.BaseRequest) -> None:
    """Waits until the other side has all bytes, or is gone: a reset discards those on their way."""
    while (transport := request.transport) is not None and not transport.is_closing():
        sock = transport.get_extra_info("socket")
        if not transport.get_write_buffer_size() and not _unacknowledged_bytes(sock.fileno()):
            return
        await asyncio.sleep(_PATIENCE)


def _unacknowledged_bytes(descriptor: int) -> int:
    """The bytes that a socket sent without acknowledgement; 0 where the system cannot say."""
    if sys.platform != "linux":
        return 0
    count: int
    (count,) = struct.unpack("i", fcntl.ioctl(descriptor, termios.TIOCOUTQ, b"\0" * 4))
    return count


async def send(request: web.BaseRequest, data: bytes, sent: Sent) -> None:
    """Writes bytes of an answer; waits while the client reads more slowly.

    Raises:
        ConnectionResetError: the client is gone; `sent` says so.
    """
    transport = request.transport
    if transport is None or transport.is_closing():
        sent.leave()
        raise ConnectionResetError("the client closed the connection")
    transport.write(data)
    if transport.get_write_buffer_size() > WATER:
        await drain_or_leave(request, sent)


async def drain_or_leave(request: web.BaseRequest, sent: Sent) -> None:
    """Waits while the client reads more slowly."""
    try:
        await drain(request)
    except ConnectionError:
        sent.leave()
        raise
