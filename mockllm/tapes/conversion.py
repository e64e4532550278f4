"""Between a tape, the exchange that it was recorded from, and the neutral request of that. Pure."""

from __future__ import annotations

from urllib.parse import urlsplit

from mockllm.core.request import Request
from mockllm.errors import RequestError
from mockllm.protocols.detection import Detected, detect, json_object_of
from mockllm.tapes.captured import Captured
from mockllm.tapes.model import RecordedRequest, Tape

__all__ = ["captured_of", "detected", "request_of", "taped"]


def detected(exchange: Captured) -> Detected:
    """The API that an exchange is of, and what its path and query say; never fails."""
    return detect(exchange.method, exchange.url, exchange.request_body)


def request_of(exchange: Captured, found: Detected) -> Request:
    """The neutral request of an exchange.

    Args:
        found: what `detected` says of the exchange; it has a protocol.

    Raises:
        RequestError: its body is none that the protocol knows.
    """
    protocol = found.protocol
    assert protocol is not None
    body = json_object_of(exchange.request_body)
    if body is None:
        raise RequestError("the request is no JSON object")
    return protocol.parse(body, found.target, False)


def taped(captured: Captured) -> Tape:
    """An exchange as a tape that belongs to no turn yet; `captured_of` is its inverse, but for
    when it was and where it came from."""
    protocol = detected(captured).protocol
    return Tape(
        api="" if protocol is None else protocol.name,
        streamed=False,
        status=captured.status,
        headers=captured.headers,
        chunks=captured.chunks,
        cut=captured.cut,
        request=RecordedRequest(
            captured.method, captured.url, captured.request_headers, captured.request_body
        ),
    )


def captured_of(tape: Tape) -> Captured:
    """What was captured when a tape was recorded."""
    request = tape.request or RecordedRequest("", "")
    path = urlsplit(request.url).path
    return Captured(
        request.method,
        request.url,
        request.headers,
        request.body,
        tape.status,
        tape.headers,
        tape.chunks,
        tape.cut,
        source=f"{request.method} {path}",
    )
