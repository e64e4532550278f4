"""A recording server between a client and the real services.

Bytes are teed: each chunk of the service goes to the client when it arrives, and a copy with its
time is kept for the recording. Status, headers, compression, errors, trailers and the end of the
connection pass unchanged, but for two things: pages in browsers get the headers, if they are
missing, by which they may read the answer; and URLs of the service in headers lead a client that
has the recorder's base URL to the recorder. A client that reads slowly slows the service, not the
server.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Container, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from aiohttp import HttpVersion10, web

from mockllm.core.seeded import derive
from mockllm.errors import RequestError, UpstreamError, UsageError
from mockllm.framing.content_coding import codings
from mockllm.protocols.base import WireProtocol
from mockllm.replay.compilation.http_answer import CORS, LAST_CHUNK, chunk, error_answer
from mockllm.replay.decision import FAULT_HEADER, requested_faults
from mockllm.replay.fault_plan import NO_PLAN, FaultPlan
from mockllm.replay.sessions.exchange import Exchange, Played
from mockllm.scenario.fault_model import Fault, faults_text
from mockllm.server.http.aiohttp_internals import pass_through
from mockllm.server.http.delivery import CLOSE, KEEP_ALIVE, deliver
from mockllm.server.http.request_reading import Arrival, opens_websocket
from mockllm.server.http.sending import end_early, send
from mockllm.server.recording.copying import AnswerCopy, Upload, cut_of
from mockllm.server.recording.recorder import Recorder, Written
from mockllm.server.recording.services import Services, shown_url
from mockllm.server.recording.signing import signed_again, signed_scope
from mockllm.server.recording.upstream import RawHeaders, Upstream, Upstreams, end_to_end

if TYPE_CHECKING:
    from mockllm.server.options import RecordMode, RecordOptions

_OURS = b"x-mockllm-"
_RECOMPUTED = (b"host", b"expect")
_DECODED = ("gzip", "deflate", "br", "zstd")
"""The codings of a request's body that aiohttp decodes before it comes here."""

_NO_BODY = frozenset({204, 304})


