"""A stream as `curl -N` printed it, with the request that was sent beside it.

The request of `NAME.sse` is `NAME.request.json`, `NAME.json`, or `request.json` in the same
folder: the body that was sent, or an object with `url` and `body`. Beside it `meta.json` may say
`host`, `path`, `status` and `content_type`. What nobody says is told by the shapes of the bodies.
`curl -i` adds status and headers. Without any request, one is made up whose user says the file's
name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mockllm.errors import UsageError
from mockllm.importers.files import contents, json_value
from mockllm.importers.reading import Found, captured, stored
from mockllm.protocols.base import Json, WireProtocol
from mockllm.protocols.detection import detect_by_body, model_of

__all__ = ["ENDINGS", "beside", "read"]

ENDINGS = (".sse", ".txt", ".http")
"""How the names of dumps end."""

_STATUS = re.compile(rb"HTTP/[\d.]+ (\d{3})[^\n]*\n")
_BLANK = re.compile(rb"\r?\n\r?\n")
_Headers = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class _Asked:
    """What the files beside a dump say: the body as it was sent, and where it went."""

    body: bytes
    value: dict[str, Any] | None
    url: str
    status: int
    kind: str


def beside(path: Path) -> list[Path]:
    """The files beside a dump that belong to it."""
    names = (f"{path.stem}.request.json", f"{path.stem}.json", "request.json")
    request = next((found for name in names if (found := path.with_name(name)).is_file()), None)
    meta = path.with_name("meta.json")
    return [found for found in (request, meta) if found is not None and found.is_file()]


def read(path: Path) -> list[Found]:
    """The exchange of one dump.

    Raises:
        UsageError: a file cannot be read, or nothing tells of which API it is.
    """
    status, headers, body = _answer(contents(path))
    asked = _asked(path)
    protocol = detect_by_body(asked.value, body)
    if protocol is None and not (asked.url and asked.body):
        raise UsageError(
            f"{path}: neither the stream nor a request beside it tells which API it is of; put "
            f"the body that was sent into {path.stem}.request.json"
        )
    kind = dict(headers).get("content-type") or asked.kind or _kind(body)
    streamed = "event-stream" in kind
    model = model_of(asked.value, body)
    sent, url = asked.body, asked.url
    if protocol is not None:
        sent = sent or stored(_minimal(protocol, model, path.stem, stream=streamed))
        url = url or _usual_url(protocol, model, stream=streamed)
    return [
        captured(
            source=str(path),
            method="POST",
            url=url,
            request_headers=(("content-type", "application/json"),),
            request_body=sent,
            status=status or asked.status,
            headers=headers or (("content-type", kind),),
            body=body,
        )
    ]


def _minimal(protocol: WireProtocol, model: str, user: str, *, stream: bool) -> Json:
    """The least request of an API in which the user says something."""
    body = protocol.client.first_request(model or "unknown", user)
    field = protocol.client.stream_field
    return {**body, field: stream} if field else body


def _usual_url(protocol: WireProtocol, model: str, *, stream: bool) -> str:
    """Where a request of an API usually goes."""
    client = protocol.client
    return client.service + client.path_of(model or "unknown", stream=stream)


def _kind(body: bytes) -> str:
    return "application/json" if body.lstrip()[:1] in (b"{", b"[") else "text/event-stream"


def _answer(data: bytes) -> tuple[int | None, _Headers, bytes]:
    """Status, headers and body; interim answers, proxies and redirects before it are passed."""
    status: int | None = None
    headers: _Headers = ()
    while (line := _STATUS.match(data)) is not None:
        blank = _BLANK.search(data, line.end() - 2)
        if blank is None:
            return int(line[1]), _headers(data[line.end() :]), b""
        status, headers = int(line[1]), _headers(data[line.end() : blank.start()])
        data = data[blank.end() :]
    return status, headers, data


def _headers(block: bytes) -> _Headers:
    lines = (line.partition(":") for line in block.decode("latin-1").splitlines())
    # curl has undone the chunks already.
    return tuple(
        (name.strip().lower(), value.strip())
        for name, colon, value in lines
        if colon and name.strip().lower() != "transfer-encoding"
    )


def _asked(path: Path) -> _Asked:
    body, value, url = b"", None, ""
    meta: dict[str, Any] = {}
    for found in beside(path):
        data = contents(found)
        told = json_value(data, found)
        if not isinstance(told, dict):
            raise UsageError(f"{found} must hold a JSON object")
        if found.name == "meta.json":
            meta = told
        elif "body" in told and "url" in told:
            value = told["body"] if isinstance(told["body"], dict) else None
            body, url = stored(told["body"]), str(told["url"])
        else:
            body, value = data, told
    return _Asked(body, value, url or _url(meta), _whole(meta), str(meta.get("content_type") or ""))


def _url(meta: dict[str, Any]) -> str:
    """A recorded event stream of Gemini was asked for as such; the path alone does not say."""
    path = str(meta.get("path") or "")
    if not path:
        return ""
    query = "?alt=sse" if path.endswith(":streamGenerateContent") else ""
    return f"https://{meta.get('host') or 'localhost'}{path}{query}"


def _whole(meta: dict[str, Any]) -> int:
    status = meta.get("status")
    return status if isinstance(status, int) else 200
