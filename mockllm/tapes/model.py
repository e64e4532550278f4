"""A tape: the exact bytes of a recorded answer, with their times. Only data may live here."""

from __future__ import annotations

from dataclasses import dataclass

from mockllm.core.http import TimedBytes
from mockllm.scenario.model import Api
from mockllm.tapes.captured import Cut

FORMAT_VERSION = 1
MARK = "mockllm-tape"
"""The key in the first line that marks a file as a tape."""


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """The request of a recorded answer, without its secrets; names of headers in lower case."""

    method: str
    url: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Tape:
    """A recorded answer, names of headers in lower case.

    Args:
        api: the name of its protocol; "" if the exchange has no known protocol.
        streamed: whether the request was for a stream.
        chunks: of its body as they arrived, not decompressed, in microseconds after the request.
        reason: the reason phrase of the status line; None for the usual one of the status.
    """

    api: Api
    streamed: bool
    status: int
    headers: tuple[tuple[str, str], ...]
    chunks: tuple[TimedBytes, ...]
    cut: Cut = ""
    request: RecordedRequest | None = None
    reason: str | None = None
    trailers: tuple[tuple[str, str], ...] = ()
