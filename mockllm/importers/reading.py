"""What readers share: an exchange that cannot be had, stored bodies, headers, times."""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from mockllm.core.timed_bytes import TimedBytes
from mockllm.errors import WireError
from mockllm.protocols.base import dumps
from mockllm.tapes.captured import Captured

__all__ = [
    "Found",
    "Unread",
    "captured",
    "from_base64",
    "header_pairs",
    "inflated",
    "moment",
    "stored",
]


@dataclass(frozen=True, slots=True)
class Unread:
    """An entry of a file that is no exchange, and why.

    Args:
        source: the file and the number of the entry in it, from 1.
        asked: method and URL, where they are known.
    """

    source: str
    words: str
    asked: str = ""


Found = Captured | Unread


def captured(
    *,
    source: str,
    method: str,
    url: str,
    request_headers: tuple[tuple[str, str], ...],
    request_body: bytes,
    status: int,
    headers: tuple[tuple[str, str], ...],
    body: bytes,
    at: float = 0.0,
) -> Captured:
    """An exchange whose chunks and times nobody wrote down: one chunk, at once."""
    return Captured(
        method=method.upper(),
        url=url,
        request_headers=request_headers,
        request_body=inflated(request_headers, request_body),
        status=status,
        headers=_truthful(headers, body),
        chunks=(TimedBytes(0, body),) if body else (),
        at=at,
        source=source,
    )


def _truthful(headers: tuple[tuple[str, str], ...], body: bytes) -> tuple[tuple[str, str], ...]:
    """Headers without those that the stored body belies.

    Clients and browsers store what they decompressed beside the header that says how it came.
    No compressed data are UTF-8 from end to end, so text tells itself apart.
    """
    if not any(name == "content-encoding" for name, _ in headers) or not _is_text(body):
        return headers
    return tuple(pair for pair in headers if pair[0] not in ("content-encoding", "content-length"))


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def inflated(headers: Iterable[tuple[str, str]], body: bytes) -> bytes:
    """The body of a request without the gzip that some clients send it in."""
    if ("content-encoding", "gzip") not in headers or not body.startswith(b"\x1f\x8b"):
        return body
    try:
        return zlib.decompress(body, 31)
    except zlib.error:
        return body


def stored(value: Any) -> bytes:
    """A body as it is in YAML or JSON: text, bytes, nothing, or a value that was parsed."""
    match value:
        case None:
            return b""
        case bytes():
            return value
        case str():
            return value.encode("utf-8", "surrogatepass")
    return dumps(value).encode("utf-8", "surrogatepass")


def from_base64(text: str) -> bytes:
    """The bytes of base64 text, line breaks in it or not.

    Raises:
        WireError: it is not base64.
    """
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise WireError(f"the body is not base64 as it says: {error}") from None


def header_pairs(headers: Any) -> tuple[tuple[str, str], ...]:
    """Headers in any of the ways that people write them; names in lower case.

    A mapping of names to a value or to a list of values, or a list of mappings with `name` and
    `value`, or of pairs.
    """
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
        (_text(name).lower(), _text(one))
        for name, value in pairs
        for one in (value if isinstance(value, list) else [value])
    )


def _text(value: Any) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def moment(value: Any) -> float:
    """A time as ISO 8601 writes it, in seconds since 1970; 0 where it is none."""
    if not isinstance(value, str):
        return 0.0
    try:
        return datetime.fromisoformat(value).timestamp()
    except ValueError:
        return 0.0
