"""The HTTP answer to a request: its head, its body and when each part of the body is due.

It is encoded once, HTTP chunk framing included, so that the server only writes bytes. Pure;
`serve/server/http/delivery.py` writes and waits.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any, TypeVar
from urllib.parse import urlsplit

from cachetools import LRUCache

from mockllm.core.errors import RequestError
from mockllm.core.events import FinishReason
from mockllm.core.http import Ending, Target, TimedBytes, reason_phrase
from mockllm.core.jsontext import json_bytes
from mockllm.core.record import record
from mockllm.core.seeded import derive
from mockllm.core.turn import TokenUsage, Turn, beats
from mockllm.play.faults.transmission import Transmission
from mockllm.play.matching.conversation import Selection
from mockllm.play.replay.compilation.gates import BEFORE_HEAD, AnswerGate
from mockllm.play.replay.latency.schedule import Pace
from mockllm.scenario.model import TurnSpec
from mockllm.scenario.part_model import ErrorSpec, Gate
from mockllm.wire.protocols.base import WireProtocol, dumps
from mockllm.wire.protocols.values import json_object, merge

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


def byte_bounded(max_bytes: int, size: Callable[[_Value], int]) -> LRUCache[_Key, _Value]:
    """An empty cache; where it would be too large, the least recently used values go.

    A value that is larger than the bound is kept as the only one: `LRUCache` refuses such values,
    and the largest answers would be made again for each request.
    """
    return LRUCache(max_bytes, lambda value: min(size(value), max_bytes))


NO_EXTRA: Mapping[str, Any] = {}
"""No fields that a service adds."""


@record
class Generated:
    """The tokens that a model would have generated for an answer.

    Args:
        beats: the events with content of the longest choice, as in `mockllm.core.turn.Turn`.
        first: the part of the body with the first of them.
        finish: None where the stream is cut, or ends in an error.
        failed: whether it ends in an error.
    """

    usage: TokenUsage
    beats: int
    first: int
    finish: FinishReason | None
    failed: bool = False


def count_generated(choices: Sequence[Turn], times: Sequence[int]) -> Generated:
    """The tokens of the turns that are the choices of one answer. The first one has the usage.

    Args:
        times: when each part of the answer is due, on the clock of the turns' gaps.
    """
    turn = choices[0]
    due = min(choice.gaps[0] if choice.gaps else 0 for choice in choices)
    return Generated(
        usage=turn.usage or TokenUsage(0, 0),
        beats=max(sum(map(beats, choice.parts)) for choice in choices),
        first=min(bisect_left(times, due), max(0, len(times) - 1)),
        finish=turn.finish,
        failed=turn.error is not None,
    )


@record
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
        reason: the reason phrase; None for the usual one of the status.
        trailers: the trailer fields after a body in HTTP chunks.
        bodiless: whether no body can follow, as after HEAD; such an answer is not `streamed`.
        length: the `content-length` where it is not the size: of an answer that breaks off, or
            has no body.
        fault: what breaks on its way, without its bytes; None for an answer without a fault. One
            with a fault is `segmented`.
        ends: where each part ends in `encoded`, the last one with the last HTTP chunk; of a timed
            answer only.
        service: the origin of the recorded service, if a header is a URL of it.
        generated: what a model would have done for it; None where it is no answer of a model.
        pace: what `times` are drawn from for each request; None: they are the same for all.
        gates: at which it waits, in order.
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
    reason: str | None = None
    trailers: tuple[tuple[str, str], ...] = ()
    bodiless: bool = False
    length: int | None = None
    fault: Transmission | None = None
    ends: tuple[int, ...] = ()
    service: str = ""
    generated: Generated | None = None
    pace: Pace | None = None
    gates: tuple[AnswerGate, ...] = ()

    @property
    def chunks(self) -> tuple[TimedBytes, ...]:
        """The body with its times."""
        return tuple(map(TimedBytes, self.times, self.data))

    @property
    def takes_time(self) -> bool:
        """Whether it cannot be sent at once, in one write."""
        return bool(self.timed or self.segmented or self.closes_connection or self.gates)

    @property
    def closes_connection(self) -> bool:
        """Whether the connection is closed after it."""
        return self.ending != "complete"

    def behind(self, gate: Gate | None) -> HttpAnswer:
        """The same answer, before which a client waits at a gate, too."""
        return self if gate is None else replace(self, gates=(AnswerGate(gate), *self.gates))

    def with_base_url(self, base: str) -> HttpAnswer:
        """The same answer, with the URLs of the recorded service at another base URL."""
        headers = tuple(
            (
                name,
                base + value.removeprefix(self.service)
                if points_to(value, self.service)
                else value,
            )
            for name, value in self.headers
        )
        return self._with(headers)

    def hidden_from_pages(self) -> HttpAnswer:
        """The same answer without the headers by which pages of other origins may read it."""
        return self._with(tuple(pair for pair in self.headers if pair[0] not in CORS))

    def with_headers(self, changed: Mapping[str, str]) -> HttpAnswer:
        """The same answer with other values of headers; those that it lacks come last.

        Args:
            changed: by names in lower case.
        """
        kept = [(name, changed.get(name, value)) for name, value in self.headers]
        names = {name for name, _ in kept}
        return self._with((*kept, *(pair for pair in changed.items() if pair[0] not in names)))

    def _with(self, headers: tuple[tuple[str, str], ...]) -> HttpAnswer:
        """The same body, which is copied once, after other headers."""
        before, head = self.encoded.index(b"\r\n\r\n") + 4, self.head(headers)
        ends = tuple([end + len(head) - before for end in self.ends])
        encoded = b"".join((head, memoryview(self.encoded)[before:]))
        return replace(self, headers=headers, encoded=encoded, ends=ends)

    def head(
        self,
        headers: Iterable[tuple[str, str]] | None = None,
        *,
        http_1_0: bool = False,
        close: bool = False,
        more: Iterable[str] = (),
    ) -> bytes:
        """The status line and the headers, or others in their place; an HTTP/1.0 client gets no
        chunk framing."""
        headers = self.headers if headers is None else headers
        reason = reason_phrase(self.status) if self.reason is None else self.reason
        lines = [f"HTTP/1.1 {self.status} {reason}"]
        lines += [f"{name}: {value}" for name, value in headers]
        lines += more
        if self.length is not None:
            lines.append(f"content-length: {self.length}")
        elif self.bodiless:
            pass
        elif not self.streamed:
            lines.append(f"content-length: {self.size}")
        elif not http_1_0:
            lines.append("transfer-encoding: chunked")
        if close or (self.streamed and http_1_0):
            lines.append("connection: close")
        text = "\r\n".join(lines) + "\r\n\r\n"
        try:
            return text.encode("latin-1")
        except UnicodeEncodeError:
            return text.encode("utf-8", "surrogateescape")

    @property
    def last_chunk(self) -> bytes:
        """The last HTTP chunk, with the trailers (RFC 9112, section 7.1.2)."""
        if not self.trailers:
            return LAST_CHUNK
        lines = "".join(f"{name}: {value}\r\n" for name, value in self.trailers)
        return b"0\r\n%b\r\n" % lines.encode("latin-1")


def origin_of(url: str) -> str:
    """Scheme and host of a URL, as `https://api.openai.com`."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def points_to(url: str, origin: str) -> bool:
    """Whether a URL is one of an origin."""
    return url.startswith(origin) and url[len(origin) : len(origin) + 1] in ("", "/", "?")


