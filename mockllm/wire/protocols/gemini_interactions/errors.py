"""Errors of Interactions, in answers and in streams, and the headers of its answers.

https://ai.google.dev/gemini-api/docs/interactions/errors
"""

from __future__ import annotations

from typing import Any

from mockllm.core.errors import RequestError
from mockllm.core.events import StreamError
from mockllm.core.text import display
from mockllm.core.turn import Turn
from mockllm.wire.protocols.base import Reply, retry_header, turn_error
from mockllm.wire.protocols.checks import Checks
from mockllm.wire.protocols.gemini_common import google_headers
from mockllm.wire.protocols.gemini_interactions.fields import BLOCKED, BLOCKED_MESSAGE
from mockllm.wire.protocols.records import Fields, Json, service_errors
from mockllm.wire.protocols.values import kind, mapping, string

_CODES = {
    400: "invalid_request",
    401: "authentication",
    402: "payment_required",
    403: "permission_denied",
    404: "not_found",
    409: "aborted",
    416: "out_of_range",
    429: "rate_limit_exceeded",
    499: "cancelled",
    501: "unimplemented",
    503: "service_unavailable",
    504: "deadline_exceeded",
}
"""The usual `code` of a status."""

_DEFAULT = "api_error"

SERVICE_ERRORS = service_errors(
    StreamError("The model is overloaded. Please try again later.", "service_unavailable"),
    StreamError("Resource has been exhausted (e.g. check quota).", "rate_limit_exceeded"),
    StreamError("An internal error has occurred. Please retry.", _DEFAULT),
)
"""The errors that do not depend on the request."""


def invalid(where: str, problem: str, code: str | None = None) -> RequestError:
    """A field that the service refuses."""
    return RequestError(problem, param=where, code=code)


def _wrong_type(where: str, expected: str, value: object) -> RequestError:
    got = f"expected {expected}, got {kind(value)}"
    return invalid(where, f"Invalid input at '{where}': {got}.")


CHECKS = Checks(
    _wrong_type,
    a_string="a string",
    an_object="an object",
    an_array="an array",
    an_integer="an integer",
    a_decimal="a number",
    missing=lambda where: invalid(where, f"Missing required field '{where}'."),
    unknown=lambda where, value, _: invalid(
        where, f"The value '{value}' is not supported at '{where}'."
    ),
    outside=lambda where, got, low, high, whole: invalid(
        where, f"Invalid input at '{where}': {display(got)} is out of range."
    ),
)


def error_body(error: RequestError) -> Json:
    """An error as `{"error": {"message", "code"}}`."""
    usual = _CODES.get(error.status, _DEFAULT if error.status >= 500 else _CODES[400])
    return {"error": {"message": error.message, "code": error.code or error.type or usual}}


def error_headers(seed: str, error: RequestError) -> dict[str, str]:
    """The headers of an error answer.

    Args:
        seed: the service's processing time is derived from it.
    """
    return {
        "content-type": "application/json",
        **google_headers(seed, "error", error.status),
        **retry_header(error.retry_after),
    }


def answer_headers(reply: Reply, stream: bool) -> dict[str, str]:
    """The headers of a successful answer. SDKs refuse all other types of content."""
    content_type = "text/event-stream" if stream else "application/json"
    return {"content-type": content_type, **google_headers(reply.seed, "answer")}


def whole_error(turn: Turn) -> RequestError | None:
    """The error in place of the body of a turn that ends in one, or that the service blocks."""
    if turn.finish != "content_filter":
        return turn_error(turn)
    code = turn.finish_raw if turn.finish_raw in BLOCKED else BLOCKED[0]
    return RequestError(BLOCKED_MESSAGE, code=code)


def write_error(error: StreamError) -> Json:
    """The event of an error in the stream; nothing follows it."""
    code = error.type or error.code or _DEFAULT
    return {"error": {"message": error.message, "code": code}, "event_type": "error"}


def read_error(value: object) -> StreamError | None:
    """The error in an event or a body; None where there is none. Google's servers before the
    service have a number as `code`, and a `status`."""
    if isinstance(value, str) and value:
        return StreamError(value)
    error: Fields = mapping(value)
    if not error:
        return None
    code: Any = error.get("code")
    number = str(code) if type(code) is int else None
    word = string(error.get("status")) if number else string(code)
    return StreamError(string(error.get("message")), word or None, number)
