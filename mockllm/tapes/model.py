"""A tape: the exact bytes of a recorded answer, with their times. Only data may live here."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

from mockllm.core.timed_bytes import TimedBytes
from mockllm.scenario.jsontext import compact
from mockllm.scenario.model import (
    AnyPart,
    Api,
    FramePart,
    InterleavedPart,
    TextFile,
    TurnSpec,
)
from mockllm.tapes.captured import Cut

__all__ = ["FORMAT_VERSION", "MARK", "RecordedRequest", "Tape", "digest"]

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
        digest: the result of `digest` for the turn that was written with it.
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
    digest: str = ""
    request: RecordedRequest | None = None
    reason: str | None = None
    trailers: tuple[tuple[str, str], ...] = ()


def digest(turn: TurnSpec, api: Api) -> str:
    """A digest that shows whether the answer of a turn was edited since it was recorded.

    It covers the fields that the answer over protocol `api` depends on: `reply`, `http`, `finish`,
    `usage`, `timing`, `wire` and `extra`. Conditions on the request, earlier attempts and fields
    for other protocols do not change it. Of a value in a file it covers the text, not the name.
    """
    from mockllm.scenario.dump import answer

    own = turn.for_api(api)
    own = replace(own, reply=tuple(map(_with_text, own.reply)))
    return hashlib.sha256(compact(answer(own, api)).encode()).hexdigest()[:32]


def _with_text(part: AnyPart) -> AnyPart:
    """The part with the text of a frame in place of the name of its file."""
    match part:
        case FramePart(data=TextFile() as text):
            return replace(part, data=str(text))
        case InterleavedPart(parts=parts):
            inner = (_with_text(one) if isinstance(one, FramePart) else one for one in parts)
            return replace(part, parts=tuple(inner))  # type: ignore[arg-type]  # frames stay frames
    return part
