"""Conversion between a tape, the exchange it was recorded from, and its neutral request. Pure."""

from __future__ import annotations

from urllib.parse import urlsplit

from mockllm.core.request import Request
from mockllm.errors import RequestError
from mockllm.protocols.detection import Detected, detect
from mockllm.protocols.values import json_object
from mockllm.tapes.captured import Captured
from mockllm.tapes.model import RecordedRequest, Tape


def detected(exchange: Captured) -> Detected:
    """The API of an exchange, with its path and query; never fails."""
    return detect(exchange.method, exchange.url, exchange.request_body)


def request_of(exchange: Captured, found: Detected) -> Request:
    """The neutral request of an exchange of a known protocol.

    Raises:
        RequestError: its body is not a request of the protocol.
    """
    protocol = found.protocol
    assert protocol is not None
    body = json_object(exchange.request_body)
    if body is None:
        raise RequestError("the request is no JSON object")
    return protocol.parse(body, found.target, False)


def tape_of(captured: Captured, *, api: str = "", streamed: bool = False) -> Tape:
    """The tape of an exchange, without a turn; `captured_of` is its inverse, except for time and
    source."""
    return Tape(
        api=api,
        streamed=streamed,
        status=captured.status,
        headers=captured.headers,
        chunks=captured.chunks,
        cut=captured.cut,
        request=RecordedRequest(
            captured.method, captured.url, captured.request_headers, captured.request_body
        ),
        reason=captured.reason,
        trailers=captured.trailers,
    )


def captured_of(tape: Tape) -> Captured:
    """The exchange that a tape was recorded from."""
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
        reason=tape.reason,
        trailers=tape.trailers,
    )
