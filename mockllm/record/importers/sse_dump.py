"""A stream as `curl -N` printed it, with its request in a file beside it.

The request of `NAME.sse` is in `NAME.request.json`, `NAME.json`, or `request.json` in the same
folder: the body that was sent, or an object with `url` and `body`. `meta.json` in the folder may
have `host`, `path`, `status` and `content_type`. Otherwise the API is detected from the bodies.
`curl -i` adds status and headers. Without a request, one is made up; its user message is the name
of the file. Some projects, such as the AI SDK, keep the values of a stream alone, one in each line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mockllm.core.errors import UsageError
from mockllm.core.events import Frame
from mockllm.play.replay.client_requests import first_body
from mockllm.play.tapes.captured import Captured
from mockllm.play.tapes.recorded_turn import carrier_of
from mockllm.record.importers.foreign_files import ForeignFile
from mockllm.record.importers.reading import (
    Entry,
    as_sent,
    body_bytes,
    content_type,
    header_lines,
    usual_url,
    whole,
)
from mockllm.wire.protocols.base import WireProtocol
from mockllm.wire.protocols.records import Json
from mockllm.wire.protocols.route_matching import detect, detect_by_body, model_of
from mockllm.wire.protocols.values import json_object, string, utf8_text

ENDINGS = (".sse", ".ndjson", ".txt", ".http")
"""The endings of the names of dumps."""

LINES = re.compile(rb"\s*\{[^\n]*\}\s*\n\{")
"""Two objects, each in its line: no JSON file has these."""

_STATUS = re.compile(rb"HTTP/[\d.]+ (\d{3})[^\n]*\n")
_BLANK = re.compile(rb"\r?\n\r?\n")
_Headers = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class _Request:
    """The request of a dump, and status and type of its answer, from the files beside it."""

    body: bytes
    value: dict[str, Any] | None
    url: str
    status: int
    content_type: str


def beside(path: Path) -> list[Path]:
    """The files that belong to a dump: its request and `meta.json`, where they exist."""
    names = (f"{path.stem}.request.json", f"{path.stem}.json", "request.json")
    request = next((found for name in names if (found := path.with_name(name)).is_file()), None)
    meta = path.with_name("meta.json")
    return [found for found in (request, meta) if found is not None and found.is_file()]


def read(file: ForeignFile) -> list[Entry]:
    """The exchange of one dump.

    Raises:
        UsageError: a file cannot be read, or the API is not detected.
    """
    path = file.path
    status, headers, body = _answer(file.data)
    request = _request(path)
    protocol = detect_by_body(request.value, body)
    if protocol is None and not (request.url and request.body):
        raise UsageError(
            f"{path}: its API cannot be detected, neither from the stream nor from a request "
            f"beside it; put the body that was sent into {path.stem}.request.json"
        )
    kind = dict(headers).get("content-type") or request.content_type
    if not kind:
        body = body if protocol is None else _as_stream(body, protocol)
        kind = content_type(body, protocol)
    streamed = carrier_of(kind) is not None
    model = model_of(request.value, body)
    sent, url = request.body, request.url
    if protocol is not None:
        sent = sent or body_bytes(
            _minimal(protocol, model, path.stem.removesuffix(".chunks"), stream=streamed)
        )
        url = url or usual_url(protocol, model, streamed=streamed)
    exchange = Captured(
        "POST",
        url,
        (("content-type", "application/json"),),
        sent,
        status or request.status,
        headers or (("content-type", kind),),
        whole(body),
        source=str(path),
    )
    return [as_sent(exchange)]


def _minimal(protocol: WireProtocol, model: str, user: str, *, stream: bool) -> Json:
    body = first_body(protocol, model or "unknown", user)
    field = protocol.client.stream_field
    return {**body, field: stream} if field else body


def _as_stream(body: bytes, protocol: WireProtocol) -> bytes:
    """The stream of an API that sends no lines, where a file has the values of its events alone;
    events are named after their types."""
    text, carriers = utf8_text(body), {carrier.name for carrier in protocol.carriers}
    if text is None or LINES.match(body) is None or "ndjson" in carriers:
        return body
    values = [line for line in text.split("\n") if line.strip()]
    named = protocol.events.type_path
    frames = [
        Frame(value, event=string((json_object(value) or {}).get(named)) or None)
        for value in values
    ]
    if protocol.end_data and protocol.end_data not in values:
        frames.append(Frame(protocol.end_data))
    return b"".join(protocol.usual.encode(frame, protocol.line_end) for frame in frames)


def _answer(data: bytes) -> tuple[int | None, _Headers, bytes]:
    """Status, headers and body of the last answer: `curl -i` also prints interim answers, redirects
    and those of proxies."""
    status: int | None = None
    headers: _Headers = ()
    while (line := _STATUS.match(data)) is not None:
        blank = _BLANK.search(data, line.end() - 2)
        if blank is None:
            return int(line[1]), header_lines(data[line.end() :]), b""
        status, headers = int(line[1]), header_lines(data[line.end() : blank.start()])
        data = data[blank.end() :]
    return status, headers, data


def _request(path: Path) -> _Request:
    body, value, url = b"", None, ""
    meta: dict[str, Any] = {}
    for found in map(ForeignFile, beside(path)):
        fields = found.value
        if not isinstance(fields, dict):
            raise UsageError(f"{found.path} must hold a JSON object")
        if found.path.name == "meta.json":
            meta = fields
        elif "body" in fields and "url" in fields:
            value = fields["body"] if isinstance(fields["body"], dict) else None
            body, url = body_bytes(fields["body"]), str(fields["url"])
        else:
            body, value = found.data, fields
    content_type = str(meta.get("content_type") or "")
    return _Request(body, value, url or _url(meta), _status(meta), content_type)


def _url(meta: dict[str, Any]) -> str:
    path = str(meta.get("path") or "")
    if not path:
        return ""
    return f"https://{meta.get('host') or 'localhost'}{path}{_query(path)}"


def _query(path: str) -> str:
    """The query with which clients request a stream from a path; the file has the path alone."""
    protocol = detect("POST", path, b"").protocol
    if protocol is None:
        return ""
    usual, mark, query = protocol.client.path.partition("?")
    return mark + query if path.endswith(usual.rpartition("}")[2]) else ""


def _status(meta: dict[str, Any]) -> int:
    status = meta.get("status")
    return status if isinstance(status, int) else 200
