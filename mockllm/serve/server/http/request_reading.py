"""A request as it came, before it is known who answers it: session, path and query of its target,
and its body, which may stop to arrive."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Mapping
from copy import copy
from functools import lru_cache
from hmac import compare_digest

from aiohttp import web

from mockllm.core.errors import RequestError
from mockllm.core.http import Target, host_in
from mockllm.core.text import readable_header, shorten
from mockllm.play.replay.sessions.exchange import Received
from mockllm.record.redaction.credentials import masked_headers, masked_url
from mockllm.scenario.durations import read_duration
from mockllm.serve.interception.headers import DEFAULT, ORIGIN_HEADER, SESSION_HEADER
from mockllm.serve.server.http.aiohttp_internals import UNREADABLE, interception_of
from mockllm.wire.protocols.route_matching import parse_query

SESSION_NAME = r"[A-Za-z0-9._-]{1,128}"
_NO_QUERY: Mapping[str, str] = {}
_SESSION_PREFIX = re.compile(rf"/s/({SESSION_NAME})(?=/)")


_FIRST_LINE = re.compile(rb"([A-Za-z]{1,20}) (/[^\s]*)")


def first_line(data: bytes) -> tuple[str, str]:
    """Method and target of a request that is malformed; ("", "/") where they cannot be read."""
    found = _FIRST_LINE.match(data)
    if found is None:
        return "", "/"
    return found[1].decode(), found[2].decode("utf-8", "replace")


# The absolute form of a target (RFC 9112, section 3.2.2).
_ORIGIN = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://(?:[^/?#@]*@)?([^/?#]*)")


def origin_form(target: str, headers: Mapping[str, str]) -> tuple[str, Mapping[str, str]]:
    """A target without its origin, as clients send it that take the server for a proxy
    (`GET http://127.0.0.1/v1/models`), and the headers that belong to it.

    Args:
        headers: of the request, their names in lower case; the host of the target replaces that of
            the header (RFC 9112, section 3.2.2).
    """
    found = None if target.startswith("/") else _ORIGIN.match(target)
    if found is None:
        return target, headers
    rest = target[found.end() :]
    return rest if rest.startswith("/") else f"/{rest}", {**headers, "host": found[1]}


def session_of(target: str, headers: Mapping[str, str], default: str = DEFAULT) -> tuple[str, str]:
    """The session's name, and the target without its prefix."""
    if target.startswith("/s/"):
        match = _SESSION_PREFIX.match(target)
        if match is not None:
            return match[1], target[match.end() :]
    return headers.get(SESSION_HEADER, default), target


def check_session(name: str) -> None:
    """Checks the name of a session that a header has; in a path, others are no sessions.

    Raises:
        RequestError: it is no name.
    """
    if name != DEFAULT and re.fullmatch(SESSION_NAME, name) is None:
        shown = shorten(name, 80)
        raise RequestError(
            f"{SESSION_HEADER}: {shown!r} is no name of a session. A name has 1 to 128 letters "
            "(A to Z), digits, '.', '_' and '-'.",
            param=SESSION_HEADER,
        )


@lru_cache(maxsize=1024)
def split_target(target: str) -> tuple[str, Mapping[str, str]]:
    """Path and query of a request's target; of the path, the parts are decoded later."""
    path, mark, query = target.partition("?")
    return path, parse_query(query) if mark else _NO_QUERY


_UNREADABLE = "unreadable_body"


def silent(what: str, patience: float) -> RequestError:
    """The error for a request of which nothing more arrives."""
    return RequestError(
        f"The {what} of the request did not arrive whole: nothing more came for {patience:g} s. "
        "Send all of it, with the length that it announces.",
        status=408,
        code="request_timeout",
    )


def opens_websocket(headers: Mapping[str, str]) -> bool:
    """Whether a request opens a WebSocket (RFC 6455, section 4.2.1).

    Args:
        headers: their names in lower case, or found in any.
    """
    if headers.get("upgrade", "").strip().lower() != "websocket":
        return False
    options = headers.get("connection", "").lower().split(",")
    return "upgrade" in map(str.strip, options)


