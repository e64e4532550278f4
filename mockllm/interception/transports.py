"""Redirects the HTTP libraries of this process: httpx, urllib3 (so requests and botocore, too),
aiohttp and `http.client`.

A request to a host that is intercepted goes to mockllm's server instead, in plain text, with its
origin and its session in headers. The library's caller sees the URL that it asked for. Clients that
were made before are redirected as well: the classes of the libraries are changed, and changed back.
"""

from __future__ import annotations

import asyncio
import http.client
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from importlib import import_module
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from mockllm.core.record import record
from mockllm.interception.headers import ORIGIN_HEADER, SESSION_HEADER
from mockllm.interception.hosts import PORTS, Hosts, netloc

_CARRIERS = {"ws": "http", "wss": "https"}
"""What a WebSocket begins as (RFC 6455, section 3)."""


@record
class Redirect:
    """Where requests go instead.

    Args:
        host, port: of mockllm's server.
        session: that they belong to.
        hosts: that they are for.
        key: of the server (`InterceptOptions.key`), by which it takes the origins that are named.
        spares: whether a connector of aiohttp is the server's own, on its way to the services.
    """

    host: str
    port: int
    session: str
    hosts: Hosts
    key: str
    spares: Callable[[Any], bool]

    def headers(self, scheme: str, host: str, port: int | None) -> dict[str, str] | None:
        """What a request to an origin has besides its own headers; None if it is not redirected."""
        scheme = _CARRIERS.get(scheme, scheme)
        if not self.hosts.has(host, port or PORTS[scheme]):
            return None
        place = netloc(scheme, host, port)
        return {
            "host": place,
            ORIGIN_HEADER: f"{self.key} {scheme}://{place}",
            SESSION_HEADER: self.session,
        }


@contextmanager
def redirected(
    server_url: str,
    session: str,
    hosts: Hosts,
    key: str,
    spares: Callable[[Any], bool] = lambda connector: False,
) -> Iterator[None]:
    """Redirects the requests of this process while the `with` block lasts.

    Args:
        server_url: of mockllm's server, without a path.
        key, spares: as `Redirect` has it; needed where the server is in this process, and records.
    """
    parts = urlsplit(server_url)
    to = Redirect(parts.hostname or "", parts.port or 80, session, hosts, key, spares)
    with ExitStack() as stack:
        _redirect_http_client(stack, to)
        for name, change in _LIBRARIES.items():
            if find_spec(name) is not None:
                change(stack, import_module(name), to)
        yield


_Method = Callable[..., Any]


def _replace(stack: ExitStack, owner: type, name: str, changed: _Method) -> None:
    """Replaces a method until the stack ends.

    Args:
        changed: what is called in its place, with the method before its arguments.
    """
    original = getattr(owner, name)

    @wraps(original)
    def replaced(self: Any, *args: Any, **options: Any) -> Any:
        return changed(original, self, *args, **options)

    setattr(owner, name, replaced)
    stack.callback(setattr, owner, name, original)


# http.client: urllib.request, and others


def _redirect_http_client(stack: ExitStack, to: Redirect) -> None:
    def headers_of(connection: http.client.HTTPConnection) -> dict[str, str] | None:
        scheme = "https" if isinstance(connection, http.client.HTTPSConnection) else "http"
        # Behind a proxy of the environment, the host is that of its tunnel.
        tunnel = (
            getattr(connection, "_tunnel_host", None),
            getattr(connection, "_tunnel_port", None),
        )
        host, port = tunnel if tunnel[0] else (connection.host, connection.port)
        return to.headers(scheme, str(host), port)

    def connect(original: _Method, self: http.client.HTTPConnection) -> None:
        if headers_of(self) is None:
            original(self)
        else:
            self.sock = socket.create_connection((to.host, to.port), self.timeout)

    def endheaders(original: _Method, self: Any, *args: Any, **more: Any) -> None:
        for name, value in (headers_of(self) or {}).items():
            if name != "host":  # the library has written it
                self.putheader(name, value)
        original(self, *args, **more)

    _replace(stack, http.client.HTTPSConnection, "connect", connect)
    _replace(stack, http.client.HTTPConnection, "connect", connect)
    _replace(stack, http.client.HTTPConnection, "endheaders", endheaders)


# urllib3: requests, botocore


