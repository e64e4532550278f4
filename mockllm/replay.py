"""A turn, a protocol and what of the request matters, to the bytes that are sent.

An answer is compiled once and kept: the HTTP head, and the body of a stream with the HTTP
chunk framing of each event, so that serving it is picking bytes. Pure; `server/delivery.py`
writes and waits.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from itertools import cycle
from typing import Any, cast

from mockllm.auto import answer as auto_answer
from mockllm.catalogue import mint_token
from mockllm.derive import derive, derive_int
from mockllm.errors import RequestError
from mockllm.matching import Pick
from mockllm.piece import Piece
from mockllm.protocols.base import Reply, WireProtocol, dumps
from mockllm.quirks import find
from mockllm.quirks.base import Context, Ending, Variant, change_frames
from mockllm.request import Request
from mockllm.resolve import resolve, turn_at
from mockllm.scenario.model import AnyPart, Api, AutoPart, Http, Wire
from mockllm.sse import Frame, LineEnd, encode
from mockllm.timeline import expand
from mockllm.turn import TokenUsage, Turn

__all__ = [
    "CORS",
    "Answer",
    "Piece",
    "Replayer",
    "bytes_answer",
    "error_answer",
    "json_answer",
    "listed",
    "stream",
]


@dataclass(frozen=True, slots=True)
class Answer:
    """A compiled answer.

    Args:
        data: the body; of a stream, an event (or, with `wire.segments`, a segment) each.
        times: when each is due, in microseconds. Two tuples of plain values in place of a
            tuple of `Piece`s: thousands of answers are kept, and the garbage collector need
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
    def pieces(self) -> tuple[Piece, ...]:
        """The body with its times."""
        return tuple(map(Piece, self.times, self.data))

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
    pieces: Sequence[Piece],
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
    return bytes_answer(status, headers.items(), [Piece(at, data)], streamed=False)


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
    (piece,) = answer.pieces
    wrapped = Piece(piece.at, b"[%b]" % piece.data)
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


def stream(turn: Turn, protocol: WireProtocol, reply: Reply, wire: Wire | None) -> list[Piece]:
    """The body of a streamed answer: a piece for each frame, or for each segment."""
    wire = wire or Wire()
    variants = _variants(protocol, wire)
    context = Context(cast("Api", protocol.name), turn, reply)
    encoder = protocol.encoder(turn, reply)
    frames = [(timed.at, frame) for timed in expand(turn) for frame in encoder.encode(timed.event)]
    for variant in variants:
        if variant.frames is not None:
            frames = change_frames(variant.frames, frames, context)
    if wire.group is not None:
        frames = list(_grouped(frames, protocol, wire.group))
    pieces = _encoded(frames, wire, wire.line_end or protocol.line_end)
    for variant in variants:
        if variant.bytes is not None:
            pieces = variant.bytes(pieces, context)
    # An empty chunk is how HTTP ends a body.
    pieces = [piece for piece in pieces if piece.data]
    if isinstance(wire.segments, tuple):
        pieces = list(_segments(pieces, cycle(wire.segments)))
    elif wire.segments is not None:
        sizes = _sizes(reply.seed, wire.segments.low, wire.segments.high)
        pieces = list(_segments(pieces, sizes))
    return pieces


def _variants(protocol: WireProtocol, wire: Wire) -> list[Variant]:
    """The quirks of a stream that this protocol can have."""
    found = [find(name) for name in wire.quirks]
    return [variant for quirk, variant in found if protocol.name in quirk.apis]


def _grouped(
    frames: Sequence[tuple[int, Frame]], protocol: WireProtocol, size: int
) -> Iterator[tuple[int, Frame]]:
    """Frames joined, up to `size` into one, where the protocol can say them in one; it is due
    when the last of them is."""
    held: Frame | None = None
    due = count = 0
    for at, frame in frames:
        joined = None
        if held is not None and protocol.join is not None and count < size:
            joined = protocol.join(held, frame)
        if joined is not None:
            held, due, count = joined, at, count + 1
            continue
        if held is not None:
            yield due, held
        held, due, count = frame, at, 1
    if held is not None:
        yield due, held


def _encoded(frames: Sequence[tuple[int, Frame]], wire: Wire, line_end: LineEnd) -> list[Piece]:
    pieces: list[Piece] = []
    for count, (at, frame) in enumerate(frames, 1):
        shown = spread(frame) if wire.multiline else frame
        pieces.append(Piece(at, encode(shown, line_end)))
        if wire.comments is not None and count % wire.comments.every == 0:
            comment = Frame(comment=wire.comments.text)
            pieces.append(Piece(at, encode(comment, line_end)))
    if wire.bom and pieces:
        pieces[0] = Piece(pieces[0].at, "\ufeff".encode() + pieces[0].data)
    return pieces


