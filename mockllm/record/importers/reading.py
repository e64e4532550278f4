"""Shared by all readers: entries that are no exchange, stored bodies, headers, times."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from mockllm.core.errors import WireError
from mockllm.core.http import TimedBytes, host_in, unusual_reason
from mockllm.core.jsontext import json_bytes
from mockllm.core.text import display
from mockllm.play.tapes.captured import Captured
from mockllm.wire.protocols.base import dumps
from mockllm.wire.protocols.values import utf8_text


@dataclass(frozen=True, slots=True)
class Unread:
    """An entry of a file that cannot be read as an exchange, with method and URL if known."""

    source: str
    reason: str
    request: str = ""


_Headers = tuple[tuple[str, str], ...]

Entry = Captured | Unread
"""An entry of a file."""


def as_sent(exchange: Captured) -> Captured:
    """The exchange of a file as client and service sent it, but for a compressed request, which is
    decompressed.

    Raises:
        WireError: its URL is none of a service, or the request cannot be decompressed.
    """
    if not host_in(exchange.url):
        raise WireError(f"{display(exchange.url)} is no URL of a service")
    exchange = replace(
        exchange,
        method=exchange.method.upper(),
        request_headers=_fitting_headers(exchange.request_headers, exchange.request_body),
        headers=_fitting_headers(exchange.headers, exchange.body),
    )
    plain = exchange.plain_request()
    if plain is exchange:
        return exchange
    return replace(plain, request_headers=_without_coding(plain.request_headers))


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
