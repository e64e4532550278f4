"""Faults of connections: a bound for their number, and idle ones that are closed."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections import deque
from collections.abc import Callable
from typing import cast

from aiohttp import web


class Admission:
    """The connections of a server."""

    def __init__(self, limit: int, waits: bool) -> None:
        self._limit = limit
        self.waits = waits
        self._open = 0
        self._waiting: deque[LimitedConnection] = deque()

    def admit(self, connection: LimitedConnection) -> bool:
        """Whether a connection is served now; one that is not waits its turn, or is refused."""
        if self._open < self._limit:
            self._open += 1
            return True
        if self.waits:
            self._waiting.append(connection)
        return False

    def leave(self, connection: LimitedConnection) -> None:
        """Ends a connection that was served; the one that has waited longest is served."""
        self._open -= 1
        while self._waiting and self._open < self._limit:
            other = self._waiting.popleft()
            if not other.gone:
                self._open += 1
                other.begin()


class LimitedConnection(asyncio.Protocol):
    """A connection that is handled once it is admitted."""

    def __init__(self, handler: asyncio.Protocol, admission: Admission) -> None:
        self._handler, self._admission = handler, admission
        self._transport: asyncio.Transport | None = None
        self._admitted = self.gone = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport = cast("asyncio.Transport", transport)  # of uvloop it is none, and has the same
        self._transport = transport
        if self._admission.admit(self):
            self.begin()
        elif self._admission.waits:
            transport.pause_reading()
        else:
            sock = transport.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            transport.abort()

    def begin(self) -> None:
        """Serves the connection."""
        assert self._transport is not None
        self._admitted = True
        self._handler.connection_made(self._transport)
        self._transport.resume_reading()

    def data_received(self, data: bytes) -> None:
        self._handler.data_received(data)

    def eof_received(self) -> bool | None:
        return self._handler.eof_received() if self._admitted else None

    def pause_writing(self) -> None:
        self._handler.pause_writing()

    def resume_writing(self) -> None:
        self._handler.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self.gone = True
        if self._admitted:
            self._admission.leave(self)
            self._handler.connection_lost(exc)


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
