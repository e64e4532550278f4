"""Flow files of mitmproxy, as `mitmdump -w` writes them: https://docs.mitmproxy.org.

A file is one typed netstring after the other, each the state of a flow. A flow of HTTP has each
body whole, as it was on the wire. mitmproxy does not note when the parts of a body came.

Read are the file formats since mitmproxy 7 (12 and later). Earlier formats have other fields;
mitmproxy converts them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from mockllm.core.errors import WireError
from mockllm.core.http import unusual_reason
from mockllm.core.text import display
from mockllm.play.tapes.captured import Captured, Cut
from mockllm.record.importers.files import contents
from mockllm.record.importers.reading import Entry, Unread, as_sent, header_pairs, whole
from mockllm.record.redaction.credentials import masked_url

MAX_DEPTH = 32
"""How deeply lists and mappings may be nested."""

_LENGTH = re.compile(rb"(0|[1-9][0-9]{0,11}):")
# What may still become a length, where the data end.
_LENGTH_BEGUN = re.compile(rb"(?:0|[1-9][0-9]{0,11})?\Z")


class IncompleteError(WireError):
    """The data end inside a value."""


def values(data: bytes) -> Iterator[Any]:
    """The values in data, which are typed netstrings: length, colon, content, type.

    Raises:
        IncompleteError: the data end inside a value; those before it were returned.
        WireError: something is no typed netstring, with its offset.
    """
    at = 0
    while at < len(data):
        value, at = _value(data, at, len(data), 0)
        yield value


def _value(data: bytes, at: int, end: int, depth: int) -> tuple[Any, int]:
    """The value at an offset, and the offset after it; what it is part of ends at `end`."""
    if depth > MAX_DEPTH:
        raise WireError(f"byte {at}: nested more than {MAX_DEPTH} deep")
    head = _LENGTH.match(data, at, end)
    if head is None and not _LENGTH_BEGUN.match(data, at, end):
        raise WireError(f"byte {at}: not a length and a colon")
    start = head.end() if head is not None else end
    stop = start + int(head[1]) if head is not None else end
    if stop >= end and depth:  # then the length is wrong
        raise WireError(f"byte {at}: a value is longer than what holds it")
    if stop >= end:
        raise IncompleteError(f"the data end inside the value that begins at byte {at}")
    kind = chr(data[stop])
    if kind in "]}":
        items = list(_items(data, start, stop, depth))
        return items if kind == "]" else _mapping(items, start), stop + 1
    if kind not in _SCALARS:
        raise WireError(f"byte {stop}: there is no type {kind!r}")
    try:
        return _SCALARS[kind](data[start:stop]), stop + 1
    except (ValueError, KeyError):
        content = display(data[start:stop])
        raise WireError(f"byte {start}: {content} is no value of the type {kind!r}") from None


def _items(data: bytes, at: int, end: int, depth: int) -> Iterator[Any]:
    while at < end:
        item, at = _value(data, at, end, depth + 1)
        yield item


def _mapping(items: Sequence[Any], at: int) -> dict[str, Any]:
    names = [_text(name) for name in items[::2] if isinstance(name, bytes | str)]
    if 2 * len(names) != len(items):
        raise WireError(f"byte {at}: a mapping is no list of names and values")
    return dict(zip(names, items[1::2], strict=True))


_SCALARS: dict[str, Callable[[bytes], Any]] = {
    ",": bytes,
    ";": lambda data: data.decode("utf-8", "surrogateescape"),
    "#": int,
    "^": float,
    "!": {b"true": True, b"false": False}.__getitem__,
    "~": {b"": None}.__getitem__,
}


FIRST_FORMAT = 12
"""The file format of mitmproxy 7.0.0."""

_DEFAULT_PORTS = {"http": 80, "https": 443}
_SWITCHING_PROTOCOLS = 101


def read(path: Path) -> list[Entry]:
    """The entries of a flow file, in order. If the file is damaged, the flows before the damage are
    read, and the last entry reports it.

    Raises:
        UsageError: the file cannot be read.
    """
    data = contents(path)
    found: list[Entry] = []
    try:
        for number, flow in enumerate(values(data), 1):
            found.append(_entry(flow, f"{path}#{number}"))
    except IncompleteError as error:
        reason = f"the file is cut off: {error} of {len(data):,}; the flows before it are whole"
        found.append(Unread(f"{path}#{len(found) + 1}", reason))
    except WireError as error:
        reason = f"the file is damaged at {error}; it is not read from there on"
        found.append(Unread(f"{path}#{len(found) + 1}", reason))
    return found


def _entry(flow: Any, source: str) -> Entry:
    if not isinstance(flow, dict):
        return Unread(source, "it is no flow of mitmproxy")
    version = flow.get("version")
    if not isinstance(version, int) or version < FIRST_FORMAT:
        return Unread(
            source,
            f"it is of mitmproxy's file format {_format(version)}; formats from {FIRST_FORMAT} on "
            "(mitmproxy 7) are read. To convert the file: mitmdump -n -r OLD -w NEW",
        )
    kind = _text(flow.get("type"))
    request = flow.get("request")
    if kind != "http":
        return Unread(source, f"it is a flow of {kind.upper() or 'no type'}, not of HTTP")
    if not isinstance(request, dict):
        return Unread(source, "it is a flow of HTTP without a request")
    url = _url(request)
    sent = f"{_text(request.get('method'))} {masked_url(url)}"
    try:
        return _exchange(flow, request, url, source)
    except WireError as error:
        return Unread(source, str(error), sent)


def _exchange(flow: dict[str, Any], request: dict[str, Any], url: str, source: str) -> Entry:
    """The exchange of a flow of HTTP; WireError: it is none, or its bodies are not in the file."""
    response = flow.get("response")
    method = _text(request.get("method"))
    if method == "CONNECT":
        raise WireError("it only opens a tunnel")
    if not isinstance(response, dict):
        raise WireError(f"no answer came: {_error(flow) or 'the flow has no response'}")
    if flow.get("websocket") or response.get("status_code") == _SWITCHING_PROTOCOLS:
        raise WireError("it is a WebSocket, which is not played")
    exchange = Captured(
        method,
        url,
        header_pairs(request.get("headers")),
        _content(request, "request", ""),
        _status(response),
        header_pairs(response.get("headers")),
        whole(_content(response, "answer", _error(flow))),
        cut=_cut(_error(flow)),
        at=_seconds(request.get("timestamp_start")),
        source=source,
        reason=_reason(response),
        trailers=header_pairs(response.get("trailers")),
    )
    return as_sent(exchange)


def _content(message: dict[str, Any], name: str, error: str) -> bytes:
    """The body of a request or an answer; WireError: mitmproxy did not keep it."""
    match message.get("content"):
        case bytes(data):
            return data
        case str(text):
            return text.encode("utf-8", "surrogateescape")
    if error:
        raise WireError(f"the {name} was broken off, and its bytes are not in the file: {error}")
    raise WireError(
        f"mitmproxy streamed the body of the {name} and did not keep it; record it again without "
        "stream_large_bodies, or with store_streamed_bodies, which recent versions have"
    )


def _status(response: dict[str, Any]) -> int:
    status = response.get("status_code")
    if not isinstance(status, int):
        raise WireError("the response has no status")
    return status


def _reason(response: dict[str, Any]) -> str | None:
    phrase = _text(response.get("reason"))
    if not _text(response.get("http_version")).startswith("HTTP/1"):
        return None
    return unusual_reason(_status(response), phrase)


def _error(flow: dict[str, Any]) -> str:
    match flow.get("error"):
        case {"msg": message}:
            return _text(message)
    return ""


def _cut(error: str) -> Cut:
    """Which side ended a flow early. mitmproxy's message names the client, if it was the client."""
    if not error:
        return ""
    return "client" if "client" in error.lower() else "upstream"


def _url(request: dict[str, Any]) -> str:
    """The URL of a request. A transparent proxy knows the address of the server only; its name is
    in the header."""
    scheme, path = _text(request.get("scheme")) or "https", _text(request.get("path"))
    host, port = _text(request.get("host")), request.get("port")
    named = _named_host(request)
    if named and _is_address(host):
        host = named
    if ":" in host:
        host = f"[{host}]"
    usual = not isinstance(port, int) or _DEFAULT_PORTS.get(scheme) == port
    return f"{scheme}://{host}{'' if usual else f':{port}'}{path}"


def _named_host(request: dict[str, Any]) -> str:
    """The host that the client named; "" if it named none."""
    headers = dict(header_pairs(request.get("headers")))
    given = _text(request.get("authority")) or headers.get("host", "")
    try:
        return urlsplit(f"//{given}").hostname or ""
    except ValueError:
        return ""


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    return value if isinstance(value, str) else ""


def _seconds(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _format(version: Any) -> str:
    if isinstance(version, list):
        return ".".join(map(str, version))
    return str(version)
