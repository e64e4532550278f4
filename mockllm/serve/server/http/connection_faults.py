"""Faults of connections: a bound for their number, and idle ones that are closed."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections import deque
from collections.abc import Callable

from aiohttp import web


class Admission:
    """Which connections of a server are served: only so many at the same time."""

    def __init__(self, limit: int, waits: bool) -> None:
        self._limit, self.waits = limit, waits
        self._open = 0
        self._waiting: deque[Callable[[], None]] = deque()

    def admit(self, begin: Callable[[], None]) -> bool:
        """Whether a connection is served now; otherwise it is refused, or waits its turn, when
        `begin` is called."""
        if self._open < self._limit:
            self._open += 1
            return True
        if self.waits:
            self._waiting.append(begin)
        return False

    def forget(self, begin: Callable[[], None]) -> None:
        """Ends a connection that was not served."""
        if begin in self._waiting:
            self._waiting.remove(begin)

    def leave(self) -> None:
        """Ends a connection that was served; the one that has waited longest is served."""
        self._open -= 1
        while self._waiting and self._open < self._limit:
            self._open += 1
            self._waiting.popleft()()


def reset(transport: asyncio.Transport) -> None:
    """Ends a connection with a reset."""
    # SO_LINGER with a time of 0: closing sends a reset (RST) in place of FIN.
    sock = transport.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()


class _ClosedAtData(asyncio.Protocol):
    """Takes the place of a connection's handler until the client sends something."""

    def __init__(
        self,
        transport: asyncio.Transport,
        handler: asyncio.BaseProtocol,
        closed: Callable[[], None],
    ) -> None:
        self._transport, self._handler, self._closed = transport, handler, closed

    def data_received(self, data: bytes) -> None:
        if not self._transport.is_closing():
            self._closed()
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._handler.connection_lost(exc)


def close_at_next_request(request: web.BaseRequest, closed: Callable[[], None]) -> None:
    """Closes the connection of a request as soon as another one comes on it, without an answer.

    A service closes idle connections like this: the client cannot know it when it sends. The
    handler of the connection is called when it ends.
    """
    transport = request.transport
    if transport is not None and not transport.is_closing():  # of uvloop it is no asyncio.Transport
        transport.set_protocol(_ClosedAtData(transport, transport.get_protocol(), closed))
