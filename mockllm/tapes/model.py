"""The recorded answer to one request: its exact bytes with their times. Only data may live here."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from mockllm.core.timed_bytes import TimedBytes
from mockllm.scenario.jsontext import compact
from mockllm.scenario.model import Api, TurnSpec
from mockllm.tapes.captured import Cut

__all__ = ["FORMAT_VERSION", "MARK", "RecordedRequest", "Tape", "digest"]

FORMAT_VERSION = 1
MARK = "mockllm-tape"
"""The key of a tape's first line, by which a file is known as a tape."""


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """The request that a recorded answer was given to, without its secrets.

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
        api: the name of its protocol; "" of an exchange that no protocol is known for.
        streamed: whether the request asked for a stream.
        status: of the answer, which may be an error.
        headers: of the answer, names in lower case, in their order.
        chunks: of its body as they arrived, still compressed if they were, with microseconds
            after the request.
        cut: who broke it off, if anybody did.
        digest: of the turn that was written with it, as `digest` gives it.
        request: what was asked; None where that is not known.
    """

    api: Api
    streamed: bool
    status: int
    headers: tuple[tuple[str, str], ...]
    chunks: tuple[TimedBytes, ...]
    cut: Cut = ""
    digest: str = ""
    request: RecordedRequest | None = None


def digest(turn: TurnSpec, api: Api) -> str:
    """What tells whether the answer of a turn was edited since it was recorded.

    It is taken over all that the answer to protocol `api` is made of: `reply`, `http`,
    `finish`, `usage`, `timing` and `wire`. What is asked of the request, earlier attempts, and
    what is said of other protocols may change without it.
    """
    from mockllm.scenario.dump import answer

    return hashlib.sha256(compact(answer(turn.for_api(api))).encode()).hexdigest()[:32]