def chunk(data: bytes) -> bytes:
    """Bytes in the framing of one HTTP chunk (RFC 9112, section 7.1)."""
    return b"%x\r\n%b\r\n" % (len(data), data)


# Clients in browsers are tested, too. Any page may read the answers: they hold no secrets. `*` for
# the headers is all of them (Fetch, section 3.3.4), which it cannot be beside a named origin.
CORS = {"access-control-allow-origin": "*", "access-control-expose-headers": "*"}
"""The headers by which pages of every origin may read an answer, and all its headers."""

LAST_CHUNK = b"0\r\n\r\n"


def with_own_headers(
    usual: Mapping[str, str], own: Iterable[tuple[str, str]]
) -> list[tuple[str, str]]:
    """Headers with those of a scenario in place of the usual ones; some may come several times."""
    own = tuple(own)
    names = {name for name, _ in own}
    return [*((name, value) for name, value in usual.items() if name not in names), *own]


def bytes_answer(
    status: int,
    headers: Iterable[tuple[str, str]],
    parts: Sequence[TimedBytes],
    *,
    streamed: bool,
    segmented: bool = False,
    ending: Ending = "complete",
    id: str | None = None,
    reason: str | None = None,
    trailers: tuple[tuple[str, str], ...] = (),
    bodiless: bool = False,
    length: int | None = None,
    service: str = "",
) -> HttpAnswer:
    """An answer with these bytes.

    Args:
        headers: besides `content-length` and `transfer-encoding`, which are added.
        parts: of the body, none of them empty: an empty HTTP chunk would end it.
    """
    data = tuple(part.data for part in parts)
    times = tuple(part.at for part in parts)
    answer = HttpAnswer(
        status,
        tuple(headers),
        data,
        times,
        streamed,
        b"",
        timed=any(times),
        segmented=segmented,
        ending=ending,
        id=id,
        size=sum(map(len, data)),
        reason=reason,
        trailers=trailers,
        bodiless=bodiless,
        length=length,
        service=service,
    )
    frames = [*map(chunk, data)] if streamed else data
    head, last = answer.head(), answer.last_chunk if streamed else b""
    ends: Iterable[int] = ()
    if answer.timed:
        ends = accumulate(map(len, [*frames[:-1], frames[-1] + last]), initial=len(head))
    encoded = b"".join([head, *frames, last])
    return replace(answer, encoded=encoded, ends=tuple(ends)[1:])


