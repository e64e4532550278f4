"""The errors of the client, and which one a failure is.

ClientError
├── RefusedError     the service refuses the request, and would refuse it again
├── RateLimitError   too many requests, or no quota
├── OverloadedError  the service has no capacity
├── ServerError      another failure of the service
├── NetworkError     no connection, or it ended before the answer did
├── StalledError     nothing came for the idle timeout, or no whole answer before the deadline
└── ProtocolError    what came is no stream of the API
"""

import json
import re
import time
from contextlib import suppress
from email.utils import parsedate_to_datetime

import httpx
from apis import error_of


class ClientError(Exception):
    """Why there is no complete answer.

    `partial` is the text that the user was shown; it is incomplete. `retry` is whether the same
    request may succeed later; `retry_after` is in how many seconds, if the service said so.
    """

    kind, retry = "protocol", False

    def __init__(self, message, retry_after=None):
        super().__init__(message)
        self.retry_after, self.partial = retry_after, ""


class RefusedError(ClientError):
    kind = "request"


class RateLimitError(ClientError):
    kind, retry = "rate_limit", True


class OverloadedError(ClientError):
    kind, retry = "overloaded", True


class ServerError(ClientError):
    kind, retry = "server", True


class NetworkError(ClientError):
    kind, retry = "network", True


class StalledError(ClientError):
    kind, retry = "timeout", True


class ProtocolError(ClientError):
    pass


FINAL = re.compile("insufficient_quota|billing")  # waiting does not help against these
NAMES = {  # the error's `type`, `code` and `status`, in the words of all services
    RefusedError: re.compile("invalid|not_found|permission|authenticat|unauthorized|bad_request"),
    OverloadedError: re.compile("overloaded|unavailable"),
    RateLimitError: re.compile("rate_?limit|resource_exhausted|quota|too_many"),
}
STATUSES = {
    408: ServerError,
    409: ServerError,
    429: RateLimitError,
    503: OverloadedError,
    529: OverloadedError,
}


async def failure(response):
    """The error for an answer that is no stream."""
    body = b""
    with suppress(httpx.RequestError):  # a body that is cut or broken does not hide the status
        body = await response.aread()
    shown = f"status {response.status_code}: {body[:200].decode(errors='replace') or 'empty body'}"
    try:
        error = error_of(json.loads(body))
    except (ValueError, AttributeError):
        error = None
    if error is None and response.status_code == 200:  # such as the page of a proxy
        return ProtocolError(f"no stream: {response.headers.get('content-type')}, {shown}")
    return service_error(error, shown, response)


def service_error(error, shown, response=None):
    """The error that a service reports, in a stream or, with a response, in place of one."""
    error = error if isinstance(error, dict) else {"message": str(error)}
    names = " ".join(str(error.get(key, "")) for key in ("type", "code", "status")).lower()
    if response is None or response.status_code == 200:
        kinds = (kind for kind, pattern in NAMES.items() if pattern.search(names))
        return next(kinds, ServerError)(shown)
    status = response.status_code
    kind = STATUSES.get(status, ServerError if status >= 500 else RefusedError)
    found = kind(shown, retry_after(response.headers, error))
    found.retry = kind.retry and not FINAL.search(names)
    if advice := response.headers.get("x-should-retry"):  # the service knows best
        found.retry = advice == "true"
    return found


def retry_after(headers, error):
    """The seconds to wait, in any form that services use; None if there is none."""
    value = headers.get("retry-after", "")
    with suppress(ValueError):
        return max(0.0, float(headers.get("retry-after-ms", "")) / 1000)
    with suppress(ValueError):
        return max(0.0, float(value))
    with suppress(ValueError):
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    for detail in error.get("details") or []:  # Gemini has it in the body
        if found := re.fullmatch(r"([\d.]+)s", str(detail.get("retryDelay", ""))):
            return float(found[1])
    return None
