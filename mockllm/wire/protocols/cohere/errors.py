"""Errors and headers of Cohere.

https://docs.cohere.com/reference/errors
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mockllm.core.errors import RequestError
from mockllm.core.events import StreamError
from mockllm.core.http import Target
from mockllm.core.seeded import derive, derive_uuid
from mockllm.wire.protocols.base import Reply, content_headers, retry_headers
from mockllm.wire.protocols.checks import Checks
from mockllm.wire.protocols.records import Fields, Json, service_errors
from mockllm.wire.protocols.values import kind

if TYPE_CHECKING:
    from mockllm.core.quotas import Excess, Level

SERVICE_ERRORS = service_errors(
    StreamError("the service is overloaded, please try again"),
    StreamError("too many requests, please wait and try again"),
    StreamError("internal server error, please try again"),
)

_KINDS = {"an object": "object", "an array": "array", "a string": "string", "null": "null"} | {
    "an integer": "integer",
    "a decimal": "float",
    "a boolean": "bool",
}
_USAGE = "For proper usage, please refer to https://docs.cohere.com/reference/chat"


def error_body(error: RequestError) -> Json:
    """An error as `{"id", "message"}`, which is all that the service says of it."""
    return {"id": derive_uuid(error.message, "error"), "message": error.message}


def decode_error(body: Fields) -> StreamError | None:
    """The error in a body; in an answer, `message` is an object."""
    message = body.get("message")
    return StreamError(message) if isinstance(message, str) and message else None


def error_headers(seed: str, error: RequestError) -> dict[str, str]:
    """The headers of an error answer."""
    headers = {"content-type": "application/json", **_trace(seed, "error", error.status)}
    return headers | retry_headers(error.retry_after)


def answer_headers(reply: Reply, stream: bool) -> dict[str, str]:
    """The headers of a successful answer; all values are derived from `reply.seed`."""
    tokens = reply.usage.input + reply.usage.output
    counts = {"num_chars": str(4 * tokens), "num_tokens": str(tokens)}
    return content_headers(stream) | _trace(reply.seed, "answer") | counts


def quota_headers(_target: Target, levels: Sequence[Level]) -> dict[str, str]:
    """The rest of the requests; refused ones do not say it. The service has no headers for
    tokens."""
    prefix = "x-trial-endpoint-call"
    headers = {}
    for level in levels:
        if level.limit.resource == "requests" and not level.exceeded:
            headers[f"{prefix}-limit"] = str(level.limit.amount)
            headers[f"{prefix}-remaining"] = str(level.remaining)
    return headers


def quota_error(_target: Target, excess: Excess) -> RequestError:
    """The error for a request that exceeds a limit, as for a trial key."""
    limit = excess.limit
    what = "API calls" if limit.resource == "requests" else limit.noun
    return RequestError(
        f"You are using a Trial key, which is limited to {limit.amount} {what} / {limit.period}. "
        "You can continue to use the Trial key for free or upgrade to a Production key with higher "
        "rate limits at 'https://dashboard.cohere.com/api-keys'.",
        status=429,
        retry_after=excess.wait,
    )


def _trace(seed: str, *what: object) -> dict[str, str]:
    return {"x-debug-trace-id": derive(seed, "trace", *what, length=32, hex=True)}


def invalid(message: str, where: str) -> RequestError:
    """A request that the service refuses."""
    return RequestError(f"invalid request: {message}", status=400, param=where)


def wrong_type(where: str, expected: str, got: object) -> RequestError:
    """A field of another type."""
    return invalid(
        f"parameter {where or 'body'} is of type {_KINDS[kind(got)]} but should be of type "
        f"{expected}. {_USAGE}",
        where,
    )


def missing(where: str) -> RequestError:
    """A required field that is missing."""
    return invalid(f"{where} is required. {_USAGE}", where)


def _unknown(where: str, got: str, known: tuple[str, ...]) -> RequestError:
    return invalid(f"{where} must be one of {', '.join(known)}, got {got!r}. {_USAGE}", where)


def _outside(where: str, got: float, low: float, high: float | None, whole: bool) -> RequestError:
    upper = "" if high is None else f" and at most {high:g}"
    return invalid(f"{where} must be at least {low:g}{upper}, got {got:g}. {_USAGE}", where)


CHECKS = Checks(
    wrong_type,
    a_string="string",
    an_object="object",
    an_array="array",
    an_integer="integer",
    a_decimal="float",
    missing=missing,
    unknown=_unknown,
    outside=_outside,
)
TEXT = CHECKS.text
BOOLEAN = CHECKS.of_kind(bool, "bool")
