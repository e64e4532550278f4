"""Errors and headers of answers over HTTP."""

from __future__ import annotations

from mockllm.core.errors import RequestError
from mockllm.core.seeded import derive
from mockllm.wire.protocols.base import Lookup, Reply, retry_header
from mockllm.wire.protocols.records import Json
from tests.sixth_protocol.echo.acts import write_mishap

_KINDS = {401: "stranger", 404: "unheard", 429: "too_loud"}


def error_body(error: RequestError) -> Json:
    """An error as `{"mishap": {"words", "kind", "number"}}`."""
    usual = "collapse" if error.status >= 500 else "misspoken"
    kind = error.type or _KINDS.get(error.status, usual)
    return {"mishap": write_mishap(error.message, kind, error.code)}


def error_headers(seed: str, error: RequestError) -> dict[str, str]:
    """The headers of an error."""
    return {"content-type": "application/json", **retry_header(error.retry_after)}


def headers(reply: Reply, stream: bool) -> dict[str, str]:
    """The headers of a successful answer."""
    kind = "text/event-stream" if stream else "application/json"
    return {"content-type": kind, "x-echo-hall": derive(reply.seed, "hall", length=8)}


def voices(lookup: Lookup) -> Json:
    """The list of models."""
    return {"voices": list(lookup.models)}
