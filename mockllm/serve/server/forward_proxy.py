"""A forward proxy: `CONNECT` for TLS, absolute targets for the rest (RFC 9112, section 3.2).

A connection to a proxy belongs to nobody: each request on it names its own host, and is answered
for that host alone. Requests for the hosts of `Hosts` go to mockllm's own server, decrypted; those
for other hosts pass untouched, or are refused. The user name of the proxy's credentials is the
session.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Collection
from dataclasses import KW_ONLY, dataclass
from functools import partial
from hmac import compare_digest
from typing import Literal

from aiohttp import web

from mockllm.core.errors import RequestError, UsageError
from mockllm.core.http import PORTS, is_this_machine
from mockllm.serve.interception.authority import Authority
from mockllm.serve.interception.handshake import BEGIN, Held, begins_tls, distrust, secure
from mockllm.serve.interception.pipes import hand_over, join, until_lost
from mockllm.serve.interception.targets import ProxyTarget, read_credentials, read_target
from mockllm.serve.server.http.addresses import ALL_ADDRESSES, own_addresses
from mockllm.serve.server.http.aiohttp_internals import (
    bytes_behind,
    intercepted_connection,
    lead,
    take_over,
)
from mockllm.serve.server.http.delivery import CLOSE
from mockllm.serve.server.options import InterceptOptions
from mockllm.serve.server.recording.relay import Relay

_ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"
"""Any 2xx opens a tunnel, and none has a body (RFC 9110, section 9.3.6)."""
_CONNECTING = 30.0

Answer = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


@dataclass
class ForwardProxy:
    """Answers the requests of connections to the proxy's port.

    Args:
        server: of the connections, which answers what is intercepted with `answer`.
        tunnels: whether other hosts are reached; otherwise they are refused.
        notice: called with a line about a host that was refused, or cannot be reached.
        patience: for how long nothing may arrive of a request or a handshake, in seconds.
        gave_up: called when a connection was closed for that.
        own_ports: of this very server, which no client reaches through it.
    """

    options: InterceptOptions
    authority: Authority
    server: web.Server
    answer: Answer
    _: KW_ONLY
    tunnels: bool
    notice: Callable[[str], None]
    patience: float
    gave_up: Callable[[], None]
    own_ports: Collection[int] = ()

    def __post_init__(self) -> None:
        self._relay = Relay(self.patience)

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answers one request, for the host that it names."""
        try:
            session = self._session(request.headers.get("Proxy-Authorization", ""))
            target = read_target(request.method, request.raw_path)
            intercepts = self.options.hosts.has(target.host, target.port)
            if not intercepts:
                await self._check_passage(target)
            if target.tunnels and intercepts:
                return await self._intercept(request, target, session)
            if target.tunnels:
                return await self._tunnel(request, target)
        except RequestError as error:
            return _refusal(error)
        if intercepts:
            lead(request, target.origin(), session)
            return await self.answer(request)
        return await self._relay.answer(request, target.origin())

    async def close(self) -> None:
        """Ends the connections to other hosts."""
        await self._relay.close()

    def _session(self, credentials: str) -> str:
        """The session that a client names.

        Raises:
            RequestError: it does not name the password of the proxy.
        """
        session, sent = read_credentials(credentials)
        password = self.options.password
        if password and not compare_digest(sent.encode(), password.encode()):
            raise RequestError(
                "This proxy needs its password, such as http://default:PASSWORD@HOST:PORT; it is "
                "in MOCKLLM_PROXY_PASSWORD where mockllm was started.",
                status=407,
            )
        return session

    async def _check_passage(self, target: ProxyTarget) -> None:
        """Checks that a host which is not intercepted may be reached.

        Raises:
            RequestError: it may not.
        """
        host = target.host
        if not self.tunnels:
            message = (
                f"mockllm does not reach {host}: no service that it plays has this name. Name it "
                f"(--intercept {host}), or let other hosts pass (--tunnel)."
            )
            self.notice(message)
            raise RequestError(message, status=403)
        if target.port in self.own_ports and await _leads_here(host, target.port):
            raise RequestError(
                f"{host}:{target.port} is mockllm itself. Ask it without the proxy: name it in "
                "NO_PROXY.",
                status=403,
            )

    # Intercepted

    async def _intercept(
        self, request: web.BaseRequest, target: ProxyTarget, session: str
    ) -> web.StreamResponse:
        """Lets the server answer what comes through a tunnel, where the client's TLS ends.

        Raises:
            RequestError: TLS began too early.
        """
        early = bytes_behind(request)
        # At port 80 it is a WebSocket without TLS, of a client with WS_PROXY.
        is_plain = target.port == PORTS["http"] or bool(early and not early.startswith(BEGIN))
        if early and not is_plain:  # asyncio takes no bytes of a handshake that were read before
            raise RequestError("TLS may begin only after the answer to CONNECT.")
        context = self.authority.context(target.host)
        transport, early = take_over(request)
        transport.pause_reading()
        transport.write(_ESTABLISHED)
        ended = asyncio.Event()
        try:
            if not is_plain:
                async with asyncio.timeout(self.patience):
                    is_plain = not await begins_tls(transport)
            scheme: Literal["http", "https"] = "http" if is_plain else "https"
            serve = partial(
                intercepted_connection, self.server, target.origin(scheme), session, ended.set
            )
            if is_plain:
                hand_over(transport, serve(), early)
                transport.resume_reading()
            else:
                await secure(transport, context, serve, self.patience)
            await ended.wait()
        except (TimeoutError, ConnectionAbortedError):  # the latter of a handshake that stops
            self.gave_up()
        except OSError as error:
            self.notice(distrust(target.host, error))
        finally:
            transport.abort()
        return CLOSE

    # Others

    async def _tunnel(self, request: web.BaseRequest, target: ProxyTarget) -> web.StreamResponse:
        """Passes bytes between a client and a server until both connections are over.

        Raises:
            RequestError: the server cannot be reached.
        """
        far = Held()
        try:
            async with asyncio.timeout(_CONNECTING):
                other, _ = await asyncio.get_running_loop().create_connection(
                    lambda: far, target.host, target.port
                )
        except (OSError, TimeoutError) as error:
            why = str(error) or "it does not answer"
            message = f"{target.host}:{target.port} cannot be reached: {why}"
            self.notice(message)
            raise RequestError(f"{message}.", status=502) from None
        try:
            near, early = take_over(request)
        except ConnectionResetError:
            other.abort()
            raise
        near.write(_ESTABLISHED)
        pipes = join(near, other)
        hand_over(near, pipes[0], early)
        far.go_on(other, pipes[1])
        await until_lost(*pipes)
        return CLOSE


def check_reach(host: str, password: str) -> None:
    """Checks that only this machine uses a proxy that has no password.

    Args:
        host: that it listens on.

    Raises:
        UsageError: others could.
    """
    if not password and not (host and is_this_machine(host) and host not in ALL_ADDRESSES):
        raise UsageError(
            f"the proxy would pass on what anybody on the network sends to {host or '*'}: set "
            "MOCKLLM_PROXY_PASSWORD to a password that its clients name, or listen on 127.0.0.1"
        )


def _refusal(error: RequestError) -> web.Response:
    response = web.Response(status=error.status, text=f"{error.message}\n")
    if error.status == 407:  # RFC 9110, section 11.7.1
        response.headers["Proxy-Authenticate"] = 'Basic realm="mockllm"'
    response.force_close()
    return response


async def _leads_here(host: str, port: int) -> bool:
    """Whether a host is this machine, by whichever name."""
    if is_this_machine(host):
        return True
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError:
        return False
    addresses = {str(address[0]) for *_, address in found}
    return any(map(is_this_machine, addresses)) or not addresses.isdisjoint(own_addresses())
