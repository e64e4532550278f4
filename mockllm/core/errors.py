"""All exceptions that mockllm raises on purpose, as a tree, and its warning.

MockLLMError
├── ScenarioError        scenario files that cannot be loaded; has every problem found
├── StreamFormatError    bytes that are not a stream or body of the expected format
│   ├── SSEError         an SSE line or event that is too long
│   └── WireError        a frame or body that does not have its protocol's form
├── RequestError         a request that is refused; becomes the API's error body
│   ├── NoMatchError     no scenario, or no turn of it, answers the request
│   └── ExpectationError the turn's `request:` conditions are not met
├── ProbeError           a client or gateway that cannot be run; its cases are not judged
├── UpstreamError        the real service behind a recording server gives no complete answer
└── UsageError           wrong use of the command line or of the Python interface
    └── NotStartedError  a command of the user that cannot be started

CollisionWarning         a `UserWarning`: another distribution has files in this package

Messages state what is wrong, where, and what to do next. Bytes of a stream that are not UTF-8 are
no error: the SSE specification replaces them by U+FFFD (`framing.sse.SSEDecoder`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal


class MockLLMError(Exception):
    """The base of all exceptions that mockllm raises on purpose."""


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One mistake in a scenario file or tape; lines and columns count from 1, and are 0 where
    nobody wrote a file.

    `path` is the path of the field, as in `turns[0].reply[1].text`; "" for the whole file.
    """

    file: str
    line: int
    column: int
    path: str = field(default="")
    message: str = field(default="")

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        return f"{where}: {self.path}: {self.message}" if self.path else f"{where}: {self.message}"


class ScenarioError(MockLLMError):
    """Scenario files that cannot be loaded; `problems` has all mistakes, in file order."""

    def __init__(self, problems: list[Problem]) -> None:
        self.problems: tuple[Problem, ...] = tuple(sorted(problems))
        super().__init__("\n".join(str(problem) for problem in self.problems))


class StreamFormatError(MockLLMError):
    """Bytes that are not a stream or body of the expected format."""


class SSEError(StreamFormatError):
    """An SSE line, or the data of an SSE event, longer than the decoder's limit."""


class WireError(StreamFormatError):
    """A frame or body that does not have its protocol's form, or is not compressed as declared."""


class RequestError(MockLLMError):
    """A request that is refused; every protocol turns it into its own error body.

    Args:
        message: for the client.
        status: the HTTP status.
        type, param, code: the fields of these names in the error bodies of the APIs, or None. A
            `type` of None becomes the usual one of the status.
        retry_after: in seconds, for error bodies that have it (Gemini's `RetryInfo`).
        violation: the quota that is exceeded, for error bodies that name it (Gemini's
            `QuotaFailure`).
        mistake: of the client in a conversation, for the journal: a name in `violations.yaml` of
            the judge; "" for none.
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
        violation: Mapping[str, object] | None = None,
        mistake: str = "",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.type = type
        self.param = param
        self.code = code
        self.retry_after = retry_after
        self.violation = violation
        self.mistake = mistake


class NoMatchError(RequestError):
    """No scenario, or no turn of the scenario, answers the request."""


class ExpectationError(RequestError):
    """The request does not meet the `request:` conditions of the turn that would answer it."""


class ProbeError(MockLLMError):
    """A client under test cannot be run: a missing import, a constructor that fails, a probe
    without `feed`; or a gateway that does not start. No case is judged, because no stream was
    read."""


class UpstreamError(MockLLMError):
    """The real service behind a recording server gives no answer, or an incomplete one.

    `how` is how the connection ended after the answer had begun; "" if it had not. `chunk`: it was
    closed in the middle of an HTTP chunk.
    """

    def __init__(self, message: str, how: Literal["", "closed", "chunk", "reset"] = "") -> None:
        super().__init__(message)
        self.how: Literal["", "closed", "chunk", "reset"] = how


class UsageError(MockLLMError):
    """Wrong use of the command line or of the Python interface."""


class NotStartedError(UsageError):
    """A command of the user that cannot be started.

    Args:
        exit_code: what a shell would give: 127 where there is no such program, else 126.
    """

    def __init__(self, message: str, exit_code: int) -> None:
        self.exit_code = exit_code
        super().__init__(message)


class CollisionWarning(UserWarning):
    """The distribution `mockllm`, which is another project, is installed in this environment, or
    has overwritten or removed files of this package."""
