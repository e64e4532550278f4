"""Cases of HTTP errors: which are repeated, and when."""

from __future__ import annotations

from collections.abc import Iterator

from mockllm.checking.resilience.written import WORDS, Written, tried
from mockllm.errors import RequestError
from mockllm.protocols.base import WireProtocol, dumps
from mockllm.scenario.model import ErrorSpec, Http, TurnSpec

__all__ = ["final_errors", "statuses", "waits"]

_QUOTA = "insufficient_quota"


def statuses() -> Iterator[Written]:
    """Every request gets the same error."""
    for status in (400, 401, 403, 404, 422):
        yield Written(
            f"status-{status}",
            f"every request gets status {status}",
            ("no-retry-where-useless", "error-names-cause"),
            WORDS,
            {"faults": (f"status:status={status}",), "kinds": frozenset({"request"})},
        )
    yield Written(
        "status-503",
        "every request gets status 503",
        ("retry-bounded", "error-names-cause", "retry-same"),
        WORDS,
        {"faults": ("status:status=503",), "kinds": frozenset({"overloaded", "server"})},
    )
    yield Written(
        "status-429",
        "every request gets status 429",
        ("retry-bounded", "error-names-cause"),
        WORDS,
        {"faults": ("status:status=429",), "kinds": frozenset({"rate_limit"})},
    )
    yield Written(
        "refused",
        "every connection is closed before an answer",
        ("retry-bounded", "error-names-cause"),
        WORDS,
        {"faults": ("refuse:end=reset",), "kinds": frozenset({"network"})},
    )


def final_errors(protocol: WireProtocol) -> Iterator[Written]:
    """An error that stays, with a status that does not; where the API's errors have such codes."""
    error = RequestError("You exceeded your quota.", status=429, type=_QUOTA, code=_QUOTA)
    if _QUOTA in dumps(protocol.error_body(error)):
        final = Http(429, error=ErrorSpec(error.message, _QUOTA, _QUOTA))
        yield Written(
            "final-error",
            f"every request gets status 429 with the code {_QUOTA}",
            ("no-retry-where-useless",),
            TurnSpec(http=final),
            {"final": _QUOTA},
        )


def waits(protocol: WireProtocol) -> Iterator[Written]:
    """Errors that say how long to wait, and one that does not."""
    for form, wait in (("seconds", 1.0), ("date", 1.0), ("ms", 0.3)):
        if form == "ms" and not _knows_milliseconds(protocol):
            continue
        yield Written(
            f"retry-after-{form}",
            f"status 429 says to wait {wait:g} s ({form}); the next request is answered",
            ("retry-after-honoured",),
            tried(WORDS, f"status:status=429,retry_after={wait:g}s,retry_form={form}"),
            {"wait": wait},
        )
    yield Written(
        "retry-after-overloaded",
        "status 503 says to wait 1 s; the next request is answered",
        ("retry-after-honoured",),
        tried(WORDS, "status:status=503,retry_after=1s,retry_form=seconds"),
        {"wait": 1.0},
    )
    yield Written(
        "retry-after-too-long",
        "status 429 says to wait an hour",
        ("retry-after-honoured",),
        tried(WORDS, "status:status=429,retry_after=60m,retry_form=seconds"),
        {"wait": 3600.0},
    )
    yield Written(
        "backoff",
        "status 503 four times, without a time to wait",
        ("backoff-grows",),
        WORDS,
        {"faults": ("status:status=503",), "tries": 4, "requests": 3, "deadline": 30.0},
    )


def _knows_milliseconds(protocol: WireProtocol) -> bool:
    """Whether the service sends `retry-after-ms`."""
    return "retry-after-ms" in protocol.error_headers("", RequestError("", status=429), 1.0)