class Proxy:
    """Forwards requests and records the answers.

    Args:
        options: the services, and what is recorded into which folder.
        written, reserved: as of `Recorder`.
        faults: of what passes to the clients; what is recorded stays whole.

    Raises:
        ScenarioError: the folder has scenarios that cannot be loaded.
        UsageError: it cannot be written to.
    """

    def __init__(
        self,
        options: RecordOptions,
        written: Written | None,
        reserved: Iterable[str] = (),
        faults: FaultPlan = NO_PLAN,
    ) -> None:
        self.patience = 60.0
        """For how long nothing may arrive of a request, in seconds."""
        self.began = 0.0
        """When the server started, in seconds of `time.perf_counter`."""
        self._options = options
        self._faults = faults
        listener = written if options.mode == "new_episodes" else None
        self._recorder: Recorder | None = None
        if options.mode != "none":
            try:
                self._recorder = Recorder(options, listener, reserved)
            except OSError as error:
                why = error.strerror or error
                raise UsageError(
                    f"cannot record into {str(options.folder)!r}: {why}; name a folder that can be "
                    "written to"
                ) from None
        self._services = Services(options.upstreams, options.option)
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

    def serves(self, protocol: WireProtocol, origin: str = "") -> bool:
        """Whether a protocol has a real service that requests may go to: that of their origin, or
        one that the options name."""
        return self.mode != "none" and (bool(origin) or self._services.serves(protocol))

    def service_for(self, path: str, headers: Container[str]) -> WireProtocol | None:
        """The protocol whose service gets a request that belongs to no API; None if no service
        gets any.

        Raises:
            RequestError: several services may be meant.
        """
        return None if self.mode == "none" else self._services.find(path, headers)

    async def close(self) -> None:
        """Ends the connections; every exchange is on the disk afterwards.

        An answer that is still arriving is cut, and recorded up to there.
        """
        self.mode = "none"
        for task in self._passing:
            task.cancel()
        try:
            if self._passing:
                await asyncio.wait(self._passing)
            await self._upstreams.close()
        finally:  # also where no one waits for it: its process must end
            if self._recorder is not None:
                await self._recorder.close()

    async def forward(
        self,
        arrival: Arrival,
        protocol: WireProtocol,
        exchange: Exchange,
        origin: str = "",
    ) -> web.StreamResponse:
        """Answers a request with the answer of the protocol's real service.

        Args:
            exchange: its `body` is that of the request, if that has been read.
            origin: of the service, where the options name none.
        """
        task = asyncio.current_task()
        assert task is not None
        self._passing.add(task)
        try:
            return await self._forward(arrival, protocol, exchange, origin)
        finally:
            self._passing.discard(task)

    async def _forward(
        self,
        arrival: Arrival,
        protocol: WireProtocol,
        exchange: Exchange,
        origin: str,
    ) -> web.StreamResponse:
        request, target = arrival.request, arrival.target
        before = exchange.played
        played = Played("forwarded", api=protocol.name, model=before.model, stream=before.stream)
        exchange.forward(played)
        if not self.serves(protocol, origin):
            return await self._refuse(request, protocol, exchange, self._missing(protocol))
        named = self._services.serves(protocol)
        url = self._services.url(protocol, target) if named else origin + target
        recorder = self._recorder
        is_websocket = opens_websocket(request.headers)
        if is_websocket:
            self._skip(exchange, _WEBSOCKET)
            recorder = None
        elif recorder is not None and not origin and _is_probe(request.method, target):
            self._skip(exchange, _PROBE, unwanted=True)
            recorder = None
        try:
            faults = self._drawn(request, exchange)
        except RequestError as error:
            return await self._refuse(request, protocol, exchange, error.message, 400, error.code)
        headers = _request_headers(request, readable=recorder is not None, plain=bool(faults))
        if is_websocket:
            headers += _UPGRADE
        limit = self._options.max_recorded if recorder is not None else 0
        upload = None
        if not request.content.at_eof():
            upload = Upload(request, limit, self.patience)
        scope = signed_scope(headers) if named else None
        try:
            body = (
                exchange.body or None
                if upload is None
                else await upload.begin(whole=scope is not None)
            )
        except RequestError as error:
            return await self._refuse(request, protocol, exchange, error.message, 408, error.code)
        if upload is not None and isinstance(body, bytes):
            exchange.forward(played, body)
        if recorder is not None:
            await recorder.room()
        if scope is not None:
            try:
                headers = await signed_again(scope, request.method, url, headers, body)
            except UpstreamError as error:
                return await self._refuse(request, protocol, exchange, str(error), code="unsigned")
        try:
            upstream = await self._upstreams.send(request.method, url, headers, body)
        except UpstreamError as error:
            failure = None if upload is None else upload.failure
            if failure is not None:
                return await self._refuse(request, protocol, exchange, failure.message, 408)
            message = (
                f"The service for {protocol.name!r} does not answer at {shown_url(url)}: {error}. "
                f"Is that the address? Give another with {self._services.named(protocol)}."
            )
            return await self._refuse(request, protocol, exchange, message)
        sent_on = upstream.headers if origin else self._moved(upstream, protocol, arrival.base)
        if upstream.response.status == _SWITCHING:
            if faults:
                exchange.sent.break_with(faults_text(faults), _SWITCHING)
                exchange.sent.miss("none strikes in a WebSocket")
            return await self._pass_websocket(request, upstream, sent_on, exchange)
        copy = AnswerCopy(exchange, url, headers, upload, upstream, recorder, limit)
        if faults:
            return await self._pass_broken(
                request, upstream, sent_on, copy, exchange, faults, protocol
            )
        try:
            await self._pass_on(request, upstream, sent_on, copy, exchange)
        except UpstreamError as error:
            copy.cut = cut_of(error)
            exchange.sent.report(str(error))
            framed = request.version > HttpVersion10
            await end_early(request, error.how or "closed", exchange.sent, framed=framed)
        finally:
            upstream.close()
            copy.hand_over()
        stays = not copy.cut and request.keep_alive and request.version > HttpVersion10
        return KEEP_ALIVE if stays else CLOSE

    def _drawn(self, request: web.BaseRequest, exchange: Exchange) -> tuple[Fault, ...]:
        """The faults of an answer: those that the request asks for, or those of the plan.

        Raises:
            RequestError: the request names a fault that there is not.
        """
        asked = requested_faults(request.headers.get(FAULT_HEADER))
        at = exchange.received.clock - self.began
        return asked or self._faults.draw(exchange.session, exchange.number, at)

    async def _pass_broken(
        self,
        request: web.BaseRequest,
        upstream: Upstream,
        headers: RawHeaders,
        copy: AnswerCopy,
        exchange: Exchange,
        faults: tuple[Fault, ...],
        protocol: WireProtocol,
    ) -> web.StreamResponse:
        from mockllm.replay.broken_answer import circumstances
        from mockllm.server.http.live_faults import pass_broken

        def head(framed: bool) -> bytes:
            close = not framed or not request.keep_alive
            for_page = "Origin" in request.headers
            return _head(upstream, headers, framed=framed, close=close, for_page=for_page)

        asked = None if exchange.received.target is None else exchange.request
        around = circumstances(protocol, asked, request.raw_path)
        return await pass_broken(
            request, upstream, copy, exchange.sent, faults, around, head, self._passing
        )

    def _missing(self, protocol: WireProtocol) -> str:
        if self.mode == "none":
            return "Nothing is recorded here, so no service is asked."
        return self._services.missing(protocol)

    async def _pass_websocket(
        self,
        request: web.BaseRequest,
        upstream: Upstream,
        headers: RawHeaders,
        exchange: Exchange,
    ) -> web.StreamResponse:
        """Passes a WebSocket's bytes on in both directions until it is over."""
        exchange.sent.pass_on(_SWITCHING)
        head = _head(upstream, (*headers, *_UPGRADE), framed=False, close=False, for_page=False)
        try:
            await send(request, head, exchange.sent)
            await pass_through(request, upstream.response)
        finally:
            upstream.close()
        exchange.sent.end_pauses(time.perf_counter())
        return CLOSE

    def _skip(self, exchange: Exchange, why: str, *, unwanted: bool = False) -> None:
        """Reports an exchange that is not recorded."""
        if self._recorder is not None:
            source = f"{exchange.received.method} {shown_url(exchange.path)}"
            self._recorder.skip(source, f"{source}: {why}", unwanted=unwanted)

    def _moved(self, upstream: Upstream, protocol: WireProtocol, base: str) -> RawHeaders:
        """The headers of an answer, with the URLs of the service at the base URL of the client: it
        would go past the recorder otherwise, as to where an upload goes on."""
        return tuple(
            (name, self._services.moved(value.decode("latin-1"), protocol, base).encode("latin-1"))
            for name, value in upstream.headers
        )

    async def _refuse(
        self,
        request: web.BaseRequest,
        protocol: WireProtocol,
        exchange: Exchange,
        message: str,
        status: int = 502,
        code: str | None = "upstream_unreachable",
    ) -> web.StreamResponse:
        error = RequestError(message, status=status, code=code)
        played = replace(exchange.played, outcome="error", status=status, problems=(message,))
        exchange.forward(played)
        answer = error_answer(protocol, error, derive("upstream", message))
        close = not request.content.at_eof()
        return await deliver(request, answer, exchange.sent, close=close)

    async def _pass_on(
        self,
        request: web.BaseRequest,
        upstream: Upstream,
        headers: RawHeaders,
        copy: AnswerCopy,
        exchange: Exchange,
    ) -> None:
        """Sends the answer on as it arrives.

        Args:
            headers: that the client gets.

        Raises:
            UpstreamError: the service broke the answer off.
            ConnectionResetError: the client is gone.
        """
        response = upstream.response
        sent = exchange.sent
        sent.pass_on(response.status)
        old = request.version <= HttpVersion10
        empty = request.method == "HEAD" or response.status in _NO_BODY
        length = response.headers.get("Content-Length")
        remaining = int(length) if length is not None and not empty else None
        framed = not empty and not old and length is None
        head = _head(
            upstream,
            headers,
            framed=framed,
            close=old or not request.keep_alive,
            for_page="Origin" in request.headers,
        )
        pieces, size = [head], 0
        if not upstream.has_more:
            await send(request, pieces.pop(), sent)
        async for data in upstream.chunks():
            copy.add(data)
            if remaining is not None:
                remaining -= len(data)
                if remaining <= 0:
                    copy.finish()
            pieces.append(chunk(data) if framed else data)
            size += len(data)
            if upstream.has_more:  # what arrived together goes out together
                continue
            await send(request, b"".join(pieces), sent)
            sent.wrote(size, time.perf_counter())
            copy.passed_on()
            pieces, size = [], 0
        copy.finish()
        if framed:
            await send(request, _last_chunk(upstream.trailers), sent)
        sent.end_pauses(time.perf_counter())


