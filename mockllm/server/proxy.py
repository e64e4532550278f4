"""A recording server between a client and the real services.

Bytes are teed: each chunk of the service goes to the client when it comes, and a copy is kept
for the recording, with the time. What the service says is passed on as it says it: status,
headers, compression, errors, trailers, the end of a connection. A client that reads slowly slows
the service, not the server.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from aiohttp import StreamReader, web
from aiohttp.http import HttpVersion10

from mockllm.core.seeded import derive
from mockllm.core.timed_bytes import TimedBytes
from mockllm.errors import RequestError, UpstreamError, UsageError
from mockllm.framing.content_coding import codings
from mockllm.protocols.base import WireProtocol
from mockllm.replay.answer import LAST_CHUNK, chunk, error_answer
from mockllm.replay.session import Exchange
from mockllm.server.delivery import CLOSE, KEEP_ALIVE, break_off, deliver, send
from mockllm.server.recorder import Recorder, Written
from mockllm.server.upstream import RawHeaders, Upstream, Upstreams, end_to_end
from mockllm.tapes.captured import Captured, Cut

if TYPE_CHECKING:
    from mockllm.server.options import RecordMode, RecordOptions

__all__ = ["Proxy"]

_OURS = b"x-mockllm-"
_RECOMPUTED = (b"host", b"expect")
_DECODED = ("gzip", "deflate", "br", "zstd")
"""What aiohttp has undone of a request's body before it comes here."""

_NO_BODY = frozenset({204, 304})


class Proxy:
    """Forwards requests and records what comes back.

    Args:
        options: the services, what is recorded, and where to.
        written, reserved: as of `Recorder`.

    Raises:
        ScenarioError: what is in the folder cannot be loaded.
        UsageError: it cannot be written to.
    """

    def __init__(
        self, options: RecordOptions, written: Written | None, reserved: Iterable[str] = ()
    ) -> None:
        self._options = options
        heard = written if options.mode == "new_episodes" else None
        self._recorder: Recorder | None = None
        if options.mode != "none":
            try:
                self._recorder = Recorder(options, heard, reserved)
            except OSError as error:
                why = error.strerror or error
                raise UsageError(
                    f"cannot record into {str(options.folder)!r}: {why}; name a folder that can be "
                    "written to"
                ) from None
        self._upstreams = Upstreams(trust_env=options.trust_env)
        self._passing: set[asyncio.Task[object]] = set()
        self.mode: RecordMode = options.mode
        if options.mode == "once":
            assert self._recorder is not None
            self.mode = "add" if self._recorder.was_empty else "none"

    @property
    def forwards_all(self) -> bool:
        """Whether no request is answered from scenarios."""
        return self.mode in ("add", "all")

    def serves(self, protocol: WireProtocol) -> bool:
        """Whether there is a real service for a protocol, and it may be asked."""
        return self.mode != "none" and protocol.name in self._options.upstreams

    async def close(self) -> None:
        """Ends the connections; everything that was seen is on the disk afterwards.

        What is still passing is cut, and recorded up to there.
        """
        self.mode = "none"
        for task in self._passing:
            task.cancel()
        if self._passing:
            await asyncio.wait(self._passing)
        await self._upstreams.close()
        if self._recorder is not None:
            await self._recorder.close()

    async def forward(
        self,
        request: web.BaseRequest,
        target: str,
        protocol: WireProtocol,
        exchange: Exchange,
        *,
        record: bool,
    ) -> web.StreamResponse:
        """Has the real service of a protocol answer.

        Args:
            target: path and query, without what is said to mockllm.
            exchange: its `body` has been read if `record`.
            record: whether the exchange is kept.
        """
        task = asyncio.current_task()
        assert task is not None
        self._passing.add(task)
        try:
            return await self._ask(request, target, protocol, exchange, record=record)
        finally:
            self._passing.discard(task)

    async def _ask(
        self,
        request: web.BaseRequest,
        target: str,
        protocol: WireProtocol,
        exchange: Exchange,
        *,
        record: bool,
    ) -> web.StreamResponse:
        exchange.api, exchange.outcome, exchange.problems = protocol.name, "forwarded", ()
        exchange.scenario = exchange.turn = exchange.position = None
        if not self.serves(protocol):
            return await self._refuse(request, protocol, exchange, self._missing(protocol))
        url = _url(self._options.upstreams[protocol.name], protocol, target)
        headers = _request_headers(request, readable=record)
        body = exchange.body if record else _body(request)
        try:
            upstream = await self._upstreams.ask(request.method, url, headers, body)
        except UpstreamError as error:
            message = (
                f"The service for {protocol.name!r} does not answer at {_shown(url)}: {error}. "
                f"Is that the address? Give another with {self._named(protocol)}."
            )
            return await self._refuse(request, protocol, exchange, message)
        kept = _Copy(exchange, url, headers, upstream, self._recorder if record else None)
        try:
            await self._pass_on(request, upstream, kept, exchange)
        except UpstreamError as error:
            kept.cut = "upstream"
            await break_off(request, error.how or "closed")
        finally:
            upstream.close()
            kept.hand_over()
        stays = not kept.cut and request.keep_alive and request.version > HttpVersion10
        return KEEP_ALIVE if stays else CLOSE

    def _missing(self, protocol: WireProtocol) -> str:
        if self.mode == "none":
            return "Nothing is recorded here, so no service is asked."
        return (
            f"There is no service to ask for {protocol.name!r}. Give its address with "
            f"{self._named(protocol)}."
        )

    def _named(self, protocol: WireProtocol) -> str:
        return f"{self._options.option} {protocol.name}=URL"

    async def _refuse(
        self, request: web.BaseRequest, protocol: WireProtocol, exchange: Exchange, message: str
    ) -> web.StreamResponse:
        error = RequestError(message, status=502, code="upstream_unreachable")
        exchange.outcome, exchange.status, exchange.problems = "error", 502, (message,)
        answer = error_answer(protocol, error, derive("upstream", message))
        return await deliver(request, answer, exchange, close=not request.content.at_eof())

    async def _pass_on(
        self, request: web.BaseRequest, upstream: Upstream, kept: _Copy, exchange: Exchange
    ) -> None:
        """Sends the answer on as it comes. Its end, or the last bytes of one whose length is
        told, is held back until the copy is safe: what a client has read to the end is not lost.

        Raises:
            UpstreamError: the service broke it off.
            ConnectionResetError: the client is gone.
        """
        response = upstream.response
        exchange.status = response.status
        old = request.version <= HttpVersion10
        empty = request.method == "HEAD" or response.status in _NO_BODY
        length = response.headers.get("Content-Length")
        left = int(length) if length is not None and not empty else None
        framed = not empty and not old and length is None
        await send(
            request, _head(upstream, framed=framed, close=old or not request.keep_alive), exchange
        )
        async for data in upstream.chunks():
            kept.add(data)
            if left is not None:
                left -= len(data)
                if left <= 0:
                    await kept.whole()
            await send(request, chunk(data) if framed else data, exchange)
            exchange.bytes_sent += len(data)
        await kept.whole()
        if framed:
            await send(request, _last_chunk(upstream.trailers), exchange)
        exchange.ended = time.perf_counter() - exchange.clock


