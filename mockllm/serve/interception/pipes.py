"""Two connections, joined: each byte that arrives on one is written to the other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from mockllm.play.tapes.socket_session import HowClosed

Watch = Callable[[bytes, HowClosed], None]
"""Gets what arrives on a connection, as it is passed on, and at last how it ended."""


class Pipe(asyncio.Protocol):
    """Writes what arrives on one connection to another one, no faster than that takes it.

    Args:
        transport: the connection that it reads.
        watch: sees what passes; None: nobody does.
    """

    other: Pipe

    def __init__(self, transport: asyncio.Transport, watch: Watch | None = None) -> None:
        self.transport, self._watch = transport, watch
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._ended = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Reads on, also where the protocol before had stopped."""
        self.transport.resume_reading()

    def data_received(self, data: bytes) -> None:
        self.other.transport.write(data)
        if self._watch is not None:
            self._watch(data, "")

    def pause_writing(self) -> None:
        self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        self.other.transport.resume_reading()

    def eof_received(self) -> bool:
        """Ends the other side's reading. The connection is over when both sides have ended, and
        with TLS when one has."""
        self._ended = True
        if self._watch is not None:
            self._watch(b"", "eof")
        other = self.other.transport
        if not other.is_closing():
            if not other.can_write_eof():
                other.close()
                return False
            other.write_eof()
        return not self.other._ended and self.transport.can_write_eof()  # noqa: SLF001 - its own class

    def connection_lost(self, exc: Exception | None) -> None:
        self.other.transport.close()
        if self._watch is not None and exc is not None:
            self._watch(b"", "reset")
        if not self.lost.done():
            self.lost.set_result(None)


def join(
    near: asyncio.Transport,
    far: asyncio.Transport,
    watches: tuple[Watch | None, Watch | None] = (None, None),
) -> tuple[Pipe, Pipe]:
    """The protocols that join two connections; `until_lost` ends them.

    Args:
        watches: of what the near side sends, and the far one.
    """
    pipes = Pipe(near, watches[0]), Pipe(far, watches[1])
    pipes[0].other, pipes[1].other = pipes[1], pipes[0]
    return pipes


async def until_lost(near: Pipe, far: Pipe) -> None:
    """Waits until both connections are over; where nobody waits any more, it ends them."""
    try:
        await asyncio.wait([near.lost, far.lost])
    finally:
        near.transport.abort()
        far.transport.abort()


def hand_over(transport: asyncio.Transport, protocol: asyncio.Protocol, data: bytes) -> None:
    """Gives a connection another protocol, and what arrived before."""
    transport.set_protocol(protocol)
    protocol.connection_made(transport)
    if data:
        protocol.data_received(data)
