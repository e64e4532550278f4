"""An answer as it is kept: the HTTP head and the body, with the chunk framing of each event.

Serving it is picking bytes. Pure; `server/delivery.py` writes and waits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any

from mockllm.core.seeded import derive
from mockllm.core.timed_bytes import TimedBytes
from mockllm.errors import RequestError
from mockllm.matching.select import Pick
from mockllm.protocols.base import WireProtocol, dumps
from mockllm.quirks.base import Ending
from mockllm.scenario.model import Http

__all__ = [
    "CORS",
    "LAST_CHUNK",
    "Answer",
    "bytes_answer",
    "chunk",
    "error_answer",
    "http_answer",
    "json_answer",
    "listed",
]


@dataclass(frozen=True, slots=True)
class Answer:
    """A compiled answer.

    Args:
        data: the body; of a stream, an event (or, with `wire.segments`, a segment) each.
        times: when each is due, in microseconds. Two tuples of plain values in place of a
            tuple of `TimedBytes`s: thousands of answers are kept, and the garbage collector need
            not look through these.
        instant: head and body as HTTP/1.1 sends them on a connection that stays open.
        timed: whether any piece is due later than at once.
        segmented: whether the pieces have to leave as separate writes.
        ending: how it ends; what does not end as it should leaves the connection closed.
        id: what a client may later ask for the answer by.
    """

    status: int
    headers: tuple[tuple[str, str], ...]
    data: tuple[bytes, ...]
    times: tuple[int, ...]
    streamed: bool
    instant: bytes
    timed: bool = False
    segmented: bool = False
    ending: Ending = "complete"
    id: str | None = None
    size: int = 0

    @property
    def chunks(self) -> tuple[TimedBytes, ...]:
        """The body with its times."""
        return tuple(map(TimedBytes, self.times, self.data))

    @property
    def takes_time(self) -> bool:
        """Whether it does not leave in one write as soon as it is asked for."""
        return self.timed or self.segmented or self.breaks

    @property
    def breaks(self) -> bool:
        """Whether the connection cannot go on after it."""
        return self.ending != "complete"

    def head(self, *, http_1_0: bool = False, close: bool = False) -> bytes:
        """The status line and the headers; an HTTP/1.0 client gets no chunk framing."""
        lines = [f"HTTP/1.1 {self.status} {_reason(self.status)}"]
        lines += [f"{name}: {value}" for name, value in self.headers]
        if not self.streamed:
            lines.append(f"content-length: {self.size}")
        elif not http_1_0:
            lines.append("transfer-encoding: chunked")
        if close or (self.streamed and http_1_0):
            lines.append("connection: close")
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def _reason(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Overloaded" if status == 529 else "Unknown"


def chunk(data: bytes) -> bytes:
    """Bytes with the framing of one HTTP chunk."""
    return b"%x\r\n%b\r\n" % (len(data), data)


# Clients in browsers are tested too; there is nothing here that a page must not read.
CORS = {"access-control-allow-origin": "*"}


LAST_CHUNK = b"0\r\n\r\n"


def bytes_answer(
    status: int,
    headers: Iterable[tuple[str, str]],
    pieces: Sequence[TimedBytes],
    *,
    streamed: bool,
    segmented: bool = False,
    ending: Ending = "complete",
    id: str | None = None,
) -> Answer:
    """An answer with these bytes.

    Args:
        headers: besides those that tell how long the body is, which the answer makes itself.
        pieces: none of them empty.
        streamed: whether the body is sent in HTTP chunks, not with its length told before.
    """
    data = tuple(piece.data for piece in pieces)
    times = tuple(piece.at for piece in pieces)
    bare = Answer(status, tuple(headers), data, times, streamed, b"", size=sum(map(len, data)))
    body = b"".join([*map(chunk, data), LAST_CHUNK]) if streamed else b"".join(data)
    return replace(
        bare,
        instant=bare.head() + body,
        timed=any(times),
        segmented=segmented,
        ending=ending,
        id=id,
    )


def json_answer(
    status: int, body: Any, headers: dict[str, str] | None = None, *, at: int = 0
) -> Answer:
    """An answer with a JSON body, sent whole; `at` is in microseconds."""
    data = dumps(body).encode()
    headers = {"content-type": "application/json", **(headers or {})}
    return bytes_answer(status, headers.items(), [TimedBytes(at, data)], streamed=False)


def error_answer(
    protocol: WireProtocol,
    error: RequestError,
    seed: str,
    *,
    retry_after: float | None = None,
    headers: Iterable[tuple[str, str]] = (),
) -> Answer:
    """An error in the shape of a protocol; `retry_after` is in seconds."""
    own = {**CORS, **protocol.error_headers(seed, error, retry_after)}
    return json_answer(
        error.status, protocol.error_body(error), {**own, **{k.lower(): v for k, v in headers}}
    )


def listed(answer: Answer) -> Answer:
    """The same answer with its JSON body in a list."""
    (piece,) = answer.chunks
    wrapped = TimedBytes(piece.at, b"[%b]" % piece.data)
    return bytes_answer(answer.status, answer.headers, [wrapped], streamed=False)


_HTTP_MESSAGES = {
    400: "The request was malformed.",
    401: "Incorrect API key provided.",
    403: "You do not have access to this resource.",
    404: "The requested resource was not found.",
    408: "The request timed out.",
    409: "The request conflicts with another one.",
    413: "The request is too large.",
    422: "The request could not be processed.",
    429: "Rate limit reached. Please try again later.",
    500: "The server had an error while processing your request.",
    502: "Bad gateway.",
    503: "The service is temporarily overloaded.",
    504: "The gateway timed out.",
    529: "Overloaded.",
}


def http_answer(protocol: WireProtocol, http: Http, pick: Pick, attempt: int) -> Answer:
    """The HTTP error that a scenario asks for, as the protocol's service would send it.

    Args:
        attempt: which try of the turn it answers, from 1.
    """
    scenario = pick.scenario
    seed = derive(scenario.seeded, scenario.name, pick.position, attempt)
    own = http.error
    seconds = None if http.retry_after is None else http.retry_after / 1_000_000
    default = _HTTP_MESSAGES.get(http.status, _reason(http.status))
    error = RequestError(
        default if own is None or own.message is None else own.message,
        status=http.status,
        type=own.type if own else None,
        code=own.code if own else None,
        retry_after=seconds,
    )
    return error_answer(protocol, error, seed, retry_after=seconds, headers=http.headers)
