"""A gateway between any two APIs, made of mockllm's own codecs. It hands on an answer once it is
whole, so cases about time and cuts say nothing about it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import aiohttp
from aiohttp import web
from yarl import URL

from mockllm.core.errors import RequestError
from mockllm.core.http import TimedBytes
from mockllm.core.timeline import expand
from mockllm.core.turn import Opaque, TokenUsage, ToolCall, Turn
from mockllm.play.replay.client_requests import client_target
from mockllm.play.tapes.captured import Captured
from mockllm.play.tapes.recorded_turn import recorded_error, recorded_turn
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.base import Reply, WireProtocol

HTTP = web.AppKey("HTTP", aiohttp.ClientSession)
MODEL = "mock-model"


def application(upstream: str, down: str, up: str) -> web.Application:
    """The gateway."""
    app = web.Application(client_max_size=2**26)
    app.cleanup_ctx.append(_connected)
    between = _Between(URL(upstream).origin(), PROTOCOLS[down], PROTOCOLS[up])
    app.router.add_route("*", "/{path:.*}", between.answer)
    return app


async def _connected(app: web.Application) -> Any:
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(timeout=timeout) as app[HTTP]:
        yield


class _Between:
    def __init__(self, upstream: URL, down: WireProtocol, up: WireProtocol) -> None:
        self._upstream, self._down, self._up = upstream, down, up

    async def answer(self, request: web.Request) -> web.Response:
        down, up = self._down, self._up
        body = json.loads(await request.read())
        client = down.client
        sent = down.parse(body, client_target(down, "model"), False)
        stream = sent.stream
        if client.body_path:
            stream = request.path == URL(client.path_of(MODEL)).path
        sent = replace(sent, stream=stream, model="model")
        written = up.client.write(sent, down.client.parameters(body))
        for name, feature in down.client.features.items():
            other, value = up.client.features.get(name), feature.find(body)
            if other is None or value is None:
                continue
            if name == "signatures" or feature.origin == other.origin:
                written = other.put(written, value)
        if up.client.stream_field and not stream:
            written[up.client.stream_field] = False
        if stream:
            written |= up.client.usage
        known = up.client.further_headers
        further = {name: request.headers[name] for name in known if name in request.headers}
        path = up.client.path_of("model", stream=stream)
        async with request.app[HTTP].post(
            self._upstream.join(URL(path)), json=written, headers={**up.client.headers, **further}
        ) as got:
            try:
                data, broken = await got.read(), False
            except aiohttp.ClientError:
                data, broken = b"", True
            headers = tuple((name.lower(), text) for name, text in got.headers.items())
        plain = Captured("POST", "", (), b"", got.status, headers, (TimedBytes(0, data),))
        if got.status >= 400:
            http = recorded_error(plain, up)
            wait = None if http.retry_after is None else http.retry_after / 1e6
            return self._error(got.status, (http.error and http.error.message) or "", wait)
        recorded = recorded_turn(plain, up, streamed=stream)
        turn = recorded.turn
        if turn.error is not None:
            return self._error(502, turn.error.message)
        if broken or turn.finish is None:
            return self._error(502, "it broke off")
        return self._write(turn, sent, stream)

    def _error(self, status: int, message: str, wait: float | None = None) -> web.Response:
        error = RequestError(message, status=status, retry_after=wait)
        headers = self._down.error_headers("seed", error)
        headers = {name: text for name, text in headers.items() if name != "content-type"}
        return web.json_response(self._down.error_body(error), status=status, headers=headers)

    def _write(self, turn: Turn, sent: Any, stream: bool) -> web.Response:
        down = self._down
        options = down.options(sent)
        parts = [part for part in turn.parts if not isinstance(part, Opaque)]
        for number, part in enumerate(parts):
            if isinstance(part, ToolCall) and not part.id:
                parts[number] = replace(part, id=f"call_{number}")
        turn = replace(turn, parts=tuple(parts), order=(), gaps=())
        usage = turn.usage or TokenUsage(0, 0)
        reply = Reply("seed", "0" * 40, "model", options, usage)
        if not stream:
            return web.json_response(down.encode_body(turn, reply))
        encoder = down.encoder(turn, reply)
        frames = [frame for item in expand(turn) for frame in encoder.encode(item.event)]
        carrier = down.carrier(options)
        data = b"".join(carrier.encode(frame, down.line_end) for frame in frames)
        return web.Response(body=data, headers={"content-type": carrier.content_type})
