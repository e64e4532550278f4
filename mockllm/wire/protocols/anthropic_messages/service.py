"""The rest of the service: credentials, headers, errors, models, token counts.

https://docs.claude.com/en/api/errors and https://docs.claude.com/en/api/rate-limits
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from mockllm.core.errors import RequestError
from mockllm.core.events import StreamError
from mockllm.core.http import Target
from mockllm.core.seeded import derive_int, derive_uuid
from mockllm.wire.protocols import aws
from mockllm.wire.protocols.anthropic_messages import VERSION_HEADER, bedrock
from mockllm.wire.protocols.anthropic_messages.blocks import DEFAULT_ERROR, UNTHREADED, request_id
from mockllm.wire.protocols.anthropic_messages.request import parse
from mockllm.wire.protocols.base import (
    EPOCH,
    Lookup,
    Reply,
    content_headers,
    counted_tokens,
    looked_up_model,
    retry_headers,
    rfc3339,
)
from mockllm.wire.protocols.records import Json, service_errors

if TYPE_CHECKING:
    from mockllm.core.quotas import Excess, Level

SERVICE_ERRORS = service_errors(
    StreamError("Overloaded", "overloaded_error"),
    StreamError("Number of request tokens has exceeded your rate limit.", "rate_limit_error"),
    StreamError("Internal server error", "api_error"),
    busy=529,
)
"""The errors that do not depend on the request."""


ORGANIZATION = derive_uuid("organization")
"""The account that each answer names."""

# https://docs.claude.com/en/api/errors#http-errors
_TYPES = {
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    408: "timeout_error",
    409: "conflict_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
_LIMITS = {
    "requests": 4_000,
    "tokens": 480_000,
    "input-tokens": 400_000,
    "output-tokens": 80_000,
}


def guard(headers: Mapping[str, str], target: Target) -> None:
    """Raises for a request without credentials or version; any value of them is accepted. On
    Vertex AI the body has the version; requests to Bedrock may be without either.

    Args:
        headers: with names in lower case.
    """
    # anthropic-python 2 sends its key as a bearer token, earlier versions as `x-api-key`.
    if bedrock.is_bedrock(target):
        return
    if not headers.get("x-api-key") and not headers.get("authorization"):
        raise RequestError(
            "x-api-key header is required (`authorization: Bearer …` will do; any value is "
            "accepted here)",
            status=401,
            param="x-api-key",
        )
    if not headers.get(VERSION_HEADER) and not target.method:
        raise RequestError(f"{VERSION_HEADER}: header is required", param=VERSION_HEADER)


# Errors


def error_body(error: RequestError) -> Json:
    """An error as `{"type": "error", "error": {"type", "message"}, "request_id"}`. `error.details`
    is sent only for a thread, where clients act on it."""
    threaded = {"details": {"error_code": UNTHREADED, "unsupported": [error.param or "thread"]}}
    usual = DEFAULT_ERROR if error.status >= 500 else "invalid_request_error"
    kind = error.type or _TYPES.get(error.status, usual)
    return {
        "type": "error",
        "error": {
            "type": kind,
            "message": error.message,
            **(threaded if error.code == UNTHREADED else {}),
        },
        "request_id": _error_id(error),
    }


def error_headers(seed: str, error: RequestError) -> dict[str, str]:
    """The headers of an error answer.

    Args:
        seed: the time at which limits are reset is derived from it.
    """
    headers = {
        "content-type": "application/json",
        "request-id": _error_id(error),
        "anthropic-organization-id": ORGANIZATION,
    }
    if error.status == 429:
        reset = EPOCH + derive_int(seed, "reset", below=7 * 86400)
        headers |= _limits(reset, dict.fromkeys(_LIMITS, 0))
    return headers | retry_headers(error.retry_after)


def _error_id(error: RequestError) -> str:
    """The request id, the same in header and body, so derived from what both have."""
    return request_id("error", error.status, error.type, error.message)


def answer_headers(reply: Reply, stream: bool) -> dict[str, str]:
    """The headers of a successful answer; all values are derived from `reply`."""
    if reply.options == bedrock.BEDROCK:
        return bedrock.headers(reply, stream)
    headers = content_headers(stream)
    used = {
        "requests": 1,
        "tokens": reply.usage.input + reply.usage.output,
        "input-tokens": reply.usage.input,
        "output-tokens": reply.usage.output,
    }
    remaining = {name: max(0, limit - used[name]) for name, limit in _LIMITS.items()}
    identity = {"request-id": request_id(reply.seed), "anthropic-organization-id": ORGANIZATION}
    return headers | identity | _limits(reply.created, remaining)


def _limits(reset: int, remaining: Mapping[str, int]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for name, limit in _LIMITS.items():
        headers |= _limit_headers(name, limit, remaining[name], reset)
    return headers


def _limit_headers(name: str, limit: int, remaining: int, reset: int) -> dict[str, str]:
    prefix = f"anthropic-ratelimit-{name}"
    return {
        f"{prefix}-limit": str(limit),
        f"{prefix}-remaining": str(remaining),
        f"{prefix}-reset": rfc3339(reset),
    }


def quota_headers(target: Target, levels: Sequence[Level]) -> dict[str, str]:
    """The rest of limits; Bedrock does not say it. Those of other limits stay as they are; in a
    refusal, nothing of them is used."""
    headers: dict[str, str] = {}
    if bedrock.is_bedrock(target):
        return headers
    if any(level.exceeded for level in levels):
        headers = _limits(math.ceil(levels[0].now), _LIMITS)
    for level in levels:
        reset, limit = math.ceil(level.reset_at), level.limit
        headers |= _limit_headers(limit.resource, limit.amount, level.remaining, reset)
    return headers


def quota_error(target: Target, excess: Excess) -> RequestError:
    """The error for a request that exceeds a limit."""
    if bedrock.is_bedrock(target):
        return aws.quota_error(target, excess)
    limit = excess.limit
    return RequestError(
        f"This request would exceed the rate limit for your organization ({ORGANIZATION}) of "
        f"{limit.amount:,} {limit.noun} per {limit.period}. For details, refer to: "
        "https://docs.claude.com/en/api/rate-limits. You can see the response headers for current "
        "usage. Please reduce the prompt length or the maximum tokens requested, or try again "
        "later. You may also contact sales at https://www.anthropic.com/contact-sales to discuss "
        "your options for a rate limit increase.",
        status=429,
        retry_after=excess.wait,
    )


# Lookups


def _model_object(name: str) -> Json:
    return {
        "type": "model",
        "id": name,
        "display_name": name,
        "created_at": rfc3339(EPOCH),
        "lifecycle": "active",
    }


def models(lookup: Lookup) -> Json:
    """A page of the models served, by the query's `limit`, `after_id` and `before_id`."""
    return page(list(lookup.models), lookup.target, _model_object)