_HTTP2 = b"PRI * HTTP/2.0\r\n"
"""How a client begins that takes HTTP/2 for granted (RFC 9113, section 3.4)."""


def not_http(data: bytes, error: BaseException) -> str:
    """The message about bytes that are no HTTP request."""
    if data.startswith(_HTTP2):
        return (
            "This is HTTP/2, and mockllm speaks HTTP/1.1. So does the AWS SDK for JavaScript "
            "with `requestHandler: new NodeHttpHandler()` from `@smithy/node-http-handler`."
        )
    if type(error).__name__ == "ContentEncodingError":  # of a body that came with its head
        return f"The body of the request cannot be read: {brief(error)}."
    return f"This is no HTTP request: {brief(error)}."


def brief(error: BaseException) -> str:
    """The fault in the bytes of a request, without quoting them: they may be secret."""
    if type(error).__name__ == "InvalidURLError":  # whose message is the URL
        return "its target is no URL"
    text = str(getattr(error, "message", "") or error).rpartition("message:")[2].strip()
    text = text.partition("\n")[0]
    if text == "deflate":  # all that aiohttp says of it
        return "its data (deflate) end too early"
    return text.partition(": b")[0].partition(":\n")[0].strip().rstrip(".:") or type(error).__name__


def closes(error: RequestError) -> bool:
    """Whether the connection of a refused request must be closed: more of its body may come."""
    return error.status in (408, 413) or error.code == _UNREADABLE


def complete_body(request: web.BaseRequest, most: int) -> bytes | None:
    """The whole body of a request, if it came with the head, as most do; else None."""
    if not request.body_exists:  # the content of such has no `total_bytes` in aiohttp 3.11
        return b""
    content = request.content
    if not content.is_eof() or content.exception() is not None or content.total_bytes > most:
        return None
    return content.read_nowait()


