"""A tape: the exact bytes of a recorded answer, with their times. Only data may live here."""

from __future__ import annotations

from dataclasses import dataclass

from mockllm.core.timed_bytes import TimedBytes
from mockllm.scenario.model import Api
from mockllm.tapes.captured import Cut

FORMAT_VERSION = 1
MARK = "mockllm-tape"
"""The key in the first line that marks a file as a tape."""


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """The request of a recorded answer, without its secrets.

    Args:
        url: of the service, with the query.
        headers: names in lower case, in their order.
        body: as sent.
    """

    method: str
    url: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Tape:
    """A recorded answer.

    Args:
        api: the name of its protocol; "" if the exchange has no known protocol.
        streamed: whether the request was for a stream.
        status: of the answer, which may be an error.
        headers: of the answer, names in lower case, in their order.
        chunks: of its body as they arrived, not decompressed, in microseconds after the request.
        cut: how the connection ended early, if it did.
        request: its request; None if that is not known.
        reason: the reason phrase of the status line; None for the usual one of the status.
        trailers: the trailer fields after the body, names in lower case, in their order.
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
