"""A gateway between two equal APIs that reads each event and writes it again, unchanged:
`python -m tests.conformance.gateways editing`.

It imports nothing of mockllm. Bugs are planted in its four functions, which change nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import aiohttp
from aiohttp import web
from yarl import URL

from tests.conformance.gateways.passing import HTTP, OF_CONNECTION, ORIGIN, connected
from tests.conformance.gateways.translating import Lines

Json = dict[str, Any]
State = dict[str, Any]


def application(upstream: str) -> web.Application:
    """The gateway.

    Args:
        upstream: a URL of the upstream; its path is that of the client's request.
    """
    app = web.Application(client_max_size=2**26)
    app.cleanup_ctx.append(connected)
    app[ORIGIN] = URL(upstream).origin()
    app.router.add_post("/{path:.*}", _answer)
    return app


def changed_request(request: Json) -> Json:
    """The request that is sent on."""
    return request


def changed_event(event: Json, state: State) -> Iterator[Json]:
    """The events in place of one of a stream; `state` lasts as long as that."""
    yield event


def changed_body(body: Json) -> Json:
    """The answer that is not streamed."""
    return body


def changed_status(status: int) -> int:
    """The status of an answer."""
    return status


async def _answer(request: web.Request) -> web.StreamResponse:
    answer = web.StreamResponse()
    sent = changed_request(json.loads(await request.read()))
    try:
        async with request.app[HTTP].post(
            request.app[ORIGIN].join(request.rel_url), headers=kept(request.headers), json=sent
        ) as got:
            answer.set_status(changed_status(got.status), got.reason)
            answer.headers.extend(kept(got.headers))
            if "event-stream" not in got.headers.get("content-type", ""):
                data = await got.read()
                body = json.loads(data)
                return web.json_response(
                    changed_body(body), status=answer.status, headers=dict(_others(got.headers))
                )
            await answer.prepare(request)
            lines, state = Lines(), State()
            async for data in got.content.iter_any():
                for text in lines.feed(data):
                    for written in _written(text, state):
                        await answer.write(written)
    except (aiohttp.ClientError, ConnectionError):
        # What breaks off upstream breaks off here.
        if request.transport is not None:
            request.transport.abort()
    return answer


def _written(text: str, state: State) -> Iterator[bytes]:
    """The bytes of an event; those of an end marker as they are."""
    if not text.startswith("{"):
        yield f"data: {text}\n\n".encode()
        return
    for event in changed_event(json.loads(text), state):
        yield frame(event)


def frame(event: Json) -> bytes:
    """An event as bytes; a type is its name, too."""
    name = f"event: {event['type']}\n" if "type" in event else ""
    return f"{name}data: {json.dumps(event)}\n\n".encode()


def kept(headers: Any) -> list[tuple[str, str]]:
    """The headers that are handed on."""
    return [(name, text) for name, text in headers.items() if name.lower() not in OF_CONNECTION]


def _others(headers: Any) -> list[tuple[str, str]]:
    return [(name, text) for name, text in kept(headers) if name.lower() != "content-type"]
