"""Gemini's errors, in answers and in streams, and the headers of its answers.

https://ai.google.dev/gemini-api/docs/troubleshooting and https://cloud.google.com/apis/design/errors
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from mockllm.core.errors import RequestError
from mockllm.core.events import StreamError
from mockllm.core.http import Target
from mockllm.wire.protocols.base import Reply
from mockllm.wire.protocols.checks import Checks
from mockllm.wire.protocols.gemini_common import google_headers
from mockllm.wire.protocols.records import Json, service_errors
from mockllm.wire.protocols.values import mapping, string

if TYPE_CHECKING:
    from mockllm.core.quotas import Excess

SERVICE_ERRORS = service_errors(
    StreamError("The model is overloaded. Please try again later.", "UNAVAILABLE"),
    StreamError("Resource has been exhausted (e.g. check quota).", "RESOURCE_EXHAUSTED"),
    StreamError("An internal error has occurred. Please retry.", "INTERNAL"),
)
"""The errors that do not depend on the request."""

NO_MESSAGE = "the stream reports an error"

# https://github.com/googleapis/googleapis/blob/master/google/rpc/code.proto
HTTP_STATUSES = {
    "CANCELLED": 499,
    "UNKNOWN": 500,
    "INVALID_ARGUMENT": 400,
    "DEADLINE_EXCEEDED": 504,
    "NOT_FOUND": 404,
    "ALREADY_EXISTS": 409,
    "PERMISSION_DENIED": 403,
    "RESOURCE_EXHAUSTED": 429,
    "FAILED_PRECONDITION": 400,
    "ABORTED": 409,
    "OUT_OF_RANGE": 400,
    "UNIMPLEMENTED": 501,
    "INTERNAL": 500,
    "UNAVAILABLE": 503,
    "DATA_LOSS": 500,
    "UNAUTHENTICATED": 401,
}
"""The codes of google.rpc in the order of their numbers, from 1, with their HTTP statuses."""

# Those of 400 and 500 have several names, and the usual ones are in `_status`.
_STATUSES = {code: name for name, code in HTTP_STATUSES.items() if code not in (400, 500)} | {
    405: "UNIMPLEMENTED",
    408: "DEADLINE_EXCEEDED",
    529: "UNAVAILABLE",
}
_OTHER_TYPES = {
    "authentication_error": "UNAUTHENTICATED",
    "invalid_request_error": "INVALID_ARGUMENT",
    "not_found_error": "NOT_FOUND",
    "overloaded_error": "UNAVAILABLE",
    "permission_error": "PERMISSION_DENIED",
    "rate_limit_error": "RESOURCE_EXHAUSTED",
    "rate_limit_exceeded": "RESOURCE_EXHAUSTED",
    "service_unavailable_error": "UNAVAILABLE",
    "timeout_error": "DEADLINE_EXCEEDED",
}
_RPC = "type.googleapis.com/google.rpc."
_SERVICE = "generativelanguage.googleapis.com"


def _status(code: int) -> str:
    return _STATUSES.get(code, "INTERNAL" if code >= 500 else "INVALID_ARGUMENT")


# Errors of requests


def error_body(error: RequestError) -> Json:
    """An error as `{"error": {"code", "message", "status", "details"}}`. `code` is the HTTP status.
    The time to wait (`RetryInfo`), the faulty field (`BadRequest`) and the error's code
    (`ErrorInfo`) are in `details`, which is left out where there are none."""
    status = error.type if error.type in HTTP_STATUSES else _status(error.status)
    details = _details(error, status)
    return {
        "error": {
            "code": error.status,
            "message": error.message,
            "status": status,
            **({"details": details} if details else {}),
        }
    }


def _details(error: RequestError, status: str) -> list[Json]:
    details: list[Json] = []
    if status == "RESOURCE_EXHAUSTED":
        violations = [error.violation or _VIOLATION]
        details.append({"@type": f"{_RPC}QuotaFailure", "violations": violations})
    if error.retry_after is not None:
        delay = _delay(error.retry_after)
        details.append({"@type": f"{_RPC}RetryInfo", "retryDelay": delay})
    if error.code is not None:
        reason = error.code.upper()
        origin = {"domain": "googleapis.com", "metadata": {"service": _SERVICE}}
        details.append({"@type": f"{_RPC}ErrorInfo", "reason": reason, **origin})
    if error.param is not None:
        violation = {"field": error.param, "description": error.message}
        details.append({"@type": f"{_RPC}BadRequest", "fieldViolations": [violation]})
    return details


def _delay(seconds: float) -> str:
    text = f"{seconds:.9f}".rstrip("0").rstrip(".")
    return f"{text}s"


_METRICS = {
    "requests": ("requests", "GenerateRequests", "PerProjectPerModel"),
    "tokens": ("input_token_count", "GenerateContentInputTokens", "PerModel"),
    "input-tokens": ("input_token_count", "GenerateContentInputTokens", "PerModel"),
    "output-tokens": ("output_token_count", "GenerateContentOutputTokens", "PerModel"),
}
"""By resource, the end of the metric's name and the parts of the quota's id."""


def quota_error(_target: Target, excess: Excess) -> RequestError:
    """The error for a request that exceeds a limit: its `details` have the quota and the delay."""
    limit = excess.limit
    end, before, after = _METRICS[limit.resource]
    metric = f"{_SERVICE}/generate_content_free_tier_{end}"
    message = (
        "You exceeded your current quota, please check your plan and billing details. For more "
        "information on this error, head to: https://ai.google.dev/gemini-api/docs/rate-limits. \n"
        f"* Quota exceeded for metric: {metric}, limit: {limit.amount}, model: {excess.model}\n"
    )
    if excess.wait is not None:
        message += f"Please retry in {_delay(excess.wait)}."
    return RequestError(
        message,
        status=429,
        retry_after=excess.wait,
        violation={
            "quotaMetric": metric,
            "quotaId": f"{before}Per{limit.period.capitalize()}{after}-FreeTier",
            "quotaDimensions": {"location": "global", "model": excess.model},
            "quotaValue": str(limit.amount),
        },
    )


_VIOLATION = {
    "quotaMetric": f"{_SERVICE}/generate_content_free_tier_requests",
    "quotaId": "GenerateRequestsPerMinutePerProjectPerModel-FreeTier",
    "quotaDimensions": {"location": "global"},
    "quotaValue": "10",
}


def error_headers(seed: str, error: RequestError) -> dict[str, str]:
    """The headers of an error answer. The delay is in the body: the service sends no `retry-after`.

    Args:
        seed: the service's processing time is derived from it.
    """
    return {"content-type": _JSON, **google_headers(seed, "error", error.status)}


def unfit(where: str, problem: str) -> RequestError:
    """A field that breaks a rule of the request, e.g. `unfit("contents", "is empty")`."""
    return RequestError(f"* GenerateContentRequest.{where}: {problem}\n", param=where)


def invalid(where: str, type: str, got: object) -> RequestError:
    """A value of the wrong kind; `type` is the protocol buffer's, e.g. `TYPE_INT32`."""
    value = json.dumps(got, ensure_ascii=False)[:200]
    return RequestError(f"Invalid value at '{where}' ({type}), {value}", param=where)


