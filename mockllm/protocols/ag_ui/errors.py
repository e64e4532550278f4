"""Error answers over HTTP, and the headers of answers.

AG-UI defines no error body: clients show the text of an answer whose status is not 2xx. mockllm's
body is `{"error": {"message", "code"}}`.
"""

from __future__ import annotations

from typing import Any

from mockllm.errors import RequestError
from mockllm.protocols.base import Reply
from mockllm.protocols.service import content_headers

__all__ = ["error_body", "error_headers", "headers"]

_CODES = {
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    408: "timeout",
    413: "too_large",
    422: "invalid_input",
    429: "rate_limited",
    503: "overloaded",
    504: "timeout",
    529: "overloaded",
}


def error_body(error: RequestError) -> dict[str, Any]:
    """An error as `{"error": {"message", "code"}}`; the code is the error's, or its type, or the
    usual one of the status."""
    usual = "server_error" if error.status >= 500 else "bad_request"
    code = error.code or error.type or _CODES.get(error.status, usual)
    return {"error": {"message": error.message, "code": code}}


def error_headers(seed: str, error: RequestError, retry_after: float | None) -> dict[str, str]:
    """The headers of an error answer; `retry_after`, in seconds, is rounded up to whole seconds."""
    headers = {"content-type": "application/json"}
    if retry_after is not None:
        headers["retry-after"] = str(-(-round(retry_after * 1000) // 1000))
    return headers


def headers(reply: Reply, stream: bool) -> dict[str, str]:
    """The headers of a successful answer."""
    return content_headers(stream)
