"""What becomes of a request: session, endpoint, body, `Player`, `deliver`.

Nothing here knows a protocol. Imported when the server listens already, for it needs nearly
everything.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from aiohttp import web

from mockllm.core.text import readable_header
from mockllm.errors import NoMatchError, RequestError
from mockllm.matching.routes import RouteRequest
from mockllm.protocols import PROTOCOLS
from mockllm.protocols.base import WireProtocol
from mockllm.redaction.masks import masked_headers, masked_messages, masked_url
from mockllm.replay.answer import HttpAnswer, in_list, json_answer, without_body
from mockllm.replay.call import Call, TapeNotReadError
from mockllm.replay.fault_plan import FaultPlan
from mockllm.replay.kinds import make_player
from mockllm.replay.player import Player
from mockllm.replay.session import Exchange, Session, Sessions
from mockllm.replay.shared_session import SharedSession
from mockllm.scenario.model import Scenario
from mockllm.server.body_reading import brief, closes, is_malformed, read_body, silent
from mockllm.server.control import CONTROL_PREFIX, Control, gone
from mockllm.server.control_access import ControlAccess, preflight_headers
from mockllm.server.control_answers import ControlAnswers
from mockllm.server.delivery import CLOSE, deliver
from mockllm.server.front_page import front_page, wants_page
from mockllm.server.last_resort import failure, note_failure, too_deep
from mockllm.server.metrics import Snapshot, make_metrics
from mockllm.server.options import ServerOptions
from mockllm.server.pacing import Pacer
from mockllm.server.path_templates import path_routes
from mockllm.server.plain_routes import PlainRoutes
from mockllm.server.request_target import (
    SESSION_HEADER,
    check_session,
    first_line,
    origin_form,
    session_of,
    split_target,
)
from mockllm.server.routing import Endpoint, Routes
from mockllm.server.sending import break_off
from mockllm.server.session_setup import SessionSetups
from mockllm.server.tape_reads import NO_TAPES, TapeReads

if TYPE_CHECKING:
    from mockllm.matching.index import ScenarioIndex
    from mockllm.server.options import RecordOptions
    from mockllm.server.proxy import Proxy
    from mockllm.server.state.answering import SharedAnswers
    from mockllm.server.state.shared import SharedState

__all__ = ["Handler"]

DEFAULT = "default"
"""The session of requests that name none, or none that can be."""

_Answer = TypeVar("_Answer")

"""The errors after which the body of the request has not been read."""


def _headers(request: web.BaseRequest) -> dict[str, str]:
    """The headers of a request, their names in lower case."""
    return {name.lower(): readable_header(value) for name, value in request.headers.items()}


def _known(
    answer: HttpAnswer,
) -> Callable[[Session, Exchange], Awaitable[tuple[HttpAnswer | _Forward, bool]]]:
    """Answers with an answer that is known already."""

    async def answering(_: Session, __: Exchange) -> tuple[HttpAnswer | _Forward, bool]:
        return answer, False

    return answering


def _port(request: web.BaseRequest) -> int:
    """The port of the client."""
    transport = request.transport
    peer = None if transport is None else transport.get_extra_info("peername")
    return 0 if peer is None else int(peer[1])


@dataclass(frozen=True, slots=True)
class _Forward:
    """Says that the real service of a protocol is to answer; it is recorded."""

    proxy: Proxy
    protocol: WireProtocol


class Handler:
    """Answers the requests of one server."""

    def __init__(
        self, scenarios: Iterable[Scenario], options: ServerOptions, sessions: Sessions
    ) -> None:
        self.options = options
        self.sessions = sessions
        self.streaming: set[asyncio.Task[object]] = set()
        self.cutting = False
        """Whether the server stops, and ends the answers that are still open."""
        self.metrics = make_metrics()
        self._pacer = Pacer(self.metrics.late if self.metrics.counts else None)
        self._scenarios = tuple(scenarios)
        self.player = self._player(self._scenarios)
        self._proxy: Proxy | None = None
        self.assigned = SessionSetups(self._player)
        sessions.on_evicted = self.assigned.evict
        self._routes = Routes(PROTOCOLS.values(), path_routes(PROTOCOLS, options.paths))
        self._tape_reads = TapeReads()
        self._plain = PlainRoutes(self._routes, self._tape_reads, fallback=options.fallback)
        control = Control(sessions, self.assigned, PROTOCOLS, self.player_of, options.paths)
        access = ControlAccess(options.host, options.allowed_hosts, options.allowed_origins)
        self._control = ControlAnswers(control, access, self._figures)
        self.readiness = self._control.readiness
        self.shared: SharedAnswers | None = None

    def _player(
        self,
        scenarios: Iterable[Scenario] | ScenarioIndex,
        named: str | None = None,
        quirks: Iterable[str] = (),
        in_order: bool = False,
        faults: FaultPlan | None = None,
    ) -> Player:
        """A player with the options of the server.

        Args:
            named, quirks: as of `Player`.
            in_order: whether recordings of the same request are played in their order.
            faults: None: those of the server.
        """
        options = self.options
        return make_player(
            scenarios,
            strict=options.strict,
            fallback=options.fallback,
            quirks=(*options.quirks, *quirks),
            named=named,
            speed=options.speed,
            in_order=in_order,
            plan=options.faults if faults is None else faults,
        )

    def _figures(self) -> Snapshot:
        return self.metrics.snapshot(len(self.streaming), self.sessions.dropped)

    def share(self, state: SharedState) -> None:
        """Keeps sessions in a store that other processes use, too."""
        from mockllm.server.state.answering import SharedAnswers

        self.shared = SharedAnswers(
            state, self.assigned, lambda: self.player, self._refusal, self.metrics.store_failed
        )
        self._control.control.shared = self.shared
        self.readiness.checks.append(state.problem)
        state.figures = self._figures
        self._control.gather = state.all_figures

    def reload(self, scenarios: Iterable[Scenario]) -> None:
        """Serves other scenarios from the next request on."""
        self._scenarios = tuple(scenarios)
        self.player = self._player(self._scenarios)

    def start_recording(self, options: RecordOptions) -> None:
        """Lets real services answer, as the options say, and records what they do.

        Raises:
            ScenarioError: what was recorded before cannot be loaded.
        """
        from mockllm.server.proxy import Proxy

        names = [scenario.name for scenario in self._scenarios]
        self._proxy = Proxy(options, self._serving, names, self.options.faults)
        self._proxy.patience = self.options.patience

    async def close(self) -> None:
        """Waits until everything that was recorded is on the disk."""
        await self.assigned.close()
        if self._proxy is not None:
            await self._proxy.close()

    def _serving(self, recorded: tuple[Scenario, ...]) -> Callable[[], None]:
        """What serves recorded scenarios beside the others; they are indexed before, so that
        the event loop need not wait for it."""
        by_name = {scenario.name: scenario for scenario in (*self._scenarios, *recorded)}
        player = self._player(by_name.values())

        def swap() -> None:
            self.player = player

        return swap

    def player_of(self, session: str) -> Player:
        """What decides about the answers in a session."""
        own = self.assigned.find(session)
        return self.player if own is None else self.assigned.player(own, self.player)

    def gave_up(self) -> None:
        """Notes a request whose head did not arrive whole; nothing is known of its session."""
        error = silent("head", self.options.patience)
        exchange = Exchange("", "", {}, b"", at=time.time(), clock=time.perf_counter())
        exchange.problems = (error.message,)
        self._record(exchange)

    def malformed(self, data: bytes, error: BaseException) -> web.Response:
        """The answer to bytes that are no HTTP request, in the form of the API whose path they
        name. It stands in the journal of the default session.

        Args:
            data: the beginning of what arrived last.
            error: what is wrong with them, or any error that nothing else has caught.
        """
        method, target = first_line(data)
        exchange = Exchange(
            method, masked_url(target), {}, b"", at=time.time(), clock=time.perf_counter()
        )
        if is_malformed(error):
            refused = RequestError(f"This is no HTTP request: {brief(error)}.", code="malformed")
            answer = self._refusal(target, refused, exchange)
        else:
            refused = failure(error)
            answer = self._refusal(target, refused, exchange)
            exchange.problems = ()
            note_failure(exchange, refused)
        exchange.bytes_sent = answer.size
        self._record(exchange)
        return web.Response(
            status=answer.status, body=b"".join(answer.data), headers=dict(answer.headers)
        )

    def _record(self, exchange: Exchange) -> None:
        """Notes a request whose session is not known, and which is over."""
        if self.shared is None:
            self.sessions.record(self.sessions.get(DEFAULT), exchange)
        else:
            self.shared.record(SharedSession(DEFAULT), exchange)
            self.shared.end(exchange)
        self.metrics.answered(exchange, {})
        self._log(exchange)

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answers a request, in full, and notes it in its session's journal."""
        began = time.perf_counter()
        headers = _headers(request)
        session_name, target = session_of(origin_form(request.raw_path, headers), headers)
        exchange = Exchange(
            request.method,
            masked_url(target),
            masked_headers(headers),
            b"",
            at=time.time(),
            clock=began,
            in_use=True,
            connection=_port(request),
        )
        shown = self._about_server(request, target, session_name, headers, exchange)
        if shown is not None:
            return await self._shown(request, exchange, shown)
        try:
            check_session(session_name)
        except RequestError as error:
            refusal = self._refusal(target, error, exchange)
            return await self._play(request, target, DEFAULT, exchange, _known(refusal))
        path, query = split_target(target)
        answering = partial(self._answer, request, path, query, headers)
        return await self._play(request, target, session_name, exchange, answering)

    def _about_server(
        self,
        request: web.BaseRequest,
        target: str,
        session: str,
        headers: Mapping[str, str],
        exchange: Exchange,
    ) -> Awaitable[web.StreamResponse] | None:
        """What answers a request about the server itself; None for all others.

        Args:
            target: without the prefix of a session.
        """
        path = target.partition("?")[0]
        named = request.raw_path.endswith(f"/s/{session}{target}")
        if path.startswith(CONTROL_PREFIX):
            return self._control.respond(
                request,
                exchange,
                self.player,
                target,
                headers,
                session if named or SESSION_HEADER in headers else None,
                partial(self._body, request, headers),
            )
        if request.method == "OPTIONS":
            preflight = json_answer(200, {}, preflight_headers(headers))
            return deliver(request, preflight, exchange)
        if path == "/" and self._shows_front_page(request.method, session, headers):
            count = len(self.player_of(session).served.scenarios)
            page = front_page(request, headers, f"/s/{session}" if named else "", PROTOCOLS, count)
            return deliver(
                request, without_body(page) if request.method == "HEAD" else page, exchange
            )
        return None

    async def _shown(
        self, request: web.BaseRequest, exchange: Exchange, shown: Awaitable[web.StreamResponse]
    ) -> web.StreamResponse:
        """The answer to a request about the server, which stands in no journal unless it fails."""
        try:
            return await shown
        except ConnectionResetError:
            raise
        except Exception as error:  # noqa: BLE001 - of mockllm itself: it is said
            refused = failure(error)
            note_failure(exchange, refused)
            self._record(exchange)
            if exchange.bytes_sent:
                await break_off(request, "closed")
                return CLOSE
            answer = json_answer(refused.status, {"error": {"message": refused.message}})
            return await deliver(request, answer, exchange, close=True)

    def _refusal(self, target: str, error: RequestError, exchange: Exchange) -> HttpAnswer:
        """The error answer in the form of the API that has the path."""
        shape = self._routes.nearest(target.partition("?")[0])
        return self.player.refuse(shape, error, exchange)

    async def _play(
        self,
        request: web.BaseRequest,
        target: str,
        session_name: str,
        exchange: Exchange,
        answering: Callable[[Session, Exchange], Awaitable[tuple[HttpAnswer | _Forward, bool]]],
    ) -> web.StreamResponse:
        """Sends what answers a request; it stands in the journal of its session.

        Args:
            answering: makes the answer, and says whether the connection has to be closed after it.
        """
        shared = self.shared
        session = self.sessions.get(session_name) if shared is None else SharedSession(session_name)
        try:
            if isinstance(session, SharedSession) and shared is not None:
                playing = partial(answering, session, exchange)
                answer, close = await shared.answer(session, exchange, target, playing)
            else:
                answer, close = await answering(session, exchange)
        except ConnectionResetError:
            raise
        except Exception as error:  # noqa: BLE001 - of mockllm itself: it is said and counted
            refused = too_deep(error, exchange.body) or failure(error)
            answer, close = self._refusal(target, refused, exchange), True
            if refused.status >= 500:
                exchange.problems = ()
                note_failure(exchange, refused)
        if request.method == "HEAD" and isinstance(answer, HttpAnswer):
            answer = without_body(answer)
        if exchange.problems:  # they quote headers and the path
            exchange.problems = masked_messages(exchange.problems, _headers(request), target)
        if isinstance(session, SharedSession) and shared is not None:
            shared.record(session, exchange)
        else:
            self.sessions.record(session, exchange)
        return await self._send(request, target, exchange, answer, close=close)

    async def _send(
        self,
        request: web.BaseRequest,
        target: str,
        exchange: Exchange,
        answer: HttpAnswer | _Forward,
        *,
        close: bool,
    ) -> web.StreamResponse:
        """Sends an answer, and notes in the exchange how that ended."""
        task = asyncio.current_task()
        assert task is not None
        if isinstance(answer, _Forward) or answer.takes_time:
            self.streaming.add(task)
        try:
            if isinstance(answer, _Forward):
                return await answer.proxy.forward(request, target, answer.protocol, exchange)
            return await deliver(
                request,
                answer,
                exchange,
                speed=self.options.speed,
                by_event=self.options.flush == "event",
                close=close,
                stalled=partial(self.streaming.discard, task),
                pacer=self._pacer,
            )
        except asyncio.CancelledError:
            exchange.client_gone = True
            raise
        except ConnectionResetError:
            raise
        except Exception as error:  # noqa: BLE001 - of mockllm itself, in the middle of an answer
            note_failure(exchange, failure(error))
            await break_off(request, "closed")
            return CLOSE
        finally:
            self.streaming.discard(task)
            if self.cutting and exchange.client_gone:
                exchange.client_gone, exchange.stopped = False, True
            exchange.duration = time.perf_counter() - exchange.clock
            exchange.settle()
            self.metrics.answered(exchange, self.player.served.by_name)
            if self.shared is not None:
                self.shared.end(exchange)
            self._log(exchange)

    def _log(self, exchange: Exchange) -> None:
        if self.options.log is not None:
            self.options.log(exchange)

    async def _answer(
        self,
        request: web.BaseRequest,
        path: str,
        query: Mapping[str, str],
        headers: Mapping[str, str],
        session: Session,
        exchange: Exchange,
    ) -> tuple[HttpAnswer | _Forward, bool]:
        """The answer, and whether the connection has to be closed after it."""
        player, proxy = self.player, self._proxy
        own = self.assigned.find(session.name)
        if own is not None:
            player = self.assigned.player(own, player)
            proxy = own.proxy or (None if own.is_alone else proxy)
            if own.gone:
                refusal = gone(session.name)
                return player.refuse(self._routes.nearest(path), refusal, exchange), False
        endpoint = self._routes.find(request.method, path, headers)
        forwards_all = proxy is not None and proxy.forwards_all
        routed = not forwards_all and self._plain.has(player, request.method, path, endpoint)
        if proxy is not None and not routed:
            try:
                forward = self._passing(proxy, path, headers, endpoint, session)
            except RequestError as error:
                return player.refuse(self._routes.nearest(path), error, exchange), False
            if forward is not None:
                return forward, False
        if endpoint is None or routed:
            plain = await self._answer_plain(
                request, path, headers, session, exchange, player, proxy, endpoint
            )
            if plain is not None:
                return plain
            assert endpoint is not None
        protocol, target = endpoint.protocol, endpoint.target
        exchange.api = protocol.name
        if endpoint.operation == "generate":
            exchange.target = target
        if query:
            target = replace(target, query=query)
        try:
            if not routed:  # or it is read
                exchange.body = exchange.body or await self._body(request, headers)
            if proxy is not None and proxy.forwards_all:
                return _Forward(proxy, protocol), False
            if protocol.guard is not None and self.options.strict:
                protocol.guard(headers, target)
        except RequestError as error:
            return player.refuse(protocol, error, exchange), closes(error)
        call = Call(protocol, target, headers, session, exchange, NO_TAPES, request.raw_path)
        if endpoint.operation == "generate":
            try:
                answer = player.play(call)
            except TapeNotReadError as missing:
                answer = await self._finished(self._tape_reads.play(player, call, missing))
            made = answer.status >= 400 and exchange.recorded != "exact"
            if made and protocol.lists_errors and protocol.lists_errors(target):
                answer = in_list(answer)
            refused = exchange.outcome in ("unmatched", "invalid")
            if refused and proxy is not None and proxy.serves(protocol):
                return _Forward(proxy, protocol), False
            return answer, False
        return player.look_up(call, endpoint.operation), False

    def _shows_front_page(self, method: str, session: str, headers: Mapping[str, str]) -> bool:
        """Whether a request for `/` gets the page about the server: no scenario has this route, no
        service answers, and the client takes a page."""
        own = self.assigned.find(session)
        if method not in ("GET", "HEAD") or not wants_page(headers) or self._proxy is not None:
            return False
        if own is not None and (own.gone or own.proxy is not None):
            return False
        if self.shared is not None and session != "default":  # its scenarios may not be here yet
            return False
        return not self._plain.has(self.player_of(session), method, "/", None)

    async def _answer_plain(
        self,
        request: web.BaseRequest,
        path: str,
        headers: Mapping[str, str],
        session: Session,
        exchange: Exchange,
        player: Player,
        proxy: Proxy | None,
        endpoint: Endpoint | None,
    ) -> tuple[HttpAnswer | _Forward, bool] | None:
        """As `_answer`, for a route that is no path of an API, or that scenarios may answer. None
        where the endpoint of the path answers; the body is read then."""
        shape = self._routes.nearest(path) if endpoint is None else endpoint.protocol
        try:
            exchange.body = exchange.body or await self._body(request, headers)
            query = request.raw_path.partition("?")[2]
            sent = RouteRequest(request.method, path, query, headers, exchange.body)
            answer = await self._finished(self._plain.play(player, sent, session, exchange))
            forward = None
            if answer is None and proxy is not None:
                forward = self._passing(proxy, path, headers, endpoint, session)
        except RequestError as error:
            unmatched = isinstance(error, NoMatchError)
            refusal = player.refuse(shape, error, exchange, unmatched=unmatched)
            return refusal, closes(error)
        if answer is None and forward is None and endpoint is not None:
            return None
        return answer or forward or self._plain.unanswered(player, sent, exchange), False

    async def _finished(self, playing: Awaitable[_Answer]) -> _Answer:
        """An answer for which a tape or a file may be read; a server that stops waits for it."""
        task = asyncio.current_task()
        assert task is not None
        self.streaming.add(task)
        try:
            return await playing
        finally:
            self.streaming.discard(task)

    def _passing(
        self,
        proxy: Proxy,
        path: str,
        headers: Mapping[str, str],
        endpoint: Endpoint | None,
        session: Session,
    ) -> _Forward | None:
        """Whether a service answers what asks no model: look-ups, and paths not known here.

        Raises:
            RequestError: no one service is meant by the path and the headers.
        """
        if endpoint is not None:
            protocol = endpoint.protocol
            stored = protocol.stored
            id = endpoint.target.segments.get(stored.segment, "") if stored is not None else ""
            if endpoint.operation == "generate" or session.answer(id) is not None:
                return None
            if proxy.serves(protocol):
                return _Forward(proxy, protocol)
        service = proxy.service_for(path, headers)
        return None if service is None else _Forward(proxy, service)

    async def _body(self, request: web.BaseRequest, headers: Mapping[str, str]) -> bytes:
        limit = self.options.max_body
        error = RequestError(
            f"The request body is larger than {limit} bytes. Send less, or serve with a larger "
            "--max-body.",
            status=413,
            code="request_too_large",
        )
        if int(headers.get("content-length", "0")) > limit:
            raise error
        if headers.get("expect", "").lower() == "100-continue" and request.transport is not None:
            request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        try:
            body = await read_body(request, limit, self.options.patience)
        except web.HTTPRequestEntityTooLarge:
            raise error from None
        if len(body) > limit:
            raise error
        return body
