"""Requests for servers that mockllm does not intercept, and their answers: both pass unchanged, and
nothing is kept of them. Fields of one connection stay here (RFC 9110, section 7.6.1)."""

from __future__ import annotations

import time

from aiohttp import HttpVersion10, web

from mockllm.core.errors import RequestError, UpstreamError
from mockllm.play.replay.compilation.http_answer import chunk
from mockllm.play.replay.sessions.exchange import Sent
from mockllm.serve.server.http.aiohttp_internals import pass_through
from mockllm.serve.server.http.delivery import CLOSE, KEEP_ALIVE
from mockllm.serve.server.http.request_reading import opens_websocket, origin_form
from mockllm.serve.server.http.sending import end_early, send
from mockllm.serve.server.recording.copying import Upload
from mockllm.serve.server.recording.heads import (
    SWITCHING,
    UPGRADE,
    answer_head,
    body_length,
    last_chunk,
    request_headers,
)
from mockllm.serve.server.recording.upstream import Upstream, Upstreams


class Relay:
    """Passes requests on.

    Args:
        patience: for how long nothing may arrive of a request, in seconds.
    """

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._upstreams: Upstreams | None = None

    async def close(self) -> None:
        """Ends the connections to the servers."""
        if self._upstreams is not None:
            await self._upstreams.aclose()

    async def answer(self, request: web.BaseRequest, origin: str) -> web.StreamResponse:
        """Answers a request with the answer of a server.

        Args:
            origin: of the server, such as `http://example.com`.
        """
        headers = request_headers(request, readable=False)
        if opens_websocket(request.headers):
            headers += UPGRADE
        self._upstreams = self._upstreams or Upstreams()
        url = origin + origin_form(request.raw_path, {})[0]
        upload, body = Upload(request, 0, self._patience), None
        try:
            if not request.content.at_eof():
                body = await upload.begin()
            upstream = await self._upstreams.send(request.method, url, headers, body)
        except (RequestError, UpstreamError) as error:
            return _refusal(upload.failure or error, origin)
        try:
            return await self._pass_back(request, upstream)
        finally:
            upstream.close()

    async def _pass_back(self, request: web.BaseRequest, upstream: Upstream) -> web.StreamResponse:
        sent = Sent(time.perf_counter())
        if upstream.response.status == SWITCHING:
            headers = (*upstream.headers, *UPGRADE)
            await send(request, answer_head(upstream, headers, framed=False, close=False), sent)
            await pass_through(request, upstream.response)
            return CLOSE
        length = body_length(request, upstream)
        framed = length is None and request.version > HttpVersion10
        stays = request.keep_alive and request.version > HttpVersion10
        head = answer_head(upstream, upstream.headers, framed=framed, close=not stays)
        await send(request, head, sent)
        try:
            async for data in upstream.chunks():
                await send(request, chunk(data) if framed else data, sent)
        except UpstreamError as error:
            await end_early(request, error.how or "closed", sent, framed=framed)
            return CLOSE
        if framed:
            await send(request, last_chunk(upstream.trailers), sent)
        return KEEP_ALIVE if stays else CLOSE


def _refusal(error: RequestError | UpstreamError, origin: str) -> web.Response:
    if isinstance(error, RequestError):
        response = web.Response(status=408, text=f"{error.message}\n")
    else:
        response = web.Response(status=502, text=f"{origin} does not answer: {error}.\n")
    response.force_close()
    return response