_SWITCHING = 101
_UPGRADE = ((b"Connection", b"Upgrade"), (b"Upgrade", b"websocket"))
_WEBSOCKET = "a WebSocket is passed on, and not recorded"
_PROBE = "a probe of the port is passed on, and not recorded: it asks for nothing"


def _is_probe(method: str, target: str) -> bool:
    """Whether a request only asks whether somebody listens, as load balancers and starting scripts
    do."""
    return method in ("GET", "HEAD") and target == "/"


def _request_headers(
    request: web.BaseRequest, *, readable: bool, plain: bool = False
) -> RawHeaders:
    """The client's headers as the service gets them.

    Args:
        readable: ask for no compression that a recording cannot undo.
        plain: ask for none at all: faults strike in events that can be read.
    """
    out: list[tuple[bytes, bytes]] = []
    decoded = request.headers.get("Content-Encoding", "").lower() in _DECODED
    for name, value in end_to_end(request.raw_headers):
        key = name.lower()
        if key in _RECOMPUTED or key.startswith(_OURS):
            continue
        if decoded and key in (b"content-encoding", b"content-length"):
            continue
        if key == b"accept-encoding" and plain:
            value = b"identity"
        elif key == b"accept-encoding" and readable:
            value = _readable(value)
        out.append((name, value))
    return tuple(out)


def _readable(accepted: bytes) -> bytes:
    offered = [part.strip() for part in accepted.decode("latin-1").split(",")]
    known = {*codings(), "identity"}
    kept = [part for part in offered if part.partition(";")[0].strip().lower() in known]
    return ", ".join(kept).encode("latin-1") or b"identity"


def _head(
    upstream: Upstream, headers: RawHeaders, *, framed: bool, close: bool, for_page: bool
) -> bytes:
    """The head of the service's answer for the client.

    Args:
        headers: of the answer, as the client gets them.
        for_page: whether a page in a browser gets it, which must be allowed to read it.
    """
    response = upstream.response
    lines = [f"HTTP/1.1 {response.status} {upstream.reason}".encode("latin-1")]
    lines += [name + b": " + value for name, value in headers]
    if for_page:
        names = {name.decode("latin-1").lower() for name, _ in headers}
        if "access-control-allow-origin" not in names:
            lines += [f"{name}: {CORS[name]}".encode() for name in CORS if name not in names]
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