def _redirect_urllib3(stack: ExitStack, urllib3: Any, to: Redirect) -> None:
    direct = urllib3.HTTPConnectionPool(to.host, to.port, maxsize=64)
    stack.callback(direct.close)

    def led(pool: Any, url: str) -> dict[str, str] | None:
        if "://" not in url:  # of a pool behind a proxy, it is absolute
            return to.headers(pool.scheme, pool.host.strip("[]"), pool.port)
        parts = urlsplit(url)
        return to.headers(parts.scheme, parts.hostname or "", parts.port)

    def urlopen(
        original: _Method,
        self: Any,
        method: str,
        url: str,
        body: Any = None,
        *args: Any,
        **more: Any,
    ) -> Any:
        own = None if self is direct else led(self, url)
        if own is None:
            return original(self, method, url, body, *args, **more)
        if args:
            more["headers"], args = args[0], args[1:]
        given = dict(more.pop("headers", None) or self.headers)
        if any(str(name).lower() == "host" for name in given):
            del own["host"]
        more["assert_same_host"] = False
        target = urlsplit(url)._replace(scheme="", netloc="").geturl() or "/"
        return original(direct, method, target, body, {**given, **own}, *args, **more)

    _replace(stack, urllib3.HTTPConnectionPool, "urlopen", urlopen)


# httpx


def _to_server(httpx: Any, to: Redirect, request: Any) -> Any:
    """A request of httpx as it goes to the server; None if it is not redirected."""
    url = request.url
    own = to.headers(url.scheme, url.host, url.port)
    if own is None:
        return None
    del own["host"]  # the client has written it
    headers = [*request.headers.raw, *((k.encode(), v.encode()) for k, v in own.items())]
    return httpx.Request(
        request.method,
        url.copy_with(scheme="http", host=to.host, port=to.port),
        headers=headers,
        stream=request.stream,
        extensions=request.extensions,
    )


def _redirect_httpx(stack: ExitStack, httpx: Any, to: Redirect) -> None:
    # A transport may be one of a proxy; the direct one beside it is closed with it. It speaks no
    # TLS: to read the usual roots would take each client 25 ms.
    nobody = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    direct: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()

    @stack.callback
    def close_those_of_open_clients() -> None:
        for transport in direct.values():
            if isinstance(transport, httpx.HTTPTransport):
                transport.close()

    def beside(transport: Any, kind: type) -> Any:
        if transport not in direct:
            direct[transport] = kind(verify=nobody, trust_env=False)
        return direct[transport]

    def handle(original: _Method, self: Any, request: Any) -> Any:
        other = _to_server(httpx, to, request)
        if other is None:
            return original(self, request)
        return original(beside(self, httpx.HTTPTransport), other)

    async def handle_async(original: _Method, self: Any, request: Any) -> Any:
        other = _to_server(httpx, to, request)
        if other is None:
            return await original(self, request)
        return await original(beside(self, httpx.AsyncHTTPTransport), other)

    def close(original: _Method, self: Any, *args: Any) -> None:
        original(self, *args)
        if self in direct:
            direct.pop(self).close()

    async def close_async(original: _Method, self: Any, *args: Any) -> None:
        await original(self, *args)
        if self in direct:
            await direct.pop(self).aclose()

    _replace(stack, httpx.HTTPTransport, "handle_request", handle)
    for name in ("close", "__exit__"):
        _replace(stack, httpx.HTTPTransport, name, close)
    _replace(stack, httpx.AsyncHTTPTransport, "handle_async_request", handle_async)
    for name in ("aclose", "__aexit__"):
        _replace(stack, httpx.AsyncHTTPTransport, name, close_async)


# aiohttp


def _redirect_aiohttp(stack: ExitStack, aiohttp: Any, to: Redirect) -> None:
    def headers_of(connector: Any, request: Any) -> dict[str, str] | None:
        if to.spares(connector):
            return None
        return to.headers(request.url.scheme, request.url.host, request.url.port)

    async def connect(original: _Method, self: Any, request: Any, *args: Any, **more: Any) -> Any:
        own = headers_of(self, request) or {}
        request.headers.update({k: v for k, v in own.items() if k != "host"})
        return await original(self, request, *args, **more)

    async def create(original: _Method, self: Any, request: Any, *args: Any, **more: Any) -> Any:
        if headers_of(self, request) is None:
            return await original(self, request, *args, **more)
        loop = asyncio.get_running_loop()
        _, protocol = await loop.create_connection(self._factory, to.host, to.port)
        return protocol

    _replace(stack, aiohttp.TCPConnector, "connect", connect)
    _replace(stack, aiohttp.TCPConnector, "_create_connection", create)


_LIBRARIES: dict[str, Callable[[ExitStack, Any, Redirect], None]] = {
    "urllib3": _redirect_urllib3,
    "httpx": _redirect_httpx,
    "httpx2": _redirect_httpx,
    "aiohttp": _redirect_aiohttp,
}
