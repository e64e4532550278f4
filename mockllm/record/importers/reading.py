"""Shared by all readers: entries that are no exchange, stored bodies, headers, times."""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from mockllm.core.errors import WireError
from mockllm.core.http import TimedBytes, host_in, unusual_reason
from mockllm.core.jsontext import json_bytes
from mockllm.core.text import display
from mockllm.play.tapes.captured import Captured, detect_api
from mockllm.play.tapes.recorded_turn import carrier_in
from mockllm.play.tapes.socket_session import SocketSession
from mockllm.wire.framing.sse import SSE
from mockllm.wire.protocols.base import WireProtocol, dumps
from mockllm.wire.protocols.route_matching import detect_by_body, model_of
from mockllm.wire.protocols.values import json_object, json_value, utf8_text


@dataclass(frozen=True, slots=True)
class Unread:
    """An entry of a file that cannot be read as an exchange, with method and URL if known."""

    source: str
    reason: str
    request: str = ""


_Headers = tuple[tuple[str, str], ...]

Entry = Captured | SocketSession | Unread
"""An entry of a file."""


def as_sent(exchange: Captured) -> Captured:
    """The exchange of a file as client and service sent it, but for a compressed request, which is
    decompressed. Where a filter of the recorder hid the URL of a known API or the type of an
    answer, they are those that the bodies show.

    Raises:
        WireError: its URL is none of a service, or the request cannot be decompressed.
    """
    if not host_in(exchange.url):
        exchange = replace(exchange, url=_hidden_url(exchange))
    if not host_in(exchange.url):
        raise WireError(f"{display(exchange.url)} is no URL of a service")
    exchange = replace(
        exchange,
        method=exchange.method.upper(),
        request_headers=_fitting_headers(exchange.request_headers, exchange.request_body),
        headers=_with_type(exchange, _fitting_headers(exchange.headers, exchange.body)),
    )
    plain = exchange.plain_request()
    if plain is exchange:
        return exchange
    return replace(plain, request_headers=_without_coding(plain.request_headers))


_HIDDEN = re.compile(r"\W*[A-Z_ ]+\W*")
"""A placeholder in place of a value, such as `**REDACTED**` or `<URL>`."""


def _hidden_url(exchange: Captured) -> str:
    """The usual URL of the API that a request is written for, where only a placeholder is left."""
    if not _HIDDEN.fullmatch(exchange.url):
        return exchange.url
    sent = json_object(exchange.request_body)
    protocol = detect_by_body(sent, exchange.body)
    if protocol is None:
        return exchange.url
    streamed = carrier_in(exchange.body, protocol.usual) is not None
    return usual_url(protocol, model_of(sent, exchange.body), streamed=streamed)


def usual_url(protocol: WireProtocol, model: str, *, streamed: bool) -> str:
    """The URL at the service of an API that clients request an answer from."""
    client = protocol.client
    return client.service + client.path_of(model or "unknown", stream=streamed)


def _with_type(exchange: Captured, headers: _Headers) -> _Headers:
    """Headers with the type of the answer, where they have none because of a filter."""
    named = exchange.header("content-type")
    if not exchange.body or (not _HIDDEN.fullmatch(named) if named else headers):
        return headers
    others = tuple(pair for pair in headers if pair[0] != "content-type")
    protocol = detect_api(exchange).protocol
    if protocol is None and not (named and json_value(exchange.body) is not None):
        return others  # of nothing that is known, no filter took the headers away
    return (*others, ("content-type", content_type(exchange.body, protocol)))


def content_type(body: bytes, protocol: WireProtocol | None) -> str:
    """The type of an answer of an API by its bytes: of a stream, or of JSON."""
    carrier = carrier_in(body, SSE if protocol is None else protocol.usual)
    return "application/json" if carrier is None else carrier.content_type


def whole(body: bytes) -> tuple[TimedBytes, ...]:
    """The chunks of a body from a file without chunks and times: one, at once."""
    return (TimedBytes(0, body),) if body else ()


def reason_of(status: int, reason: Any) -> str | None:
    """A reason phrase as a file has it. One that is empty, as of HTTP/2, or that no status line can
    have is not kept."""
    if not isinstance(reason, str) or not reason.isascii() or not reason.isprintable():
        return None
    return unusual_reason(status, reason.strip() or None)


def _fitting_headers(headers: _Headers, body: bytes) -> _Headers:
    """Headers without `content-encoding`, where the stored body contradicts it.

    vcrpy and browsers store the decompressed body beside the header of the compressed one.
    Compressed data are never UTF-8 as a whole, so a body that is UTF-8 is not compressed.
    """
    if not any(name == "content-encoding" for name, _ in headers) or utf8_text(body) is None:
        return headers
    return _without_coding(headers)


def _without_coding(headers: _Headers) -> _Headers:
    return tuple(pair for pair in headers if pair[0] not in ("content-encoding", "content-length"))


def body_bytes(value: Any) -> bytes:
    """The bytes of a body that a file holds as text, bytes, null or a parsed JSON value. Half of a
    surrogate pair in it becomes its escape in JSON."""
    match value:
        case None:
            return b""
        case bytes():
            return value
        case str():
            return json_bytes(value)
    return json_bytes(dumps(value))


def from_base64(text: str) -> bytes:
    """The bytes of base64 text; white space in it is ignored.

    Raises:
        WireError: it is not base64.
    """
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise WireError(f"the body is not base64 as it says: {error}") from None


def from_hex(digits: str) -> bytes:
    """The bytes of hexadecimal digits.

    Raises:
        WireError: they are none.
    """
    try:
        return bytes.fromhex(digits)
    except ValueError as error:
        raise WireError(f"the body is not hexadecimal as it says: {error}") from None


def header_pairs(headers: Any) -> tuple[tuple[str, str], ...]:
    """Headers as pairs of name and value, names in lower case, from any form in use: a mapping of
    names to values, a list of mappings with `name` and `value`, or a list of pairs."""
    pairs: list[tuple[str, Any]] = []
    match headers:
        case dict():
            pairs = list(headers.items())
        case list():
            for entry in headers:
                match entry:
                    case {"name": name, "value": value}:
                        pairs.append((name, value))
                    case [name, value]:
                        pairs.append((name, value))
    return tuple(
        (_text(name).lower(), _text(header))
        for name, value in pairs
        for header in (value if isinstance(value, list) else [value])
    )


def header_lines(block: bytes) -> _Headers:
    """Headers as HTTP/1.1 writes them; the body that follows has no HTTP chunks any more."""
    lines = (line.partition(":") for line in block.decode("latin-1").splitlines())
    return tuple(
        (name.strip().lower(), value.strip())
        for name, colon, value in lines
        if colon and name.strip().lower() != "transfer-encoding"
    )


def _text(value: Any) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def timestamp(value: Any) -> float:
    """A time in ISO 8601 as seconds since 1970; 0 where it is none."""
    if not isinstance(value, str):
        return 0.0
    try:
        return datetime.fromisoformat(value).timestamp()
    except ValueError:
        return 0.0
