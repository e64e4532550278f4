"""Reads the bodies of requests, and gives up where nothing more of one arrives."""

from __future__ import annotations

import asyncio

from aiohttp import web

from mockllm.errors import RequestError

__all__ = ["read_body", "read_part", "silent"]


def silent(what: str, patience: float) -> RequestError:
    """The error for a request of which nothing more arrives.

    Args:
        what: `head` or `body`.
        patience: the seconds for which nothing arrived.
    """
    return RequestError(
        f"The {what} of the request did not arrive whole: nothing more came for {patience:g} s. "
        "Send all of it, with the length that it announces.",
        status=408,
        code="request_timeout",
    )


async def read_body(request: web.BaseRequest, most: int, patience: float) -> bytes:
    """The whole body of a request.

    Args:
        most: its bytes at most; of a larger one more than that may be returned, but not all.
        patience: for how long nothing may arrive, in seconds.

    Raises:
        web.HTTPRequestEntityTooLarge: it is larger.
        RequestError: nothing arrived for too long.
    """
    if request.content.is_eof():  # it came with the head, as most do
        return await request.read()
    body = bytearray()
    while len(body) <= most and (part := await read_part(request, patience)):
        body += part
    return bytes(body)


async def read_part(request: web.BaseRequest, patience: float) -> bytes:
    """What arrives next of a body; b"" at its end.

    Raises:
        RequestError: nothing arrived for too long.
    """
    content = request.content
    try:
        async with asyncio.timeout(patience):
            return await content.readany()
    except TimeoutError:
        raise silent("body", patience) from None
