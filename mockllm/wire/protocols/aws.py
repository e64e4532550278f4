"""Shared by the APIs on Amazon Bedrock: ids of requests, and the names of errors.

https://docs.aws.amazon.com/bedrock/latest/APIReference/CommonErrors.html

An error over HTTP has its type in a header (`ThrottlingException`), one in a stream in the name of
its frame (`throttlingException`). Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mockllm.core.errors import RequestError
from mockllm.core.http import Target
from mockllm.core.seeded import derive_uuid

if TYPE_CHECKING:
    from mockllm.core.quotas import Excess

OVERLOADED = "serviceUnavailableException"
RATE_LIMIT = "throttlingException"
SERVER_ERROR = "internalServerException"

_PADDED = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
PADDINGS = tuple(_PADDED[:size] for size in range(2, len(_PADDED)))
"""The values of `p`, a field of every event that hides how long the others are."""

# https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html#API_runtime_Converse_Errors
_TYPES = {
    401: "UnrecognizedClientException",
    403: "AccessDeniedException",
    404: "ResourceNotFoundException",
    408: "ModelTimeoutException",
    424: "ModelErrorException",
    429: "ThrottlingException",
    503: "ServiceUnavailableException",
    529: "ServiceUnavailableException",
}
_NAMESPACE = "http://internal.amazon.com/coral/com.amazon.bedrock/"
"""What the header has after the type; clients remove it."""


def is_exception(name: str | None) -> bool:
    """Whether a type of an error is one of AWS."""
    return name is not None and name.endswith("Exception")


def exception_name(*types: str | None) -> str:
    """The name of the frame of an error: the first of its types that is one of AWS."""
    name = next(filter(is_exception, types), None) or SERVER_ERROR
    return name[0].lower() + name[1:]


def request_headers(seed: str, *what: object) -> dict[str, str]:
    """The headers that name a request, by an id derived from the seed."""
    return {"x-amzn-requestid": derive_uuid(seed, "request", *what)}


def error_headers(status: int, type: str | None) -> dict[str, str]:
    """The headers that name an error: by its type if that is one of AWS, else by its status."""
    name = type or ""
    if not is_exception(name):
        usual = "InternalServerException" if status >= 500 else "ValidationException"
        name = _TYPES.get(status, usual)
    return {"x-amzn-errortype": f"{name[0].upper()}{name[1:]}:{_NAMESPACE}"}


def quota_error(_target: Target, excess: Excess) -> RequestError:
    """The error for a request that exceeds a limit. The service says neither which, nor how long to
    wait."""
    what = "requests" if excess.limit.resource == "requests" else "tokens"
    message = f"Too many {what}, please wait before trying again."
    return RequestError(message, status=429, type=RATE_LIMIT, retry_after=excess.wait)
