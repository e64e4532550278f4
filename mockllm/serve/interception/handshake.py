"""Connections whose clients may begin with TLS or without it, and where their TLS ends."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import Callable

from mockllm.serve.interception.pipes import hand_over

BEGIN = b"\x16"
"""The first byte of TLS (RFC 8446, section 5.1); no request over HTTP begins with it."""


class EitherConnection(asyncio.Protocol):
    """A connection on which nothing has arrived yet: its first byte says who serves it.

    Args:
        context: of TLS, by which it is served where it begins so.
        serve: makes what serves it, without TLS or within.
        patience: for how long nothing may arrive, and a handshake may take, in seconds.
        tasks: of all such connections, for whoever ends them.
        notice: called with a line about a client that does not trust the certificate.
    """

    def __init__(
        self,
        context: ssl.SSLContext,
        serve: Callable[[], asyncio.Protocol],
        patience: float,
        tasks: set[asyncio.Task[None]],
        notice: Callable[[str], None],
    ) -> None:
        self._context, self._serve, self._patience = context, serve, patience
        self._tasks, self._notice = tasks, notice

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Looks for the first byte."""
        assert isinstance(transport, asyncio.Transport)
        task = asyncio.get_running_loop().create_task(self._open(transport))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _open(self, transport: asyncio.Transport) -> None:
        # Not in `connection_made`: there Python 3.11 would read on.
        transport.pause_reading()
        served = False
        try:
            async with asyncio.timeout(self._patience):
                secured = await begins_tls(transport)
            if secured:
                await secure(transport, self._context, self._serve, self._patience)
            else:
                hand_over(transport, self._serve(), b"")
                transport.resume_reading()
            served = True
        except ssl.SSLError as error:
            self._notice(distrust("this server", error))
        except OSError:  # also a `TimeoutError`: the client says nothing, or is gone
            return
        finally:
            if not served:
                transport.abort()


def distrust(host: str, error: OSError) -> str:
    """The line about a client that does not trust the certificate of a host."""
    return (
        f"a client of {host} does not take the certificate of this process ({error}); it has to "
        "trust it: SSL_CERT_FILE, NODE_EXTRA_CA_CERTS and others name it"
    )


async def secure(
    transport: asyncio.Transport,
    context: ssl.SSLContext,
    serve: Callable[[], asyncio.Protocol],
    patience: float,
) -> None:
    """Ends the TLS of a client, and hands the connection within it over.

    Args:
        transport: of which nothing was read that belongs to TLS.
        serve: makes what serves it.
        patience: for how long the handshake may take, in seconds.

    Raises:
        OSError: the handshake failed; a `ConnectionAbortedError` where it stopped.
    """
    held = Held()
    tls = await asyncio.get_running_loop().start_tls(
        transport, held, context, server_side=True, ssl_handshake_timeout=patience
    )
    assert tls is not None
    held.go_on(tls, serve())


async def begins_tls(transport: asyncio.Transport) -> bool:
    """Whether a client begins with TLS; what it sent stays to be read. Its reading is paused."""
    loop = asyncio.get_running_loop()
    arrived = asyncio.Event()
    # A copy, as asyncio watches no descriptor for us that a transport has; and only a look, as
    # `start_tls` needs the bytes.
    file = os.dup(transport.get_extra_info("socket").fileno())
    with socket.socket(fileno=file) as peeked:
        loop.add_reader(file, arrived.set)
        try:
            await arrived.wait()
        finally:
            loop.remove_reader(file)
        try:
            return peeked.recv(1, socket.MSG_PEEK) == BEGIN
        except OSError:  # the client is gone, which its connection notices
            return False


class Held(asyncio.Protocol):
    """Keeps what arrives until it is known who reads it."""

    def __init__(self) -> None:
        self._data = b""
        self._ended = self._lost = False

    def data_received(self, data: bytes) -> None:
        self._data += data

    def eof_received(self) -> bool:
        self._ended = True
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost = True

    def go_on(self, transport: asyncio.Transport, protocol: asyncio.Protocol) -> None:
        """Lets a protocol read on, and what arrived before."""
        hand_over(transport, protocol, self._data)
        if self._lost:
            protocol.connection_lost(None)
        elif self._ended and not protocol.eof_received():
            transport.close()
