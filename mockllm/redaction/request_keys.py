"""What finds a recording by its own request: the digest of the request, and where it had secrets.

The recorder writes it beside the tape, and `scrub` makes it anew. Pure.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlsplit

from mockllm.core.request import Request
from mockllm.matching.fingerprint import (
    MAX_STRINGS,
    form_fields,
    redacted_strings,
    request_digest,
    route_digest,
)
from mockllm.matching.routes import normal_path
from mockllm.redaction.placeholders import wildcards
from mockllm.tapes.captured import Captured

RequestKey = tuple[str, tuple[str, ...]]
"""The digest of a request, and JSON pointers to the strings of its body that had secrets."""


def key_of_request(request: Request) -> RequestKey | None:
    """The key of a request for an answer of a model; None if too many strings had secrets."""
    redacted = _redacted(request.body)
    return None if redacted is None else (request_digest(request, redacted), redacted)


def key_of_route(exchange: Captured) -> RequestKey | None:
    """The key of a request that calls no model; None if too many strings had secrets."""
    redacted = _redacted(route_body(exchange))
    if redacted is None:
        return None
    query, kind = urlsplit(exchange.url).query, _content_type(exchange)
    digest = route_digest(
        exchange.method, route_path(exchange), query, kind, exchange.request_body, redacted
    )
    return digest, redacted


def route_path(exchange: Captured) -> str:
    """The path of an exchange as a route has it, in which `*` would stand for any text."""
    return normal_path(urlsplit(exchange.url).path or "/").replace("*", "%2A")


def route_body(exchange: Captured) -> Any:
    """The body of a request as a JSON value; None for none, or for one of another kind."""
    fields = form_fields(_content_type(exchange), exchange.request_body)
    if fields is not None:
        return fields
    try:
        return json.loads(exchange.request_body)
    except (ValueError, RecursionError):
        return None


def _content_type(exchange: Captured) -> str:
    headers = exchange.request_headers
    return next((value for name, value in headers if name.lower() == "content-type"), "")


def _redacted(body: Any) -> tuple[str, ...] | None:
    redacted = redacted_strings(body, lambda text: wildcards(text) is not None)
    return redacted if len(redacted) <= MAX_STRINGS else None
