"""Copies of what passes through a recording server: the bodies of requests, and answers with
the time of each chunk. Both are bounded."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from aiohttp import web

from mockllm.core.errors import RequestError, UpstreamError
from mockllm.core.http import TimedBytes, unusual_reason
from mockllm.play.replay.sessions.exchange import Exchange, PassedAnswer
from mockllm.play.tapes.captured import Captured, Cut
from mockllm.play.tapes.socket_session import opening_session
from mockllm.serve.server.http.request_reading import read_part
from mockllm.serve.server.recording.recorder import Recorder
from mockllm.serve.server.recording.services import shown_url
from mockllm.serve.server.recording.socket_copy import SocketCopy
from mockllm.serve.server.recording.upstream import RawHeaders, Upstream

if TYPE_CHECKING:
    from mockllm.serve.mcp.mcp_recorder import ServerCopy

_AT_ONCE = 1024 * 1024
"""Up to this size in bytes, the body of a request is read before it is sent."""

_STALLED = 5.0
"""A client that leaves after so many seconds without a byte left because nothing came."""


class Upload:
    """The body of a request that has not been read, to be sent on.

    Args:
        request: of the client.
        limit: the most bytes that are kept of it.
        patience: for how long nothing may arrive, in seconds.
    """

    def __init__(self, request: web.BaseRequest, limit: int, patience: float) -> None:
        self.failure: RequestError | None = None
        """Why no more of it is read."""
        self._request = request
        self._patience = patience
        self._limit = limit
        self._kept: list[bytes] = []
        self._size = 0

    async def begin(self, *, whole: bool = False) -> bytes | AsyncIterator[bytes]:
        """The body as it is sent on: a small one whole, a large one as it arrives.

        Args:
            whole: a large one whole, too, as far as it is recorded.

        Raises:
            RequestError: nothing arrived for too long.
        """
        request = self._request
        if request.headers.get("Expect", "").lower() == "100-continue" and request.transport:
            request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        begin = bytearray()
        while len(begin) <= (self._limit if whole else _AT_ONCE):
            data = await self._read()
            if not data:
                return bytes(begin)
            begin += data
        return self._stream(bytes(begin))

    @property
    def body(self) -> bytes:
        """The bytes of it that are kept so far."""
        return b"".join(self._kept)

    @property
    def whole(self) -> bool:
        """Whether its end has come."""
        return self._request.content.at_eof()

    @property
    def too_large(self) -> bool:
        """Whether it is not kept whole."""
        return self._size > self._limit

    async def _stream(self, begin: bytes) -> AsyncIterator[bytes]:
        yield begin
        while data := await self._read():
            yield data

    async def _read(self) -> bytes:
        try:
            data = await read_part(self._request, self._patience)
        except RequestError as error:
            self.failure = error
            raise
        self._size += len(data)
        if self._size <= self._limit:
            self._kept.append(data)
        else:
            self._kept.clear()
        return data


@dataclass(slots=True)
class AnswerCopy:
    """The copy of an exchange; given to the recorder once, when it is whole or cut.

    Args:
        url, headers: of the request to the service.
        upload: its body, if that was not read before.
        recorder: None if nothing is recorded.
        limit: the most bytes of an answer that are recorded.
        opens_socket: whether the request would have opened a WebSocket.
    """

    exchange: Exchange
    url: str
    headers: RawHeaders
    upload: Upload | None
    upstream: Upstream
    recorder: Recorder | ServerCopy | None
    limit: int
    opens_socket: bool = False
    cut: Cut = "client"
    _size: int = 0
    _chunks: list[TimedBytes] = field(default_factory=list)
    _clock: Callable[[], float] = field(default_factory=lambda: asyncio.get_running_loop().time)
    _idle_since: float | None = None

    def __post_init__(self) -> None:
        self.passed_on()

    def add(self, data: bytes) -> None:
        """Keeps a chunk."""
        self._idle_since = None
        chunk = TimedBytes(max(0, round((self._clock() - self.upstream.sent) * 1_000_000)), data)
        if self.exchange.passed is not None:
            self._pass(chunk, self.exchange.passed)
        if self.recorder is None:
            return
        self._size += len(data)
        if self._size > self.limit:
            self._chunks.clear()
        else:
            self._chunks.append(chunk)

    def _pass(self, chunk: TimedBytes, passed: PassedAnswer) -> None:
        if not passed.status:
            passed.status = self.upstream.response.status
            passed.headers = tuple(lower_headers(self.upstream.headers))
        passed.add(chunk)

    def passed_on(self) -> None:
        """The client has got what was added; the next chunk is awaited."""
        self._idle_since = self._clock()

    def finish(self) -> None:
        """The answer is whole."""
        self.cut = ""
        self.hand_over()

    def hand_over(self) -> None:
        """Gives the copy to the recorder, once."""
        recorder, self.recorder = self.recorder, None
        if recorder is None:
            return
        idle = 0.0 if self._idle_since is None else self._clock() - self._idle_since
        if self.cut == "client" and idle >= _STALLED:
            self.cut = "stalled"
        why = self._not_recorded()
        if why:
            recorder.skip(self._source, f"{self._source}: {why}")
        else:
            captured = self._capture()
            recorder.add(opening_session(captured) if self.opens_socket else captured)

    def _not_recorded(self) -> str:
        """Why the exchange is not recorded; "" if it is."""
        upload = self.upload
        if upload is not None and upload.too_large:
            return f"its request is larger than {self.limit} bytes"
        if self._size > self.limit:
            return f"its answer is larger than {self.limit} bytes"
        if upload is not None and not upload.whole:
            return "its answer came before the end of its request"
        return ""

    @property
    def _source(self) -> str:
        return f"{self.exchange.received.method} {shown_url(self.exchange.path)}"

    def begin_socket(self) -> SocketCopy | None:
        """The copy of the WebSocket that the answer opens, in place of this one; None if nothing is
        recorded."""
        recorder, self.recorder = self.recorder, None
        if recorder is None:
            return None
        return SocketCopy(opening_session(self._capture()), self.limit, self._clock)

    def _capture(self) -> Captured:
        exchange, upstream = self.exchange, self.upstream
        response = upstream.response
        return Captured(
            method=exchange.received.method,
            url=self.url,
            request_headers=tuple(lower_headers(self.headers)),
            request_body=exchange.body if self.upload is None else self.upload.body,
            status=response.status,
            headers=tuple(lower_headers(upstream.headers)),
            chunks=tuple(self._chunks),
            cut=self.cut,
            at=exchange.received.at,
            source=self._source,
            reason=unusual_reason(response.status, upstream.reason),
            trailers=tuple(lower_headers(upstream.trailers)),
        )


def cut_of(error: UpstreamError) -> Cut:
    """The kind of cut of a recording whose service broke the answer off."""
    if error.how == "reset":
        return "reset"
    return "chunk" if error.how == "chunk" else "upstream"


def lower_headers(headers: RawHeaders) -> Iterator[tuple[str, str]]:
    """The headers as text, names in lower case."""
    for name, value in headers:
        yield name.decode("latin-1").lower(), value.decode("latin-1")
