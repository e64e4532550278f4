"""A gateway that hands on everything as it comes:
`python -m tests.conformance.gateways passing`."""

from __future__ import annotations

from collections.abc import AsyncIterator

import aiohttp
from aiohttp import web
from yarl import URL

OF_CONNECTION = {"connection", "content-length", "host", "keep-alive", "transfer-encoding"}
"""The headers that each connection has of its own."""


def application(upstream: str) -> web.Application:
    """The gateway.

    Args:
        upstream: a URL of the upstream; its path is that of the client's request.
    """
    app = web.Application(client_max_size=2**26)
    app.cleanup_ctx.append(connected)
    app[ORIGIN] = URL(upstream).origin()
    app.router.add_route("*", "/{path:.*}", _answer)
    return app


HTTP = web.AppKey("HTTP", aiohttp.ClientSession)
ORIGIN = web.AppKey("ORIGIN", URL)


async def connected(app: web.Application) -> AsyncIterator[None]:
    timeout = aiohttp.ClientTimeout(total=None)
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(
        connector=connector, timeout=timeout, auto_decompress=False
    ) as app[HTTP]:
        yield


async def _answer(request: web.Request) -> web.StreamResponse:
    """Sends a request on, and hands on what comes. A client that leaves cancels this, which ends
    the request upstream."""
    answer = web.StreamResponse()
    try:
        body = await request.read()
        url = request.app[ORIGIN].join(request.rel_url)
        async with request.app[HTTP].request(
            request.method, url, headers=_kept(request.headers), data=body or None
        ) as got:
            answer.set_status(got.status, got.reason)
            answer.headers.extend(_kept(got.headers))
            await answer.prepare(request)
            async for data in got.content.iter_any():
                await answer.write(data)
    except (aiohttp.ClientError, ConnectionError):
        # What breaks off upstream breaks off here.
        if request.transport is not None:
            request.transport.abort()
    return answer


def _kept(headers: aiohttp.typedefs.LooseHeaders) -> list[tuple[str, str]]:
    """The headers that are handed on."""
    return [(name, text) for name, text in headers.items() if name.lower() not in OF_CONNECTION]