async def read_part(request: web.BaseRequest, patience: float) -> bytes:
    """The next bytes of a body; b"" at its end.

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


@lru_cache(maxsize=256)
def _read_headers(
    raw: tuple[tuple[bytes, bytes], ...],
) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """The headers of a request, their names in lower case, and the same with secrets masked.

    Clients repeat their headers. Both results are shared: nothing may change them. Those that a
    client sent to the proxy on the way end there (RFC 9110, section 11.7.2; RFC 9112, C.2.2).
    """
    headers = {name.decode("latin-1").lower(): readable_header(value) for name, value in raw}
    for name in ("proxy-authorization", "proxy-connection"):
        headers.pop(name, None)
    return headers, masked_headers(headers)


class Arrival:
    """A request as it came. Only its methods change it, and who finds its session in its body.

    Args:
        request: as aiohttp has it.

    Attributes:
        target: path and query, without origin and without the prefix of a session.
        headers: names in lower case.
        origin: of the service that the client believes to speak to; "" for none.
        session: the name that prefix or header have; it may be none that a session can have.
        at: when it came, in seconds since 1970; `clock`: in seconds of `time.perf_counter`.
        body: b"" until it is read.
    """

    __slots__ = (
        "_masked",
        "at",
        "body",
        "clock",
        "headers",
        "method",
        "origin",
        "path",
        "query",
        "request",
        "session",
        "target",
    )

    def __init__(self, request: web.BaseRequest) -> None:
        self.clock, self.at = time.perf_counter(), time.time()
        self.request = request
        self.method = request.method
        target, (headers, masked) = request.raw_path, _read_headers(request.raw_headers)
        if not target.startswith("/"):
            target, headers = origin_form(target, headers)
            masked = masked_headers(headers)
        self.headers, self._masked = headers, masked
        self.origin, session = interception_of(request)
        self.session, self.target = session_of(target, headers, session or DEFAULT)
        self.path, self.query = split_target(self.target)
        self.body = b""

    @property
    def host(self) -> str:
        """The host of its origin; "" for none."""
        return host_in(self.origin)

    @property
    def base(self) -> str:
        """The base URL that the client has of the server, with the prefix of its session."""
        target, _ = origin_form(self.request.raw_path, {})
        prefix = target[: len(target) - len(self.target)]
        return f"{self.request.scheme}://{self.headers.get('host', '')}{prefix}"

    def accept_origin(self, key: str) -> None:
        """Takes the origin that a redirected library of this process names.

        Args:
            key: that such a library sends with it; "" where none is redirected to this server.

        Raises:
            RequestError: somebody else names it.
        """
        sent, _, origin = self.headers[ORIGIN_HEADER].rpartition(" ")
        if not key or not compare_digest(sent.encode(), key.encode()):
            raise RequestError(
                f"{ORIGIN_HEADER} is a header that only libraries send which mockllm itself has "
                "redirected, in its own process. Leave it out; `mockllm run --intercept` leads "
                "other programs here.",
                status=403,
                param=ORIGIN_HEADER,
                code="foreign_origin",
            )
        self.origin = origin
        self.headers = {**self.headers, ORIGIN_HEADER: origin}
        self._masked = masked_headers(self.headers)

    def body_if_complete(self, most: int) -> bytes:
        """Its whole body where that came with the head, as most do; else b"". Waits for nothing."""
        self.body = self.body or complete_body(self.request, most) or b""
        return self.body

    async def read(self, most: int, patience: float) -> bytes:
        """Its whole body.

        Raises:
            RequestError: it is larger, nothing arrived for too long, or it cannot be decoded.
        """
        self.body = self.body_if_complete(most) or await self._rest(most, patience)
        return self.body

    async def _rest(self, most: int, patience: float) -> bytes:
        error = RequestError(
            f"The request body is larger than {most} bytes. Send less, or serve with a larger "
            "--max-body.",
            status=413,
            code="request_too_large",
        )
        request, headers = self.request, self.headers
        if int(headers.get("content-length", "0")) > most:
            raise error
        if headers.get("expect", "").lower() == "100-continue" and request.transport is not None:
            request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = bytearray()
        while len(body) <= most and (part := await read_part(request, patience)):
            body += part
        if len(body) > most:
            raise error
        return bytes(body)

    def without_upgrade(self) -> Arrival:
        """The same request as one over HTTP, where it opened a WebSocket."""
        plain = copy(self)
        plain.method = "POST"
        plain.headers = {
            name: value
            for name, value in self.headers.items()
            if name not in ("connection", "upgrade") and not name.startswith("sec-websocket-")
        }
        return plain

    def with_message(self, body: bytes) -> Arrival:
        """The same request with a message of its WebSocket as its body, which came now."""
        message = copy(self)
        message.clock, message.at = time.perf_counter(), time.time()
        message.body = body
        return message

    def received_request(self, target: Target | None = None) -> Received:
        """The request as a journal shows it."""
        transport = self.request.transport
        peer = None if transport is None else transport.get_extra_info("peername")
        return Received(
            self.method,
            masked_url(self.target),
            self._masked,
            self.body,
            self.at,
            self.clock,
            0 if peer is None else int(peer[1]),
            target,
        )


_MOST_DIGITS = 18
"""Python reads at most 4,300 digits, and nothing here counts so far."""


def whole_number(query: Mapping[str, str], name: str, default: int = 0, *, least: int = 0) -> int:
    """A number in a query."""
    given = query.get(name) or str(default)
    digits = given.isascii() and given.isdecimal() and len(given) <= _MOST_DIGITS
    if not digits or int(given) < least:
        message = f"{name} must be a whole number from {least}, got {shorten(given, 40)!r}."
        raise RequestError(message, param=name)
    return int(given)


def duration(query: Mapping[str, str], name: str) -> float:
    """A duration in a query, in seconds; 0 where it has none."""
    try:
        return read_duration(query.get(name, "0")) / 1_000_000
    except ValueError as error:
        given = shorten(query[name], 40)
        raise RequestError(f"{name} must be {error}, got {given!r}.", param=name) from None


def flag(query: Mapping[str, str], name: str) -> bool:
    """Whether a query has a flag."""
    value = query.get(name, "false")
    if value not in ("true", "false"):
        raise RequestError(f"{name} must be true or false, got {value!r}.", param=name)
    return value == "true"


def names(query: Mapping[str, str], name: str) -> frozenset[str]:
    """Names with commas between them."""
    return frozenset(filter(None, query.get(name, "").split(",")))
