"""The client in front of a gateway: sends a request, and notes what comes and when."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping

import aiohttp

from mockllm.core.http import TimedBytes
from mockllm.gateway.reading import HttpReply, Transfer

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
    reply = _Reply(time.perf_counter())
    try:
        async with asyncio.timeout(deadline):
            await reply.receive(http, url, headers, body, leaves=leaves)
    except TimeoutError:
        return reply.ended("late", f"no end within {deadline:g} s")
    except _BROKEN as error:
        return reply.ended("broken", f"{type(error).__name__}: {error}")
    return reply.ended("left" if reply.left else "whole")


class _Reply:
    """An answer that arrives."""

    def __init__(self, began: float) -> None:
        self.began = began
        self.left = 0.0
        self._status = 0
        self._headers: tuple[tuple[str, str], ...] = ()
        self._chunks: list[TimedBytes] = []

    async def receive(
        self,
        http: aiohttp.ClientSession,
        url: str,
        headers: Mapping[str, str],
        body: bytes,
        *,
        leaves: bool,
    ) -> None:
        """Sends the request, and notes what comes; what came stays where it raises."""
        async with http.post(url, data=body, headers=headers) as response:
            self._status = response.status
            self._headers = tuple((name.lower(), value) for name, value in response.headers.items())
            async for data in response.content.iter_any():
                at = round((time.perf_counter() - self.began) * 1_000_000)
                self._chunks.append(TimedBytes(at, data))
                if leaves:
                    self.left = time.perf_counter()
                    response.close()
                    return

    def ended(self, transfer: Transfer, problem: str = "") -> HttpReply:
        return HttpReply(
            self._status,
            self._headers,
            tuple(self._chunks),
            transfer,
            self.began,
            self.left,
            problem,
        )
