"""A forward proxy: `CONNECT` for TLS, absolute targets for the rest (RFC 9110, section 9.3.6).

Requests for the hosts of `Hosts` go to mockllm's own server, decrypted; other hosts are tunnelled
untouched, or refused. The user name of the proxy's credentials is the session.
"""

from __future__ import annotations

import asyncio
import base64
import os
import re
import socket
from collections.abc import Callable, Coroutine
from typing import cast
from urllib.parse import unquote, urlsplit

from mockllm.core.http import reason_phrase
from mockllm.interception.authority import Authority
from mockllm.interception.hosts import PORTS, Hosts, netloc
from mockllm.interception.pipes import hand_over, joined, until_lost

_MOST_HEAD = 64 * 1024
_LINE = re.compile(rb"([A-Za-z]+) (\S+) HTTP/1\.[01]\r?\n")
_END = re.compile(rb"\r?\n\r?\n")
_CREDENTIALS = re.compile(
    rb"^proxy-authorization:[ \t]*basic[ \t]+(\S+)[ \t]*\r?$", re.IGNORECASE | re.MULTILINE
)
_ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"
_CONNECTING = 30.0
_HANDSHAKE = b"\x16"
"""How TLS begins (RFC 8446, section 5.1); no request over HTTP does."""


Serve = Callable[[str, str], asyncio.Protocol]
"""Makes what serves a connection that a client believes to be one to a service: of the origin of
that service, such as `https://api.openai.com`, and the session that the client named ("" for none).
"""