def spread(frame: Frame) -> Frame:
    """The same frame with its data, if they are JSON, over several lines."""
    if frame.data is None or frame.data[:1] not in ("{", "["):
        return frame
    try:
        value = json.loads(frame.data)
    except ValueError:
        return frame
    text = json.dumps(value, ensure_ascii=False, indent=1)
    try:
        text.encode()
    except UnicodeEncodeError:  # half a surrogate pair, which has no UTF-8
        text = json.dumps(value, indent=1)
    return replace(frame, data=text)


def _sizes(seed: str, low: int, high: int) -> Iterator[int]:
    number = 0
    while True:
        yield low + derive_int(seed, "segment", number, below=high - low + 1)
        number += 1


def _segments(pieces: Sequence[Piece], sizes: Iterator[int]) -> Iterator[Piece]:
    """The same bytes cut anew; what is due later never leaves with what is due now."""
    held = b""
    at = 0
    size = next(sizes)
    for piece in pieces:
        if held and piece.at != at:
            yield Piece(at, held)
            held = b""
        at = piece.at
        held += piece.data
        while len(held) >= size:
            yield Piece(at, held[:size])
            held = held[size:]
            size = next(sizes)
    if held:
        yield Piece(at, held)


class Replayer:
    """Compiles answers and keeps them, bounded in bytes; the least recently used go first."""

    def __init__(self, *, max_bytes: int = 128 * 1024 * 1024) -> None:
        self._max_bytes = max_bytes
        self._answers: OrderedDict[Hashable, Answer] = OrderedDict()
        self._size = 0

    def answer(
        self,
        pick: Pick,
        request: Request,
        protocol: WireProtocol,
        quirks: tuple[str, ...] = (),
    ) -> Answer:
        """The answer that a turn gives to a request.

        Args:
            quirks: that it has besides those of its `wire`.

        Raises:
            RequestError: an `auto` turn cannot make up what the request demands.
        """
        spec = turn_at(pick.scenario, pick.position, protocol.name)
        assert spec is not None
        auto: tuple[AnyPart, ...] = ()
        if any(isinstance(part, AutoPart) for part in spec.reply):
            auto = auto_answer(request)
        options = protocol.options(request)
        key = (
            pick.scenario.name,
            pick.position,
            protocol.name,
            request.model,
            request.stream,
            options,
            auto,
            quirks,
        )
        found = self._answers.get(key)
        if found is not None:
            self._answers.move_to_end(key)
            return found
        wire = spec.wire
        if quirks:
            wire = wire or Wire()
            wire = replace(wire, quirks=wire.quirks + quirks)
        return self._keep(key, _compile(pick, request, protocol, options, wire, auto))

    def _keep(self, key: Hashable, answer: Answer) -> Answer:
        self._answers[key] = answer
        self._size += 2 * len(answer.instant)
        while self._size > self._max_bytes and len(self._answers) > 1:
            _, old = self._answers.popitem(last=False)
            self._size -= 2 * len(old.instant)
        return answer


def _compile(
    pick: Pick,
    request: Request,
    protocol: WireProtocol,
    options: Hashable,
    wire: Wire | None,
    auto: Sequence[AnyPart],
) -> Answer:
    scenario, position = pick.scenario, pick.position
    turn = resolve(scenario, position, protocol.name, protocol.call_prefix, auto=auto)
    seed = derive(scenario.seeded, scenario.name, position, *map(repr, auto), length=32)
    reply = Reply(
        seed=seed,
        token=mint_token(scenario, position),
        model=request.model,
        options=options,
        usage=turn.usage or TokenUsage(0, 0),
    )
    id = protocol.answer_id(reply)
    headers = {**protocol.headers(reply, request.stream), **CORS}
    if request.stream:
        return _streamed(turn, protocol, reply, wire, headers, id)
    if turn.error is not None:
        error = RequestError(
            turn.error.message, status=500, type=turn.error.type, code=turn.error.code
        )
        return error_answer(protocol, error, seed)
    body = dumps(protocol.encode_body(turn, reply)).encode()
    return bytes_answer(200, headers.items(), [Piece(sum(turn.gaps), body)], streamed=False, id=id)


def _streamed(
    turn: Turn,
    protocol: WireProtocol,
    reply: Reply,
    wire: Wire | None,
    headers: dict[str, str],
    id: str,
) -> Answer:
    pieces = stream(turn, protocol, reply, wire)
    segmented = wire is not None and wire.segments is not None
    ending: Ending = "complete"
    for variant in _variants(protocol, wire) if wire is not None else ():
        segmented = segmented or variant.writes
        ending = variant.ending if variant.ending != "complete" else ending
        if variant.content_type:
            headers["content-type"] = variant.content_type
        elif variant.content_type is not None:
            headers.pop("content-type", None)
    return bytes_answer(
        200, headers.items(), pieces, streamed=True, segmented=segmented, ending=ending, id=id
    )
