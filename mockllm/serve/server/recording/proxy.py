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
from collections.abc import AsyncIterator, Container, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from aiohttp import HttpVersion10, web

from mockllm.core.errors import RequestError, UpstreamError, UsageError
from mockllm.core.seeded import derive
from mockllm.play.replay.compilation.http_answer import chunk, error_answer
from mockllm.play.replay.fault_plan import NO_PLAN, FaultPlan
from mockllm.play.replay.request_headers import FAULT_HEADER, requested_faults
from mockllm.play.replay.sessions.exchange import Exchange, Played
from mockllm.record.recording.drafting.matches import MatchRule
from mockllm.record.redaction.rules import Rules
from mockllm.scenario.fault_model import Fault, faults_text
from mockllm.serve.server.http.aiohttp_internals import pass_through
from mockllm.serve.server.http.delivery import CLOSE, KEEP_ALIVE, deliver
from mockllm.serve.server.http.request_reading import Arrival, opens_websocket
from mockllm.serve.server.http.sending import end_early, send
from mockllm.serve.server.options import PATIENCE, RecordMode, RecordOptions
from mockllm.serve.server.recording.copying import AnswerCopy, Upload, cut_of
from mockllm.serve.server.recording.heads import (
    SWITCHING,
    UPGRADE,
    answer_head,
    body_length,
    last_chunk,
    request_headers,
)
from mockllm.serve.server.recording.recorder import Recorder, Written
from mockllm.serve.server.recording.services import Services, shown_url
from mockllm.serve.server.recording.signing import Scope, signed_again, signed_scope
from mockllm.serve.server.recording.socket_copy import SocketCopy
from mockllm.serve.server.recording.upstream import RawHeaders, Upstream, Upstreams
from mockllm.wire.protocols.base import WireProtocol

if TYPE_CHECKING:
    from mockllm.serve.mcp.mcp_recorder import McpRecorder, ServerCopy

_Body = bytes | AsyncIterator[bytes] | None


