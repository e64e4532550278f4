"""Tapes as tests write them: the request in one, the answer in the others."""

from dataclasses import replace
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from mockllm.core.http import TimedBytes
from mockllm.play.tapes.captured import Captured, Cut, Tape

Pairs = tuple[tuple[str, str], ...]


class Sent(NamedTuple):
    """The request of a tape."""

    method: str
    url: str
    headers: Pairs = ()
    body: bytes = b""


UNKNOWN = Sent("", "")


def taped(
    api: str,
    streamed: bool,
    status: int,
    headers: Pairs,
    chunks: tuple[TimedBytes, ...],
    cut: Cut = "",
    request: Sent = UNKNOWN,
    reason: str | None = None,
    trailers: Pairs = (),
) -> Tape:
    """A tape of an answer."""
    source = f"{request.method} {urlsplit(request.url).path}"
    exchange = Captured(
        *request, status, headers, chunks, cut, source=source, reason=reason, trailers=trailers
    )
    return Tape(api, streamed, exchange)


def changed(tape: Tape, *, request: Sent | None = None, **changes: Any) -> Tape:
    """The tape with another request, or with other fields of its exchange."""
    if request is not None:
        names = ("method", "url", "request_headers", "request_body")
        changes |= dict(zip(names, request, strict=True))
    return replace(tape, exchange=replace(tape.exchange, **changes))
