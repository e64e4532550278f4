"""Writes bodies that are made while they are sent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from time import perf_counter

from aiohttp import HttpVersion10, web

from mockllm.replay.compilation.http_answer import HttpAnswer, bytes_answer, chunk
from mockllm.replay.sessions.exchange import Sent
from mockllm.server.http.delivery import CLOSE, KEEP_ALIVE
from mockllm.server.http.sending import send

_WRITE = 32 * 1024
"""Smaller parts are joined up to this size, in bytes."""


async def deliver_parts(
    request: web.BaseRequest,
    headers: Mapping[str, str],
    parts: AsyncIterator[bytes],
    sent: Sent,
) -> web.StreamResponse:
    """Sends a JSON body in HTTP chunks. It waits while the client reads slowly, and lets other
    requests go on after each part.

    Args:
        headers: of the answer, besides its type and its framing.
        parts: of the body; where making one fails, the connection ends without the last chunk.
        sent: its `bytes` are 0 as long as nothing was sent at all.
    """
    http_1_0 = request.version <= HttpVersion10
    close = http_1_0 or not request.keep_alive
    fields = {"content-type": "application/json", **headers}
    head: HttpAnswer = bytes_answer(200, fields.items(), (), streamed=True)
    begin = head.head(http_1_0=http_1_0, close=close)  # is sent with the first part

    async def write(data: bytes) -> None:
        nonlocal begin
        written, begin = begin, b""
        sent.wrote(len(data), perf_counter())
        await send(request, written + (data if http_1_0 else chunk(data)), sent)

    pending = bytearray()
    async for part in parts:
        pending += part
        if len(pending) >= _WRITE:
            data = bytes(pending)
            pending.clear()
            await write(data)
        await asyncio.sleep(0)
    if pending:
        await write(bytes(pending))
    if not http_1_0:
        await send(request, head.last_chunk, sent)
    return CLOSE if close else KEEP_ALIVE