def json_answer(status: int, body: Any, headers: dict[str, str] | None = None) -> HttpAnswer:
    """An answer with a JSON body, sent whole."""
    data = json_bytes(dumps(body))
    headers = {"content-type": "application/json", **(headers or {})}
    return bytes_answer(status, headers.items(), [TimedBytes(0, data)], streamed=False)


def error_answer(
    protocol: WireProtocol,
    error: RequestError,
    seed: str,
    *,
    headers: Iterable[tuple[str, str]] = (),
    extra: Mapping[str, Any] = NO_EXTRA,
) -> HttpAnswer:
    """An error in the shape of a protocol.

    Args:
        extra: by place, the fields that the service adds (`protocols.extra`); those of `event`
            are the body's.
    """
    own = {**CORS, **protocol.error_headers(seed, error)}
    body = protocol.error_body(error)
    merge(body, extra.get("event", {}))
    usual = {"content-type": "application/json", **own}
    stated = with_own_headers(usual, [(name.lower(), value) for name, value in headers])
    data = json_bytes(dumps(body))
    return bytes_answer(error.status, stated, [TimedBytes(0, data)], streamed=False)


def error_at(answer: HttpAnswer, protocol: WireProtocol, target: Target) -> HttpAnswer:
    """The same error in the form that a target of the protocol has for it; one that is broken on
    purpose stays."""
    body = json_object(b"".join(answer.data))
    if protocol.error_at is None or body is None or answer.fault is not None:
        return answer
    formed, headers = protocol.error_at(target, answer.status, body, dict(answer.headers))
    data = TimedBytes(answer.times[0], json_bytes(dumps(formed)))
    counts = Counter(name for name, _ in answer.headers)
    repeated = [pair for pair in answer.headers if counts[pair[0]] > 1]
    stated = with_own_headers(headers, repeated)
    made = bytes_answer(answer.status, stated, [data], streamed=False)
    return replace(made, gates=answer.gates)


def without_body(answer: HttpAnswer) -> HttpAnswer:
    """The answer to HEAD (RFC 9110, section 9.3.2): the same head, and no body."""
    if answer.bodiless:
        return answer
    length = None if answer.streamed else answer.size
    bare = replace(
        answer,
        data=(),
        times=(),
        streamed=False,
        timed=False,
        segmented=False,
        ends=(),
        size=0,
        bodiless=True,
        length=length,
        gates=tuple(gate for gate in answer.gates if gate.before == BEFORE_HEAD),
    )
    return replace(bare, encoded=bare.head())


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
    protocol: WireProtocol, spec: TurnSpec, selection: Selection, attempt: int
) -> HttpAnswer:
    """An HTTP error of a scenario, as the service of the protocol would send it.

    Args:
        spec: the turn, or an earlier try of it, that has the error.
    """
    scenario, http = selection.scenario, spec.http
    assert http is not None
    seed = derive(scenario.seeded, scenario.name, selection.position, attempt)
    own = http.error or ErrorSpec()
    default = _HTTP_MESSAGES.get(http.status, reason_phrase(http.status))
    error = RequestError(
        default if own.message is None else own.message,
        status=http.status,
        type=own.type,
        code=own.code,
        retry_after=None if http.retry_after is None else http.retry_after / 1_000_000,
    )
    extra = spec.extra_for(protocol.name)
    return error_answer(protocol, error, seed, headers=http.headers, extra=extra)