def _outside(where: str, got: float, low: float, high: float | None, whole: bool) -> RequestError:
    bounds = f"at least {low:g}" if high is None else f"in the range [{low:g}, {high:g}]"
    return unfit(where, f"{where.rpartition('.')[2]} must be {bounds}.")


CHECKS = Checks(
    invalid,
    a_string="TYPE_STRING",
    an_object="TYPE_MESSAGE",
    an_array="TYPE_MESSAGE",
    an_integer="TYPE_INT32",
    a_decimal="TYPE_FLOAT",
    outside=_outside,
)
TEXT, OBJECT = CHECKS.text, CHECKS.mapping


# Errors inside a stream


def status_of(error: StreamError) -> tuple[int, str]:
    """The `code` and `status` for an error of any API."""
    code = error.code or ""
    number = int(code) if len(code) == 3 and code.isascii() and code.isdigit() else 0
    for name in (error.type, error.code):
        status = _OTHER_TYPES.get(name or "", name or "")
        if status in HTTP_STATUSES:
            return number or HTTP_STATUSES[status], status
    return (number, _status(number)) if number >= 400 else (500, "INTERNAL")


def error_of(value: object) -> StreamError:
    """The error in a chunk or body."""
    if isinstance(value, str):
        return StreamError(value)
    error = mapping(value)
    code = error.get("code")
    return StreamError(
        string(error.get("message")) or NO_MESSAGE,
        string(error.get("status")) or None,
        str(code) if type(code) is int or (isinstance(code, str) and code) else None,
    )


# Headers

_JSON = "application/json; charset=UTF-8"


def answer_headers(reply: Reply, stream: bool) -> dict[str, str]:
    """The headers of a successful answer; a stream may be events or one JSON array."""
    if not stream:
        return {"content-type": _JSON, **google_headers(reply.seed, "answer")}
    return {
        "content-type": "application/json" if reply.options.array else "text/event-stream",
        "content-disposition": "attachment",
        **google_headers(reply.seed, "answer"),
    }
