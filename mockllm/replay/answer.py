"""The HTTP answer to a request: its head, its body and when each part of the body is due.

It is encoded once, HTTP chunk framing included, so that the server only writes bytes. Pure;
`server/delivery.py` writes and waits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any

from mockllm.core.seeded import derive
from mockllm.core.timed_bytes import TimedBytes
from mockllm.errors import RequestError
from mockllm.matching.select import Selection
from mockllm.protocols.base import WireProtocol, dumps
from mockllm.quirks.base import Ending
from mockllm.scenario.model import Http

__all__ = [
    "CORS",
    "LAST_CHUNK",
    "HttpAnswer",
    "bytes_answer",
    "chunk",
    "error_answer",
    "http_error_answer",
    "in_list",
    "json_answer",
]


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """An HTTP answer.

    Args:
        data: the parts of the body: of a stream, an event each (or, with `wire.segments`, a
            segment each).
        times: when each part is due, in microseconds. Data and times are two tuples of plain
            values, not one of `TimedBytes`: thousands of answers are cached, and the garbage
            collector does not track tuples of bytes and integers.
        streamed: whether the body is sent in HTTP chunks, without its length.
        encoded: head and body as HTTP/1.1 sends them on a connection that stays open.
        timed: whether any part is due later than at once.
        segmented: whether each part is a separate write.
        ending: how it ends; any other than `complete` closes the connection.
        id: by which a client may request or continue the answer later.
        size: of the body, in bytes.
    """

    status: int
    headers: tuple[tuple[str, str], ...]
    data: tuple[bytes, ...]
    times: tuple[int, ...]
    streamed: bool
    encoded: bytes
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
        """Whether it cannot be sent at once, in one write."""
        return self.timed or self.segmented or self.closes_connection

    @property
    def closes_connection(self) -> bool:
        """Whether the connection is closed after it."""
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
    """Bytes in the framing of one HTTP chunk (RFC 9112, section 7.1)."""
    return b"%x\r\n%b\r\n" % (len(data), data)


# Clients in browsers are tested, too. Any page may read the answers: they hold no secrets.
CORS = {"access-control-allow-origin": "*"}

LAST_CHUNK = b"0\r\n\r\n"


def bytes_answer(
    status: int,
    headers: Iterable[tuple[str, str]],
    parts: Sequence[TimedBytes],
    *,
    streamed: bool,
    segmented: bool = False,
    ending: Ending = "complete",
    id: str | None = None,
) -> HttpAnswer:
    """An answer with these bytes.

    Args:
        headers: besides `content-length` and `transfer-encoding`, which are added.
        parts: of the body, none of them empty: an empty HTTP chunk would end it.
        streamed, segmented, ending, id: as of `HttpAnswer`.
    """
    data = tuple(part.data for part in parts)
    times = tuple(part.at for part in parts)
    bare = HttpAnswer(status, tuple(headers), data, times, streamed, b"", size=sum(map(len, data)))
    body = b"".join([*map(chunk, data), LAST_CHUNK]) if streamed else b"".join(data)
    return replace(
        bare,
        encoded=bare.head() + body,
        timed=any(times),
        segmented=segmented,
        ending=ending,
        id=id,
    )


def json_answer(
    status: int, body: Any, headers: dict[str, str] | None = None, *, at: int = 0
) -> HttpAnswer:
    """An answer with a JSON body, sent whole.

    Args:
        at: when it is due, in microseconds.
    """
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
) -> HttpAnswer:
    """An error in the shape of a protocol.

    Args:
        retry_after: in seconds.
        headers: win over those of the protocol.
    """
    own = {**CORS, **protocol.error_headers(seed, error, retry_after)}
    return json_answer(
        error.status, protocol.error_body(error), {**own, **{k.lower(): v for k, v in headers}}
    )


def in_list(answer: HttpAnswer) -> HttpAnswer:
    """The same answer with its JSON body in a list: Gemini sends errors so where a stream without
    `alt=sse` was requested."""
    (body,) = answer.chunks
    wrapped = TimedBytes(body.at, b"[%b]" % body.data)
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


def http_error_answer(
    protocol: WireProtocol, http: Http, selection: Selection, attempt: int
) -> HttpAnswer:
    """An HTTP error of a scenario, as the service of the protocol would send it.

    Args:
        attempt: the number of the attempt at the turn, from 1.
    """
    scenario = selection.scenario
    seed = derive(scenario.seeded, scenario.name, selection.position, attempt)
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