class Proxy:
    """Forwards requests and records the answers.

    Args:
        options: the services, and what is recorded into which folder.
        written, reserved: as of `Recorder`.
        faults: of what passes to the clients; what is recorded stays whole.
        patience: for how long nothing may arrive of a request, in seconds.
        began: when the server started, in seconds of `time.perf_counter`.

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
        patience: float = PATIENCE,
        began: float = 0.0,
    ) -> None:
        self.options, self.faults, self.patience, self.began = options, faults, patience, began
        listener = written if options.mode == "new_episodes" else None
        self.recorder: Recorder | None = None
        self.mcp: McpRecorder | None = None
        if options.mode != "none":
            try:
                self.mcp = _mcp_recorder(options) if options.servers else None
                self.recorder = Recorder(options, listener, reserved)
            except OSError as error:
                why = error.strerror or error
                raise UsageError(
                    f"cannot record into {str(options.folder)!r}: {why}; name a folder that can be "
                    "written to"
                ) from None
        self.services = Services(options.upstreams, options.option)
        self.upstreams = Upstreams(trust_env=options.trust_env)
        self.passing: set[asyncio.Task[object]] = set()
        self._reading: set[asyncio.Task[None]] = set()
        self.mode: RecordMode = options.mode
        if options.mode == "once":
            assert self.recorder is not None
            self.mode = "add" if self.recorder.was_empty else "none"
            self.mcp = self.mcp if self.recorder.was_empty else None

    @property
    def forwards_all(self) -> bool:
        """Whether no request is answered from scenarios."""
        return self.mode in ("add", "all")

    def serves(self, protocol: WireProtocol, origin: str = "") -> bool:
        """Whether a protocol has a real service that requests may go to: that of their origin, or
        one that the options name."""
        return self.mode != "none" and (bool(origin) or self.services.serves(protocol))

    def service_for(self, path: str, headers: Container[str]) -> WireProtocol | None:
        """The protocol whose service gets a request that belongs to no API; None if no service
        gets any.

        Raises:
            RequestError: several services may be meant.
        """
        return None if self.mode == "none" else self.services.find(path, headers)

    async def close(self) -> None:
        """Ends the connections; every exchange is on the disk afterwards.

        An answer that is still arriving is cut, and recorded up to there.
        """
        self.mode = "none"
        for task in self.passing:
            task.cancel()
        try:
            if self.passing:
                await asyncio.wait(self.passing)
            if self._reading:
                await asyncio.wait(self._reading)
            await self.upstreams.aclose()
            if self.mcp is not None:
                await self.mcp.close()
        finally:  # also where no one waits for it: its process must end
            if self.recorder is not None:
                await self.recorder.close()

    async def forward(
        self,
        arrival: Arrival,
        protocol: WireProtocol,
        exchange: Exchange,
        origin: str = "",
        server: str = "",
    ) -> web.StreamResponse:
        """Answers a request with the answer of the protocol's real service.

        Args:
            exchange: its `body` is that of the request, if that has been read.
            origin: of the service, where the options name none.
            server: the MCP server that answers in place of a service; "" for none.
        """
        task = asyncio.current_task()
        assert task is not None
        self.passing.add(task)
        try:
            return await _Passage(self, arrival, protocol, exchange, origin, server).answer()
        finally:
            self.passing.discard(task)

    def record_socket(self, recorder: Recorder, copy: SocketCopy) -> None:
        """Records a connection that is over; whoever waited for it may be cancelled."""
        reading = asyncio.create_task(_record_socket(recorder, copy))
        self._reading.add(reading)
        reading.add_done_callback(self._reading.discard)

    def missing(self, protocol: WireProtocol) -> str:
        """Why no service gets a request, and what to do about it."""
        if self.mode == "none":
            return "Nothing is recorded here, so no service is asked."
        return self.services.missing(protocol)


@dataclass(slots=True)
class _Passage:
    """One request on its way to a service, and the answer on its way back.

    Args:
        exchange, origin, server: as of `Proxy.forward`.
        recorder: None where this exchange is not recorded.
        url, headers: of the request to the service.
        upload: the body of the request, where that was not read before.
    """

    proxy: Proxy
    arrival: Arrival
    protocol: WireProtocol
    exchange: Exchange
    origin: str
    server: str = ""
    recorder: Recorder | ServerCopy | None = None
    faults: tuple[Fault, ...] = ()
    url: str = ""
    headers: RawHeaders = ()
    upload: Upload | None = None

    @property
    def request(self) -> web.BaseRequest:
        return self.arrival.request

    @property
    def is_websocket(self) -> bool:
        return opens_websocket(self.request.headers)

    @property
    def limit(self) -> int:
        """The most bytes of a body that are recorded."""
        return 0 if self.recorder is None else self.proxy.options.max_recorded

    async def answer(self) -> web.StreamResponse:
        before, api = self.exchange.played, self.protocol.name
        if not self.server:
            forwarded = Played("forwarded", api=api, model=before.model, stream=before.stream)
            self.exchange.forward(forwarded)
        try:
            upstream = await self._ask()
        except RequestError as error:
            return await self._refuse(error)
        copy = AnswerCopy(
            self.exchange,
            self.url,
            self.headers,
            self.upload,
            upstream,
            self.recorder,
            self.limit,
            self.is_websocket,
        )
        if upstream.response.status == SWITCHING:
            return await self._pass_websocket(upstream, copy)
        if self.faults:
            return await self._pass_broken(upstream, copy)
        return await self._pass_on(upstream, copy)

    async def _refuse(self, error: RequestError) -> web.StreamResponse:
        exchange = self.exchange
        exchange.forward(
            replace(
                exchange.played,
                outcome="error",
                cause="service",
                status=error.status,
                problems=(error.message,),
            )
        )
        if self.server:
            from mockllm.serve.mcp.mcp_recorder import refusal

            answer = refusal(exchange.body, error.message, error.status)
        else:
            answer = error_answer(self.protocol, error, derive("upstream", error.message))
        close = not self.request.content.at_eof()
        return await deliver(self.request, answer, exchange.sent, close=close)

    # To the service

    async def _ask(self) -> Upstream:
        """Sends the request on; returns when the head of the answer is there.

        Raises:
            RequestError: no service gets the request, or it does not answer.
        """
        if self.server:
            return await self._ask_server()
        services, protocol = self.proxy.services, self.protocol
        if not self.proxy.serves(protocol, self.origin):
            raise _not_answered(self.proxy.missing(protocol))
        is_named, target = services.serves(protocol), self.arrival.target
        self.url = services.url(protocol, target) if is_named else self.origin + target
        self.recorder = self._find_recorder()
        self.faults = self._draw_faults()
        self.headers = request_headers(
            self.request, readable=self.recorder is not None, plain=bool(self.faults)
        )
        if self.is_websocket:
            self.headers += UPGRADE
        scope = signed_scope(self.headers) if is_named else None
        body = await self._begin_body(whole=scope is not None)
        if self.recorder is not None:
            await self.recorder.room()
        if scope is not None:
            self.headers = await self._sign(scope, body)
        return await self._send(body)

    async def _ask_server(self) -> Upstream:
        """Sends the request on to an MCP server; no faults strike there.

        Raises:
            RequestError: it does not answer.
        """
        assert self.proxy.mcp is not None
        copy = self.recorder = self.proxy.mcp.copies[self.server]
        self.url = copy.url
        self.headers = request_headers(self.request, readable=True)
        body = self.exchange.body or None
        try:
            return await self.proxy.upstreams.send(
                self.request.method, self.url, self.headers, body
            )
        except UpstreamError as error:
            why = f"The MCP server {self.server!r} gave no answer at {shown_url(self.url)}: {error}"
            raise _not_answered(why) from None

    def _find_recorder(self) -> Recorder | None:
        """The recorder of this exchange; where there is none, the recorder reports why."""
        recorder, method = self.proxy.recorder, self.request.method
        if recorder is None:
            return None
        # As load balancers and starting scripts ask whether somebody listens.
        is_probe = not self.origin and method in ("GET", "HEAD") and self.arrival.target == "/"
        if self.is_websocket or not is_probe:
            return recorder
        source = f"{method} {shown_url(self.exchange.path)}"
        recorder.skip(source, f"{source}: {_PROBE}", unwanted=True)
        return None

    def _draw_faults(self) -> tuple[Fault, ...]:
        """The faults of an answer: those that the request names, or those of the plan.

        Raises:
            RequestError: the request names a fault that there is not.
        """
        exchange, headers = self.exchange, self.request.headers
        try:
            named = requested_faults(headers[FAULT_HEADER]) if FAULT_HEADER in headers else ()
        except RequestError as error:
            raise RequestError(error.message, status=400, code=error.code) from None
        at = exchange.received.clock - self.proxy.began
        return named or self.proxy.faults.draw(exchange.session, exchange.number, at)

    async def _begin_body(self, *, whole: bool) -> _Body:
        """The body as it is sent on.

        Args:
            whole: as of `Upload.begin`.

        Raises:
            RequestError: nothing arrived for too long.
        """
        if self.request.content.at_eof():
            return self.exchange.body or None
        self.upload = Upload(self.request, self.limit, self.proxy.patience)
        try:
            body = await self.upload.begin(whole=whole)
        except RequestError as error:
            raise RequestError(error.message, status=408, code=error.code) from None
        if isinstance(body, bytes):
            self.exchange.forward(self.exchange.played, body)
        return body

    async def _sign(self, scope: Scope, body: _Body) -> RawHeaders:
        """The headers, signed again for the service.

        Raises:
            RequestError: that is not possible.
        """
        try:
            return await signed_again(scope, self.request.method, self.url, self.headers, body)
        except UpstreamError as error:
            raise _not_answered(str(error), code="unsigned") from None

    async def _send(self, body: _Body) -> Upstream:
        method, url = self.request.method, self.url
        try:
            return await self.proxy.upstreams.send(method, url, self.headers, body)
        except UpstreamError as error:
            if self.upload is not None and self.upload.failure is not None:
                raise _not_answered(self.upload.failure.message, 408) from None
            raise _not_answered(
                f"The service for {self.protocol.name!r} does not answer at {shown_url(url)}: "
                f"{error}. Is that the address? Give another with "
                f"{self.proxy.services.option_for(self.protocol)}."
            ) from None

    # To the client

    def _answer_headers(self, upstream: Upstream) -> RawHeaders:
        """The headers of an answer, with the URLs of the service at the base URL of the client: it
        would go past the recorder otherwise, as to where an upload goes on."""
        if self.origin or self.server:
            return upstream.headers
        moved, protocol, base = self.proxy.services.rebase, self.protocol, self.arrival.base
        return tuple(
            (name, moved(value.decode("latin-1"), protocol, base).encode("latin-1"))
            for name, value in upstream.headers
        )

    def _head(self, upstream: Upstream, *, framed: bool, close: bool) -> bytes:
        # Where the request named the service, only that decides which pages may read the answer.
        for_page = not self.origin and "Origin" in self.request.headers
        headers = self._answer_headers(upstream)
        return answer_head(upstream, headers, framed=framed, close=close, for_page=for_page)

    async def _pass_websocket(self, upstream: Upstream, opening: AnswerCopy) -> web.StreamResponse:
        """Passes a WebSocket's bytes on in both directions until it is over."""
        sent, recorder, copy = self.exchange.sent, self.recorder, opening.begin_socket()
        if self.faults:
            sent.break_with(faults_text(self.faults), SWITCHING)
            sent.miss("none strikes in a WebSocket")
        sent.pass_on(SWITCHING)
        headers = (*self._answer_headers(upstream), *UPGRADE)
        head = answer_head(upstream, headers, framed=False, close=False)
        try:
            await send(self.request, head, sent)
            watches = (None, None) if copy is None else copy.watches
            await pass_through(self.request, upstream.response, watches)
        finally:
            upstream.close()
            if isinstance(recorder, Recorder) and copy is not None:
                self.proxy.record_socket(recorder, copy)
        sent.end_pauses(time.perf_counter())
        return CLOSE

    async def _pass_broken(self, upstream: Upstream, copy: AnswerCopy) -> web.StreamResponse:
        """Sends the answer on with its faults; the copy stays whole."""
        from mockllm.play.replay.broken_answer import circumstances
        from mockllm.serve.server.recording.live_faults import pass_broken

        request, exchange = self.request, self.exchange

        def head(framed: bool) -> bytes:
            return self._head(upstream, framed=framed, close=not framed or not request.keep_alive)

        parsed = None if exchange.received.target is None else exchange.request
        around = circumstances(self.protocol, parsed, request.raw_path)
        return await pass_broken(
            request, upstream, copy, exchange.sent, self.faults, around, head, self.proxy.passing
        )

    async def _pass_on(self, upstream: Upstream, copy: AnswerCopy) -> web.StreamResponse:
        """Sends the answer on as it arrives, and breaks off where the service does."""
        request, sent = self.request, self.exchange.sent
        try:
            await self._write(upstream, copy)
        except UpstreamError as error:
            copy.cut = cut_of(error)
            sent.report(str(error))
            framed = request.version > HttpVersion10
            await end_early(request, error.how or "closed", sent, framed=framed)
        finally:
            upstream.close()
            copy.hand_over()
        stays = not copy.cut and request.keep_alive and request.version > HttpVersion10
        return KEEP_ALIVE if stays else CLOSE

    async def _write(self, upstream: Upstream, copy: AnswerCopy) -> None:
        """Writes head, body and end of the answer.

        Raises:
            UpstreamError: the service broke the answer off.
            ConnectionResetError: the client is gone.
        """
        request, response, sent = self.request, upstream.response, self.exchange.sent
        sent.pass_on(response.status)
        old = request.version <= HttpVersion10
        remaining = body_length(request, upstream)
        framed = remaining is None and not old
        pieces, size = [self._head(upstream, framed=framed, close=old or not request.keep_alive)], 0
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
            await send(request, last_chunk(upstream.trailers), sent)
        sent.end_pauses(time.perf_counter())


def _mcp_recorder(options: RecordOptions) -> McpRecorder:
    """The recorder of MCP servers; refuses (`UsageError`) to overwrite the document of one."""
    from mockllm.serve.mcp.mcp_recorder import McpOutput, McpRecorder  # few recorders need it

    match, rules = options.match or MatchRule(), options.rules or Rules()
    output = McpOutput(options.folder, rules, match.ignore, options.report or (lambda _: None))
    return McpRecorder(options.servers, output, options.mode)


async def _record_socket(recorder: Recorder, copy: SocketCopy) -> None:
    session, problem = await asyncio.to_thread(copy.read)
    recorder.add(session)
    if problem:
        recorder.skip(session.source, f"{session.source}: {problem}")


def _not_answered(
    message: str, status: int = 502, code: str = "upstream_unreachable"
) -> RequestError:
    return RequestError(message, status=status, code=code)


_PROBE = "a probe of the port is passed on, and not recorded: it asks for nothing"
