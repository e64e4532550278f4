"""Reads the bodies of requests, and gives up where nothing more of one arrives."""

from __future__ import annotations

import asyncio

from aiohttp import web

from mockllm.errors import RequestError
from mockllm.server.http.aiohttp_internals import UNREADABLE

_UNREADABLE = "unreadable_body"


def silent(what: str, patience: float) -> RequestError:
    """The error for a request of which nothing more arrives."""
    return RequestError(
        f"The {what} of the request did not arrive whole: nothing more came for {patience:g} s. "
        "Send all of it, with the length that it announces.",
        status=408,
        code="request_timeout",
    )


def is_malformed(error: BaseException) -> bool:
    """Whether an error says that bytes are no HTTP request."""
    return isinstance(error, UNREADABLE)


def brief(error: BaseException) -> str:
    """What is wrong with the bytes of a request, without quoting them: they may be secret."""
    if type(error).__name__ == "InvalidURLError":  # whose message is the URL
        return "its target is no URL"
    text = str(getattr(error, "message", "") or error).rpartition("message:")[2].strip()
    text = text.partition("\n")[0]
    return text.partition(": b")[0].partition(":\n")[0].strip().rstrip(".:") or type(error).__name__


def closes(error: RequestError) -> bool:
    """Whether the connection of a refused request must be closed: more of its body may come."""
    return error.status in (408, 413) or error.code == _UNREADABLE


def arrived(request: web.BaseRequest, most: int) -> bytes | None:
    """The whole body of a request, if it came with the head, as most do; else None."""
    content = request.content
    if not content.is_eof() or content.exception() is not None or content.total_bytes > most:
        return None
    return content.read_nowait()


async def read_body(request: web.BaseRequest, most: int, patience: float) -> bytes:
    """The whole body of a request.

    Raises:
        web.HTTPRequestEntityTooLarge: it is larger.
        RequestError: nothing arrived for too long, or what arrived cannot be decoded.
    """
    if request.content.is_eof() and request.content.exception() is None:
        return request.content.read_nowait()  # it came with the head, as most do
    body = bytearray()
    while len(body) <= most and (part := await read_part(request, patience)):
        body += part
    return bytes(body)


async def read_part(request: web.BaseRequest, patience: float) -> bytes:
    """What arrives next of a body; b"" at its end.

    Raises:
        RequestError: nothing arrived for too long, or what arrived cannot be decoded.
    """
    content = request.content
    try:
        async with asyncio.timeout(patience):
            return await content.readany()
    except TimeoutError:
        raise silent("body", patience) from None
    except UNREADABLE as error:
        coding = request.headers.get("content-encoding", "")
        hint = f" (its content-encoding is {coding})" if coding else ""
        raise RequestError(
            f"The body of the request cannot be read{hint}: {brief(error)}.",
            status=400,
            code=_UNREADABLE,
        ) from None
