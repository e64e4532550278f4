"""HTTP archives, as browsers and proxies save them: http://www.softwareishard.com/blog/har-12-spec/.

An archive has each answer whole and decompressed, and when the request was sent. Its `timings` give
no times of chunks and are not read.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

from mockllm.core.errors import UsageError, WireError
from mockllm.play.tapes.captured import Captured
from mockllm.record.importers.foreign_files import ForeignFile
from mockllm.record.importers.reading import (
    Entry,
    Unread,
    as_sent,
    body_bytes,
    from_base64,
    header_pairs,
    reason_of,
    timestamp,
    whole,
)
from mockllm.record.importers.socket_entries import read_archived
from mockllm.record.redaction.credentials import masked_url
from mockllm.wire.protocols.values import json_value as json_or_none


def read(file: ForeignFile) -> list[Entry]:
    """The entries of an archive, in order.

    Raises:
        UsageError: the file is no HTTP archive.
    """
    match file.value:
        case {"log": {"entries": list(entries)} as log}:
            body = _chunk_bytes if _is_by_polly(log) else _text
            return [
                _exchange(entry, f"{file.path}#{number}", body)
                for number, entry in enumerate(entries, 1)
            ]
    raise UsageError(f"{file.path} is no HTTP archive: it has no 'log' with a list of 'entries'")


def _exchange(entry: Any, source: str, body: Callable[[dict[str, Any], str], bytes]) -> Entry:
    match entry:
        case {"request": dict(request), "response": dict(response)}:
            pass
        case _:
            return Unread(source, "it has no request with its response")
    method, url = str(request.get("method", "")), str(request.get("url", ""))
    sent = f"{method} {masked_url(url)}"
    if not response.get("status"):
        why = response.get("_error") or entry.get("_error") or "it was blocked or broken off"
        return Unread(source, f"no answer came: {why}", sent)
    messages = entry.get("_webSocketMessages")
    if isinstance(messages, list) or entry.get("_resourceType") == "websocket":
        return _session(entry, request, response, messages, source)
    content = response.get("content")
    if not isinstance(content, dict) or not isinstance(content.get("text"), str):
        return Unread(source, "the archive was saved without the bodies of answers", sent)
    if not content["text"] and str(content.get("mimeType")).startswith("text/event-stream"):
        # mitmproxy 11 writes a stream that broke off so: status 200, no text and no `_error`.
        return Unread(source, "it is a stream, and the archive has none of its bytes", sent)
    try:
        status = int(response["status"])
        exchange = Captured(
            method,
            url,
            header_pairs(request.get("headers")),
            _request_body(request.get("postData")),
            status,
            header_pairs(response.get("headers")),
            whole(body(content, "encoding")),
            at=timestamp(entry.get("startedDateTime")),
            source=source,
            reason=reason_of(status, response.get("statusText")),
        )
        return as_sent(exchange)
    except (WireError, ValueError) as error:
        return Unread(source, str(error), sent)


def _session(
    entry: dict[str, Any],
    request: dict[str, Any],
    response: dict[str, Any],
    messages: Any,
    source: str,
) -> Entry:
    """The session over a WebSocket."""
    sent = f"GET {masked_url(str(request.get('url', '')))}"
    if not isinstance(messages, list):
        return Unread(source, "it is a WebSocket, and the archive has none of its messages", sent)
    began = str(entry.get("startedDateTime"))
    try:
        return read_archived(request, response, messages, began, source)
    except (WireError, ValueError) as error:
        return Unread(source, str(error), sent)


def _text(content: dict[str, Any], encoding: str) -> bytes:
    text = content["text"]
    return from_base64(text) if content.get(encoding) == "base64" else body_bytes(text)


def _is_by_polly(log: dict[str, Any]) -> bool:
    creator = log.get("creator")
    return isinstance(creator, dict) and creator.get("name") == "Polly.JS"


_HEX = re.compile(r"(?:[0-9a-f]{2})*")


def _chunk_bytes(content: dict[str, Any], encoding: str) -> bytes:
    """A body as Polly.js keeps one that is compressed or no text: a JSON list of its chunks, in
    base64, or in hexadecimal digits where no encoding is named (Polly.js before version 5)."""
    chunks = json_or_none(content["text"])
    if not isinstance(chunks, list) or not all(isinstance(chunk, str) for chunk in chunks):
        return _text(content, encoding)
    if content.get(encoding) == "base64":
        return b"".join(map(from_base64, chunks))
    if chunks and all(map(_HEX.fullmatch, chunks)):
        return b"".join(map(bytes.fromhex, chunks))
    return _text(content, encoding)


def _request_body(data: Any) -> bytes:
    match data:
        case {"text": str(text)} if text or not data.get("params"):
            return _text(data, "encoding" if "encoding" in data else "_encoding")
        case {"params": list(params)}:
            pairs = [(p.get("name", ""), p.get("value", "")) for p in params if isinstance(p, dict)]
            return urlencode(pairs, errors="surrogatepass").encode()
    return b""
