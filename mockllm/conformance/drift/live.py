"""Sends recorded requests to the live services again; nothing is written."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from contextlib import aclosing

from mockllm.conformance.drift.destinations import Destination
from mockllm.conformance.drift.selection import LiveRequest, is_of_key, is_passing
from mockllm.core.errors import MockLLMError, UpstreamError
from mockllm.core.http import TimedBytes, unusual_reason
from mockllm.core.record import record
from mockllm.play.tapes.captured import Captured
from mockllm.play.tapes.recorded_turn import recorded_error
from mockllm.record.redaction.redact import Redactor
from mockllm.serve.server.recording.copying import lower_headers
from mockllm.serve.server.recording.signing import scope_of, signed_again
from mockllm.serve.server.recording.upstream import Upstream, Upstreams
from mockllm.wire.protocols.base import WireProtocol

_TOGETHER = 4
_PATIENCE = 300.0
"""Seconds for a whole answer: models that reason take minutes."""


@record
class LiveAnswer:
    """The answer to a request; without `exchange`, why there is none that can be compared."""

    request: LiveRequest
    exchange: Captured | None
    failure: str = ""


async def send_all(
    requests: Iterable[tuple[LiveRequest, Destination]],
    *,
    trust_env: bool,
    answered: Callable[[LiveAnswer], None],
) -> list[LiveAnswer]:
    """The answers, in the order of the requests.

    Args:
        trust_env: use the proxies that the environment names.
        answered: called for each as it comes.
    """
    together = asyncio.Semaphore(_TOGETHER)

    async def one(upstreams: Upstreams, request: LiveRequest, place: Destination) -> LiveAnswer:
        async with together:
            answer = await _answer(upstreams, request, place)
        answered(answer)
        return answer

    async with aclosing(Upstreams(trust_env=trust_env)) as upstreams:
        return await asyncio.gather(*(one(upstreams, *pair) for pair in requests))


async def _answer(upstreams: Upstreams, request: LiveRequest, place: Destination) -> LiveAnswer:
    try:
        async with asyncio.timeout(_PATIENCE):
            exchange = await _exchange(upstreams, request, place)
    except TimeoutError:
        return LiveAnswer(request, None, f"no whole answer came in {_PATIENCE:g} seconds")
    except UpstreamError as error:
        return LiveAnswer(request, None, f"the service does not answer: {error}")
    status, before = exchange.status, request.before.status
    if status == before or not (is_passing(status) or is_of_key(status) or 300 <= status < 400):
        return LiveAnswer(request, exchange)
    return LiveAnswer(
        request, None, f"HTTP {status}: {error_message(exchange, request.group.protocol)}"
    )


def error_message(exchange: Captured, protocol: WireProtocol | None) -> str:
    """The message of an error, on one line."""
    try:
        plain = exchange.plain()
        error = recorded_error(plain, protocol).error if protocol is not None else None
    except MockLLMError:
        return "its body cannot be read"
    text = plain.body.decode("utf-8", "replace") if error is None else error.message or ""
    return Redactor().text(" ".join(text.split()))[:200] or "without a message"


async def _exchange(upstreams: Upstreams, request: LiveRequest, place: Destination) -> Captured:
    sent = request.recording.tape.exchange
    at = time.time()
    headers = tuple((name.encode(), value.encode()) for name, value in place.headers)
    scope = scope_of(place.url)
    body = sent.request_body or None
    if scope is not None:
        headers = await signed_again(scope, sent.method, place.url, headers, body)
    upstream = await upstreams.send(sent.method, place.url, headers, body)
    try:
        chunks = await _chunks(upstream)
    finally:
        upstream.close()
    status = upstream.response.status
    return Captured(
        method=sent.method,
        url=place.url,
        request_headers=place.headers,
        request_body=sent.request_body,
        status=status,
        headers=tuple(lower_headers(upstream.headers)),
        chunks=chunks,
        at=at,
        source=request.recording.name,
        reason=unusual_reason(status, upstream.reason),
        trailers=tuple(lower_headers(upstream.trailers)),
    )


async def _chunks(upstream: Upstream) -> tuple[TimedBytes, ...]:
    clock = asyncio.get_running_loop().time

    def since_sent() -> int:
        return max(0, round((clock() - upstream.sent) * 1_000_000))

    return tuple([TimedBytes(since_sent(), data) async for data in upstream.chunks()])
