"""The client in front of a gateway: sends a request, and notes what comes and when."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping

import aiohttp

from mockllm.conformance.gateways.reading import HttpReply
from mockllm.core.http import TimedBytes

_BROKEN = (aiohttp.ClientError, ConnectionError, ValueError)
"""What aiohttp raises where an answer breaks off, or is no HTTP."""


async def request_answer(
    http: aiohttp.ClientSession,
    url: str,
    headers: Mapping[str, str],
    body: bytes,
    *,
    deadline: float,
    leaves: bool = False,
) -> HttpReply:
    """Sends a request, and reads its answer as it comes.

    Args:
        deadline: seconds until the answer is to be over.
        leaves: whether the client closes the connection after the first bytes of the body.
    """
    reply = HttpReply(began=time.perf_counter())
    try:
        async with (
            asyncio.timeout(deadline),
            http.post(url, data=body, headers=headers) as response,
        ):
            await _receive(reply, response, leaves=leaves)
    except TimeoutError:
        reply.transfer, reply.problem = "late", f"no end within {deadline:g} s"
    except _BROKEN as error:
        reply.transfer, reply.problem = "broken", f"{type(error).__name__}: {error}"
    return reply


async def _receive(reply: HttpReply, response: aiohttp.ClientResponse, *, leaves: bool) -> None:
    """Notes what comes; what came stays where it raises."""
    reply.status = response.status
    reply.headers = tuple((name.lower(), value) for name, value in response.headers.items())
    async for data in response.content.iter_any():
        at = round((time.perf_counter() - reply.began) * 1_000_000)
        reply.chunks.append(TimedBytes(at, data))
        if leaves:
            reply.left, reply.transfer = time.perf_counter(), "left"
            response.close()
            return
