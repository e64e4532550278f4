"""Redirected requests of the HTTP libraries of this process: httpx, urllib3 (so requests and
botocore, too), aiohttp, `http.client`, and websockets.

A request to a host that is intercepted goes to mockllm's server instead, in plain text, with its
origin and its session in headers. The library's caller sees the URL that it asked for. `patches`
calls these functions in place of the library's methods, also of clients that were made before: each
gets the method, where the request goes (None: its own way), and the arguments of the method.

No connection to the server is kept for another request: the next one of the same client may belong
to another test, run in another event loop, or go to the service.
"""

from __future__ import annotations

import asyncio
import http.client
import socket
import ssl
import sys
from collections.abc import Callable
from inspect import iscoroutinefunction
from types import MethodType
from typing import Any
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from mockllm.core.http import PORTS, netloc
from mockllm.serve.interception.libraries import LED, OWN_METHODS
from mockllm.serve.interception.redirect import Redirect

_Method = Callable[..., Any]


# http.client: urllib.request, and others


def _headers_of_connection(
    to: Redirect | None, connection: http.client.HTTPConnection
) -> dict[str, str] | None:
    scheme = "https" if connection.default_port == PORTS["https"] else "http"
    # Behind a proxy of the environment, the host is that of its tunnel.
    tunnel = (getattr(connection, "_tunnel_host", None), getattr(connection, "_tunnel_port", None))
    host, port = tunnel if tunnel[0] else (connection.host, connection.port)
    return None if to is None else to.headers(scheme, str(host), port)


def http_client_connect(
    original: _Method, to: Redirect | None, self: http.client.HTTPConnection
) -> None:
    """Connects to the server, where the next request is redirected."""
    vars(self).pop(LED, None)
    if to is None or _headers_of_connection(to, self) is None:
        original(self)
    else:
        self.sock = socket.create_connection((to.host, to.port), self.timeout)
        setattr(self, LED, True)


def http_client_end_headers(
    original: _Method, to: Redirect | None, self: Any, *args: Any, **more: Any
) -> None:
    """Sends the head of a request; with its session, where it is redirected."""
    connects_here = type(self).connect.__module__ == http.client.__name__  # not that of urllib3
    own = _headers_of_connection(to, self) if connects_here else None
    if self.sock is not None and (own is not None) != hasattr(self, LED):
        self.sock.close()  # of another test, or to the service: it is connected anew
        self.sock = None
    for name, value in (own or {}).items():
        if name != "host":  # the library has written it
            self.putheader(name, value)
    original(self, *args, **more)


# urllib3: requests, botocore


def urllib3_open(
    original: _Method,
    to: Redirect | None,
    self: Any,
    method: str,
    url: str,
    body: Any = None,
    *args: Any,
    **more: Any,
) -> Any:
    """Sends a request, and again where the answer says so."""
    own = None if to is None or hasattr(self, LED) else _headers_of_pool(to, self, url)
    if to is None or own is None:
        return original(self, method, url, body, *args, **more)
    if args:
        more["headers"], args = args[0], args[1:]
    given = dict(more.pop("headers", None) or self.headers)
    if any(str(name).lower() == "host" for name in given):
        own.pop("host", None)
    more["assert_same_host"] = False
    target = urlsplit(url)._replace(scheme="", netloc="").geturl() or "/"
    # Its connection is closed with it, once the answer is read.
    direct = sys.modules["urllib3"].HTTPConnectionPool(to.host, to.port)
    setattr(direct, LED, True)
    return original(direct, method, target, body, {**given, **own}, *args, **more)


def _headers_of_pool(to: Redirect, pool: Any, url: str) -> dict[str, str] | None:
    if "://" not in url:  # of a pool behind a proxy, it is absolute
        return to.headers(pool.scheme, pool.host.strip("[]"), pool.port)
    parts = urlsplit(url)
    return to.headers(parts.scheme, parts.hostname or "", parts.port)


# httpx


def _to_server(httpx: Any, to: Redirect, request: Any) -> Any:
    """A request of httpx as it goes to the server; None if it is not redirected."""
    url = request.url
    own = to.headers(url.scheme, url.host, url.port)
    if own is None:
        return None
    own.pop("host", None)  # the client has written it
    headers = [*request.headers.raw, *((k.encode(), v.encode()) for k, v in own.items())]
    return httpx.Request(
        request.method,
        url.copy_with(scheme="http", host=to.host, port=to.port),
        headers=headers,
        stream=request.stream,
        extensions=request.extensions,
    )


