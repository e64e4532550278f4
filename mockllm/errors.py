"""The whole exception tree.

MockLLMError
├── ScenarioError        scenario files that cannot be loaded; carries every problem found
├── StreamFormatError    bytes that are not the stream they should be
│   ├── SSEError         an SSE line or event beyond its bound, or not UTF-8
│   └── WireError        a frame or body that does not have its protocol's shape
├── RequestError         a request that the API itself would refuse; becomes its error body
│   ├── NoMatchError     no scenario, or no turn of it, answers the request
│   └── ExpectationError the turn's `request:` conditions are not met
├── NotExpressibleError  a turn that a protocol cannot say
├── UpstreamError        the real service behind a recording server gives no (whole) answer
└── UsageError           wrong use of the command line or of the Python interface

Messages say what, where and what to do next.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

__all__ = [
    "ExpectationError",
    "MockLLMError",
    "NoMatchError",
    "NotExpressibleError",
    "Problem",
    "RequestError",
    "SSEError",
    "ScenarioError",
    "StreamFormatError",
    "UpstreamError",
    "UsageError",
    "WireError",
]


class MockLLMError(Exception):
    """Root of everything mockllm raises on purpose."""


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One thing wrong in one place of a scenario file; lines and columns count from 1."""

    file: str
    line: int
    column: int
    path: str = field(default="")
    message: str = field(default="")

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}:{self.column}"
        return f"{where}: {self.path}: {self.message}" if self.path else f"{where}: {self.message}"


class ScenarioError(MockLLMError):
    """Scenario files that cannot be loaded; `problems` holds all of them, in file order."""

    def __init__(self, problems: list[Problem]) -> None:
        self.problems: tuple[Problem, ...] = tuple(sorted(problems))
        super().__init__("\n".join(str(problem) for problem in self.problems))


class StreamFormatError(MockLLMError):
    """Bytes that are not the stream they should be."""


class SSEError(StreamFormatError):
    """An SSE line or event beyond its bound, or bytes that are not UTF-8."""


class WireError(StreamFormatError):
    """A frame or body that does not have its protocol's shape."""


class RequestError(MockLLMError):
    """A request that is refused; every protocol turns it into its own error body.

    `status` is the HTTP status; `type`, `param` and `code` are the fields of that name in the
    error bodies of the APIs, left out (None) where an API has no such field. A `type` of None
    means the one that the API gives to this status. `retry_after` is in seconds, for the APIs
    whose bodies tell it.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int = 400,
        type: str | None = None,
        param: str | None = None,
        code: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.type = type
        self.param = param
        self.code = code
        self.retry_after = retry_after


class NoMatchError(RequestError):
    """No scenario, or no turn of the scenario, answers the request."""


class ExpectationError(RequestError):
    """The request does not meet the `request:` conditions of the turn that would answer it."""


class NotExpressibleError(MockLLMError):
    """A turn holds something that the protocol asked for has no way to say."""


class UpstreamError(MockLLMError):
    """The real service behind a recording server gives no answer, or not the whole of it; `how`
    tells how the connection ended once the answer had begun."""

    def __init__(self, message: str, how: Literal["", "closed", "reset"] = "") -> None:
        super().__init__(message)
        self.how: Literal["", "closed", "reset"] = how


class UsageError(MockLLMError):
    """Wrong use of the command line or of the Python interface."""