def page(ids: list[str], target: Target, show: Callable[[str], Json]) -> Json:
    """A page of a list, by the query's `limit`, `after_id` and `before_id`.

    Args:
        show: the object that has an id.
    """
    limit = _limit(target.query.get("limit", "20"))
    after, before = target.query.get("after_id"), target.query.get("before_id")
    if before in ids:
        rest = ids[: ids.index(before)]
        listed = rest[-limit:]
    else:
        rest = ids[ids.index(after) + 1 :] if after in ids else ids
        listed = rest[:limit]
    return {
        "data": list(map(show, listed)),
        "has_more": len(rest) > limit,
        "first_id": listed[0] if listed else None,
        "last_id": listed[-1] if listed else None,
    }


def _limit(text: str) -> int:
    """The number of objects of a page, from the `limit` of a query."""
    if text.isascii() and text.isdigit() and len(text) <= 9 and 1 <= int(text) <= 1000:
        return int(text)
    raise RequestError(
        f"limit: Input should be a valid integer from 1 to 1000, got {text!r}", param="limit"
    )


def model(lookup: Lookup) -> Json:
    """One model."""
    name, served = looked_up_model(lookup)
    if not served:
        raise RequestError(
            f"model: {name} (no scenario answers for it; GET /v1/models lists those that are "
            "served)",
            status=404,
            param="model",
        )
    return _model_object(name)


def count_tokens(lookup: Lookup) -> Json:
    """The number of tokens of a request: of its texts, calls, results and tools."""
    request = parse(lookup.request, lookup.target, False)
    if not isinstance(lookup.request.get("messages"), list):
        raise RequestError("messages: Field required", param="messages")
    return {"input_tokens": counted_tokens(request)}