_NOBODY = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""The transports to the server speak no TLS: to read the usual roots would take each 25 ms."""


def _httpx_of(transport: Any) -> Any:
    """The library that a transport is of: httpx, or httpx2."""
    kinds = type(transport).__mro__
    names = {kind.__module__.partition(".")[0] for kind in kinds} & {"httpx", "httpx2"}
    return sys.modules[names.pop()]


def _beside(transport: Any, kind: str, loop: object) -> Any:
    """The transport to the server beside one of a client, which may be one of a proxy: one for each
    event loop that the client is used in. It is closed with it."""
    by_loop = vars(transport).setdefault(LED, WeakKeyDictionary())
    if loop not in by_loop:
        httpx = _httpx_of(transport)
        limits = httpx.Limits(max_keepalive_connections=0)
        made = getattr(httpx, kind)(verify=_NOBODY, trust_env=False, limits=limits)
        by_loop[loop] = _without_other_mocks(made)
    return by_loop[loop]


def _without_other_mocks(transport: Any) -> Any:
    """The same transport, with the methods of httpcore that are its own: respx and vcrpy replace
    those of the classes, and do not know where mockllm listens."""
    pool = transport._pool  # noqa: SLF001 - no argument of a transport takes one
    create = pool.create_connection
    pool.create_connection = lambda origin: _with_own_method(create(origin))
    _with_own_method(pool)
    return transport


def _with_own_method(made: Any) -> Any:
    name, method = OWN_METHODS.get(type(made), ("", None))
    if method is not None:
        setattr(made, name, MethodType(method, made))
    return made


class _NoLoop:
    """Stands for the event loop where there is none of asyncio."""


_NO_LOOP = _NoLoop()


def _loop() -> object:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return _NO_LOOP


def httpx_handle(original: _Method, to: Redirect | None, self: Any, request: Any) -> Any:
    """Sends a request of a client that is synchronous."""
    other = None if to is None else _to_server(_httpx_of(self), to, request)
    if other is None:
        return original(self, request)
    return original(_beside(self, "HTTPTransport", _NO_LOOP), other)


async def httpx_handle_async(
    original: _Method, to: Redirect | None, self: Any, request: Any
) -> Any:
    """Sends a request of a client that is asynchronous."""
    other = None if to is None else _to_server(_httpx_of(self), to, request)
    if other is None:
        return await original(self, request)
    return await original(_beside(self, "AsyncHTTPTransport", _loop()), other)


def httpx_close(original: _Method, to: Redirect | None, self: Any, *args: Any) -> None:
    """Closes a transport, and that beside it."""
    original(self, *args)
    for transport in vars(self).pop(LED, {}).values():
        transport.close()


async def httpx_close_async(original: _Method, to: Redirect | None, self: Any, *args: Any) -> None:
    """Closes a transport, and that beside it."""
    await original(self, *args)
    transport = vars(self).get(LED, {}).pop(_loop(), None)
    if transport is not None:
        await transport.aclose()


# aiohttp


def _headers_of_request(to: Redirect | None, request: Any) -> dict[str, str] | None:
    url = request.url
    return None if to is None else to.headers(url.scheme, url.host, url.port)


async def aiohttp_connect(
    original: _Method, to: Redirect | None, self: Any, request: Any, *args: Any, **more: Any
) -> Any:
    """The connection for a request, which has its session then."""
    own = _headers_of_request(to, request)
    if own is None:
        return await original(self, request, *args, **more)
    request.headers.update({k: v for k, v in own.items() if k != "host"})
    connection = await original(self, request, *args, **more)
    connection.protocol.force_close()
    return connection


async def aiohttp_create(
    original: _Method, to: Redirect | None, self: Any, request: Any, *args: Any, **more: Any
) -> Any:
    """A new connection, to the server where the request is redirected."""
    if to is None or _headers_of_request(to, request) is None:
        return await original(self, request, *args, **more)
    loop = asyncio.get_running_loop()
    _, protocol = await loop.create_connection(self._factory, to.host, to.port)
    return protocol


def aiohttp_get(original: _Method, to: Redirect | None, self: Any, key: Any, *args: Any) -> Any:
    """No connection that is kept, where it is to the service. It is a coroutine where the method
    is: in aiohttp 3.11 and newer."""
    scheme = "https" if key.is_ssl else "http"
    if to is None or to.headers(scheme, key.host, key.port) is None:
        return original(self, key, *args)
    return _nothing_async() if iscoroutinefunction(original) else None


async def _nothing_async() -> None:
    """Nothing, for who awaits it."""


# websockets: google-genai, which dials TLS whatever its base URL says


async def websockets_connect(original: _Method, to: Redirect | None, self: Any) -> Any:
    """A connection; to the server it is without TLS."""
    parts = urlsplit(self.uri)
    own = None if to is None else to.headers(parts.scheme, parts.hostname or "", parts.port)
    if to is not None and own is not None:
        self.uri = parts._replace(scheme="ws", netloc=netloc("http", to.host, to.port)).geturl()
        headers = sys.modules["websockets"].Headers(self.additional_headers or {})
        headers.update({name: value for name, value in own.items() if name != "host"})
        self.additional_headers, self.proxy = headers, None
        for name in ("ssl", "server_hostname"):
            self.connection_kwargs.pop(name, None)
    return await original(self)
