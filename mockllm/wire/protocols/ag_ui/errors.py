"""Error answers over HTTP, the headers of answers, and the errors of invalid input.

AG-UI defines no error body: clients show the text of an answer whose status is not 2xx. mockllm's
body is `{"error": {"message", "code"}}`.

AG-UI defines the input and not the errors of an agent. Input of another shape gets status 422, as
from agents that validate with the official Python types (FastAPI); an impossible history gets 400.
"""

from __future__ import annotations

from mockllm.core.errors import RequestError
from mockllm.wire.protocols.base import Reply, content_headers, retry_header
from mockllm.wire.protocols.checks import Checks
from mockllm.wire.protocols.records import Json
from mockllm.wire.protocols.values import kind

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


def error_body(error: RequestError) -> Json:
    """An error as `{"error": {"message", "code"}}`; the code is the error's, or its type, or the
    usual one of the status."""
    usual = "server_error" if error.status >= 500 else "bad_request"
    code = error.code or error.type or _CODES.get(error.status, usual)
    return {"error": {"message": error.message, "code": code}}


def error_headers(seed: str, error: RequestError) -> dict[str, str]:
    """The headers of an error answer."""
    return {"content-type": "application/json", **retry_header(error.retry_after)}


def headers(reply: Reply, stream: bool) -> dict[str, str]:
    """The headers of a successful answer."""
    return content_headers(stream)


# Errors of invalid input


def _invalid(message: str, where: str) -> RequestError:
    return RequestError(message, status=422, param=where, code="invalid_input")


def _missing(where: str) -> RequestError:
    return _invalid(f"{where} is missing; field names are written in camelCase.", where)


def wrong_type(where: str, expected: str, got: object) -> RequestError:
    """A value of the wrong kind, e.g. `wrong_type("runId", "a string", 5)`; "" is the body."""
    place = where or "the body"
    given = "an empty string" if got == "" else kind(got)
    given = "a number" if given in ("an integer", "a decimal") else given
    return _invalid(f"{place} must be {expected}, got {given}.", place)


def _unknown_value(where: str, got: str, known: tuple[str, ...]) -> RequestError:
    return _invalid(f"{where} must be one of {', '.join(known)}, got {got!r}.", where)


def impossible_history(message: str, where: str) -> RequestError:
    """A history that is impossible although its messages are well-formed."""
    return RequestError(message, status=400, param=where, code="invalid_history")


CHECKS = Checks(
    wrong_type,
    a_string="a string",
    an_object="an object",
    an_array="an array",
    missing=_missing,
    unknown=_unknown_value,
    null_is_missing=False,
)
TEXT = CHECKS.text
