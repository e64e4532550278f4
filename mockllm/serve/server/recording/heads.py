"""The heads of what passes between a client and a service: fields of one connection stay here
(RFC 9110, section 7.6.1), all others pass unchanged."""

from __future__ import annotations

from aiohttp import web

from mockllm.play.replay.compilation.http_answer import CORS, LAST_CHUNK
from mockllm.serve.server.recording.upstream import RawHeaders, Upstream, end_to_end
from mockllm.wire.framing.content_coding import codings

_OURS = b"x-mockllm-"
_RECOMPUTED = (b"host", b"expect")
_DECODED = ("gzip", "deflate", "br", "zstd")
"""The codings of a request's body that aiohttp decodes before it comes here."""
_NO_BODY = frozenset({204, 304})
"""RFC 9110, sections 15.3.5 and 15.4.5."""

SWITCHING = 101
UPGRADE = ((b"Connection", b"Upgrade"), (b"Upgrade", b"websocket"))
"""The answer that opens a WebSocket (RFC 6455, section 4.2.2)."""


def body_length(request: web.BaseRequest, upstream: Upstream) -> int | None:
    """The bytes of the body of an answer; None where they are not announced."""
    if request.method == "HEAD" or upstream.response.status in _NO_BODY:
        return 0
    length = upstream.response.headers.get("Content-Length")
    return None if length is None else int(length)


def request_headers(request: web.BaseRequest, *, readable: bool, plain: bool = False) -> RawHeaders:
    """The client's headers as the service gets them.

    Args:
        readable: ask for no compression, and no extension of a WebSocket, that a recording cannot
            undo.
        plain: ask for none at all: faults strike in events that can be read.
    """
    out: list[tuple[bytes, bytes]] = []
    decoded = request.headers.get("Content-Encoding", "").lower() in _DECODED
    for name, value in end_to_end(request.raw_headers):
        key = name.lower()
        if key in _RECOMPUTED or key.startswith(_OURS):
            continue
        if decoded and key in (b"content-encoding", b"content-length"):
            continue
        if key == b"accept-encoding" and plain:
            value = b"identity"
        elif key == b"accept-encoding" and readable:
            value = _readable(value)
        elif key == b"sec-websocket-extensions" and readable:
            value = _known_extensions(value)
        if not value and key == b"sec-websocket-extensions":
            continue
        out.append((name, value))
    return tuple(out)


def _readable(accepted: bytes) -> bytes:
    offered = [part.strip() for part in accepted.decode("latin-1").split(",")]
    known = {*codings(), "identity"}
    kept = [part for part in offered if part.partition(";")[0].strip().lower() in known]
    return ", ".join(kept).encode("latin-1") or b"identity"


def _known_extensions(offered: bytes) -> bytes:
    offers = (offer.strip() for offer in offered.split(b","))
    return b", ".join(offer for offer in offers if offer.startswith(b"permessage-deflate"))


def answer_head(
    upstream: Upstream, headers: RawHeaders, *, framed: bool, close: bool, for_page: bool = False
) -> bytes:
    """The head of the service's answer for the client.

    Args:
        headers: of the answer, as the client gets them.
        for_page: whether a page in a browser gets it, which must be allowed to read it.
    """
    response = upstream.response
    lines = [f"HTTP/1.1 {response.status} {upstream.reason}".encode("latin-1")]
    lines += [name + b": " + value for name, value in headers]
    if for_page:
        names = {name.decode("latin-1").lower() for name, _ in headers}
        if "access-control-allow-origin" not in names:
            lines += [f"{name}: {CORS[name]}".encode() for name in CORS if name not in names]
    if framed:
        lines.append(b"Transfer-Encoding: chunked")
    if close:
        lines.append(b"Connection: close")
    return b"\r\n".join(lines) + b"\r\n\r\n"


def last_chunk(trailers: RawHeaders) -> bytes:
    """The end of an answer in HTTP chunks."""
    if not trailers:
        return LAST_CHUNK
    lines = b"".join(name + b": " + value + b"\r\n" for name, value in trailers)
    return b"0\r\n" + lines + b"\r\n"
