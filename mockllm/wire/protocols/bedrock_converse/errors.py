"""Errors over HTTP and in streams, and the headers of answers."""

from __future__ import annotations

from mockllm.core.errors import RequestError
from mockllm.core.events import StreamError
from mockllm.wire.framing.eventstream import EVENTSTREAM
from mockllm.wire.protocols import aws
from mockllm.wire.protocols.base import Reply, retry_headers
from mockllm.wire.protocols.checks import Checks
from mockllm.wire.protocols.records import Fields, Json, service_errors
from mockllm.wire.protocols.values import string

SERVICE_ERRORS = service_errors(
    StreamError("The service is temporarily unavailable. Please try again.", aws.OVERLOADED),
    StreamError("Too many requests, please wait before trying again.", aws.RATE_LIMIT),
    StreamError(
        "The system encountered an unexpected error during processing. Try your request again.",
        aws.SERVER_ERROR,
    ),
)
"""The errors that do not depend on the request."""


def error_body(error: RequestError) -> Json:
    """An error as `{"message"}`."""
    return {"message": error.message}


def decode_error(body: Fields) -> StreamError | None:
    """The error in a body, whose type may be in a field of older services of AWS."""
    message = body.get("message", body.get("Message"))
    if not isinstance(message, str) or "output" in body or "role" in body:
        return None
    type = string(body.get("__type")).rpartition("#")[2]
    return StreamError(message, type or None)


def error_headers(seed: str, error: RequestError) -> dict[str, str]:
    """The headers of an error answer."""
    return {
        "content-type": "application/json",
        **aws.request_headers(seed, "error", error.status),
        **aws.error_headers(error.status, error.type),
        **retry_headers(error.retry_after),
    }


def answer_headers(reply: Reply, stream: bool) -> dict[str, str]:
    """The headers of a successful answer."""
    type = EVENTSTREAM.content_type if stream else "application/json"
    return {"content-type": type, **aws.request_headers(reply.seed, "answer")}


# Errors of invalid requests


def validation_error(message: str, where: str) -> RequestError:
    """An error for a request that the service refuses."""
    return RequestError(message, param=where, type="ValidationException")


def _constraint(where: str, value: object, problem: str) -> RequestError:
    message = f"1 validation error detected: Value '{value}' at '{where}' failed to satisfy"
    return validation_error(f"{message} constraint: Member must {problem}", where)


def _missing(where: str) -> RequestError:
    return _constraint(where, "null", "not be null")


def _outside(where: str, got: float, low: float, high: float | None, whole: bool) -> RequestError:
    relation, bound = ("greater", low) if got < low else ("less", high)
    return _constraint(where, got, f"have value {relation} than or equal to {bound:g}")


def _unknown(where: str, got: str, known: tuple[str, ...]) -> RequestError:
    return _constraint(where, got, f"satisfy enum value set: [{', '.join(known)}]")


def _wrong_type(where: str, expected: str, got: object) -> RequestError:
    return validation_error(f"The value at {where or 'the body'} must be {expected}.", where)


CHECKS = Checks(
    _wrong_type,
    a_string="a string",
    an_object="an object",
    an_array="a list",
    an_integer="an integer",
    a_decimal="a number",
    missing=_missing,
    unknown=_unknown,
    outside=_outside,
    item="{}.{}",
)
TEXT = CHECKS.text