class ForwardProxy:
    """Makes the protocol of each connection, for `loop.create_server`.

    Args:
        hosts: that are intercepted.
        serve: answers what is intercepted.
        tunnels: whether other hosts are reached; otherwise they are refused.
        notice: called with a line about a host that was refused, or cannot be reached.
    """

    def __init__(
        self,
        hosts: Hosts,
        authority: Authority,
        serve: Serve,
        *,
        tunnels: bool,
        notice: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.hosts = hosts
        self.authority = authority
        self.serve = serve
        self.tunnels = tunnels
        self.notice = notice
        self.tasks: set[asyncio.Task[None]] = set()

    def __call__(self) -> asyncio.Protocol:
        return _Connection(self)

    def close(self) -> None:
        """Ends the tunnels."""
        for task in self.tasks:
            task.cancel()


class _Connection(asyncio.Protocol):
    """Reads the first head of a connection, and hands the connection on."""

    def __init__(self, proxy: ForwardProxy) -> None:
        self._proxy = proxy
        self._data = b""
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Waits for the whole head, which says where the connection goes."""
        self._data += data
        end = _END.search(self._data)
        if end is None:
            if len(self._data) > _MOST_HEAD:
                self._refuse(431, "the head of the request is larger than 64 KiB")
            return
        line = _LINE.match(self._data)
        if line is None:
            self._refuse(400, "this is no request to a proxy")
            return
        target, session = line[2].decode("latin-1"), _session(self._data[: end.end()])
        if line[1].upper() == b"CONNECT":
            self._connect(target, session, self._data[end.end() :])
        else:
            self._absolute(target, session)

    def _connect(self, target: str, session: str, rest: bytes) -> None:
        host, port = _place(f"//{target}", PORTS["https"])
        if not host:
            self._refuse(400, "CONNECT needs a host and a port")
        elif not self._proxy.hosts.has(host, port):
            self._pass(host, port, _ESTABLISHED, rest)
        elif port == PORTS["http"] or (rest and not rest.startswith(_HANDSHAKE)):
            # What came with CONNECT is no TLS; where nothing did, `_intercept` looks again. At port
            # 80 it is a WebSocket without TLS, of a client with WS_PROXY.
            self._transport.write(_ESTABLISHED)
            self._hand_over(host, port, session, rest)
        elif rest:  # asyncio takes no bytes of a handshake that were read before
            self._refuse(400, "TLS may begin only after the answer to CONNECT")
        else:
            self._transport.pause_reading()
            self._transport.write(_ESTABLISHED)
            self._start(self._intercept(host, port, session))

    def _absolute(self, target: str, session: str) -> None:
        host, port = _place(target, PORTS["http"])
        if not target.lower().startswith(("http://", "ws://")) or not host:
            self._refuse(400, "this is a proxy: it takes CONNECT, and targets such as http://HOST/")
        elif self._proxy.hosts.has(host, port):
            self._hand_over(host, port, session, self._data)
        else:
            self._pass(host, port, b"", self._data)

    # Intercepted

    def _hand_over(self, host: str, port: int, session: str, data: bytes) -> None:
        """Lets the server answer on this connection, which has no TLS."""
        server = self._proxy.serve(_origin("http", host, port), session)
        hand_over(self._transport, server, data)

    async def _intercept(self, host: str, port: int, session: str) -> None:
        """Ends the client's TLS here, and lets the server answer what comes through it. A WebSocket
        without TLS is led by CONNECT, too."""
        transport, held = self._transport, _Held()
        if not await _begins_tls(transport):
            transport.resume_reading()
            self._hand_over(host, port, session, b"")
            return
        context = self._proxy.authority.context(host)
        try:
            tls = await asyncio.get_running_loop().start_tls(
                transport, held, context, server_side=True
            )
        except OSError as error:
            self._proxy.notice(
                f"a client of {host} does not take the certificate of this process ({error}); it "
                "has to trust it: SSL_CERT_FILE, NODE_EXTRA_CA_CERTS and others name it"
            )
            return
        if tls is not None:
            held.go_on(tls, self._proxy.serve(_origin("https", host, port), session))

    # Others

    def _pass(self, host: str, port: int, answer: bytes, data: bytes) -> None:
        """Passes a connection on, with an answer to the client first, and data to the service."""
        if self._proxy.tunnels:
            self._start(self._tunnel(host, port, answer, data))
            return
        message = (
            f"mockllm does not reach {host}: no service that it plays has this name. Name it "
            f"(--intercept {host}), or let other hosts pass (--tunnel)."
        )
        self._proxy.notice(message)
        self._refuse(403, message)

    async def _tunnel(self, host: str, port: int, answer: bytes, data: bytes) -> None:
        transport, near, far = self._transport, _Held(), _Held()
        transport.set_protocol(near)
        try:
            async with asyncio.timeout(_CONNECTING):
                loop = asyncio.get_running_loop()
                other, _ = await loop.create_connection(lambda: far, host, port)
        except (OSError, TimeoutError) as error:
            message = f"{host}:{port} cannot be reached: {str(error) or 'it does not answer'}"
            self._proxy.notice(message)
            self._refuse(502, message)
            return
        transport.write(answer)
        other.write(data)
        pipes = joined(transport, other)
        near.go_on(transport, pipes[0])
        far.go_on(other, pipes[1])
        await until_lost(*pipes)

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._proxy.tasks.add(task)
        task.add_done_callback(self._proxy.tasks.discard)

    def _refuse(self, status: int, message: str) -> None:
        body = f"{message}\n".encode()
        head = (
            f"HTTP/1.1 {status} {reason_phrase(status)}\r\ncontent-type: text/plain\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self._transport.write(head.encode() + body)
        self._transport.close()


async def _begins_tls(transport: asyncio.Transport) -> bool:
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
            return peeked.recv(1, socket.MSG_PEEK) == _HANDSHAKE
        except OSError:  # the client is gone, which its connection notices
            return False


def _place(target: str, default: int) -> tuple[str, int]:
    """Host and port of a target; no host where it has none."""
    try:
        parts = urlsplit(target)
        return parts.hostname or "", parts.port or default
    except ValueError:
        return "", default


def _origin(scheme: str, host: str, port: int) -> str:
    return f"{scheme}://{netloc(scheme, host, port)}"


def _session(head: bytes) -> str:
    """The user name of the proxy's credentials; "" without any."""
    found = _CREDENTIALS.search(head)
    if found is None:
        return ""
    try:
        user = base64.b64decode(found[1]).decode()
    except ValueError:
        return ""
    return unquote(user.partition(":")[0])


class _Held(asyncio.Protocol):
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