class _Copy:
    """The copy of an answer that passes; handed over once, when it is whole or broken off."""

    def __init__(
        self,
        exchange: Exchange,
        url: str,
        headers: RawHeaders,
        upstream: Upstream,
        recorder: Recorder | None,
    ) -> None:
        self.cut: Cut = "client"
        self._exchange = exchange
        self._url = url
        self._headers = headers
        self._upstream = upstream
        self._recorder = recorder
        self._pieces: list[TimedBytes] = []
        self._clock = asyncio.get_running_loop().time

    def add(self, data: bytes) -> None:
        if self._recorder is not None:
            at = round((self._clock() - self._upstream.sent) * 1_000_000)
            self._pieces.append(TimedBytes(max(0, at), data))

    async def whole(self) -> None:
        """Nothing more will come; returns when it is safe."""
        self.cut = ""
        safe = self.hand_over()
        if safe is not None:
            await asyncio.wait([safe])  # whatever came of it: the client has its answer

    def hand_over(self) -> asyncio.Future[None] | None:
        """Gives it to the recorder, if nobody has."""
        recorder, self._recorder = self._recorder, None
        return None if recorder is None else recorder.put(self._captured())

    def _captured(self) -> Captured:
        exchange = self._exchange
        return Captured(
            method=exchange.method,
            url=self._url,
            request_headers=tuple(_lowered(self._headers)),
            request_body=exchange.body,
            status=self._upstream.response.status,
            headers=tuple(_lowered(self._upstream.headers)),
            chunks=tuple(self._pieces),
            cut=self.cut,
            at=exchange.at,
            source=f"{exchange.method} {_shown(exchange.path)}",
        )


def _url(base: str, protocol: WireProtocol, target: str) -> str:
    """Where a request goes. A base URL may be given with the version that clients add, or
    without; an API without paths of its own is served at the base URL itself."""
    base = base.rstrip("/")
    if protocol.detect.any_path:
        return base + target.removeprefix(protocol.client.path)
    version = protocol.base_path
    if version and base.endswith(version) and target.startswith(f"{version}/"):
        base = base.removesuffix(version)
    return base + target


def _shown(url: str) -> str:
    """A URL without its query, which may have a key in it."""
    return url.partition("?")[0]


def _request_headers(request: web.BaseRequest, *, readable: bool) -> RawHeaders:
    """The client's headers as the service gets them.

    Args:
        readable: ask for no compression that a recording cannot undo.
    """
    out: list[tuple[bytes, bytes]] = []
    decoded = request.headers.get("Content-Encoding", "").lower() in _DECODED
    for name, value in end_to_end(request.raw_headers):
        key = name.lower()
        if key in _RECOMPUTED or key.startswith(_OURS):
            continue
        if decoded and key in (b"content-encoding", b"content-length"):
            continue
        if key == b"accept-encoding" and readable:
            value = _readable(value)
        out.append((name, value))
    return tuple(out)


def _readable(accepted: bytes) -> bytes:
    asked = [part.strip() for part in accepted.decode("latin-1").split(",")]
    known = {*codings(), "identity"}
    kept = [part for part in asked if part.partition(";")[0].strip().lower() in known]
    return ", ".join(kept).encode("latin-1") or b"identity"


def _body(request: web.BaseRequest) -> StreamReader | None:
    """The body of a request that nobody has read, to be sent on as it comes."""
    return None if request.content.at_eof() else request.content


def _head(upstream: Upstream, *, framed: bool, close: bool) -> bytes:
    response = upstream.response
    lines = [f"HTTP/1.1 {response.status} {response.reason or ''}".encode("latin-1", "replace")]
    lines += [name + b": " + value for name, value in upstream.headers]
    if framed:
        lines.append(b"Transfer-Encoding: chunked")
    if close:
        lines.append(b"Connection: close")
    return b"\r\n".join(lines) + b"\r\n\r\n"


def _last_chunk(trailers: RawHeaders) -> bytes:
    if not trailers:
        return LAST_CHUNK
    lines = b"".join(name + b": " + value + b"\r\n" for name, value in trailers)
    return b"0\r\n" + lines + b"\r\n"


def _lowered(headers: RawHeaders) -> Iterator[tuple[str, str]]:
    for name, value in headers:
        yield name.decode("latin-1").lower(), value.decode("latin-1")
