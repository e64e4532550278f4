"""What becomes of a request: its session, its answer, and how that is sent and noted.

Nothing here knows a protocol. Imported when the server listens already, for it needs nearly
everything.
"""

from __future__ import annotations

import asyncio
import time
from array import array
from collections.abc import Awaitable, Iterable, Mapping
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from aiohttp import web

from mockllm.core.text import readable_header
from mockllm.errors import RequestError
from mockllm.protocols import PROTOCOLS
from mockllm.redaction.masks import masked_headers, masked_messages, masked_url
from mockllm.replay.compilation.http_answer import HttpAnswer, json_answer, without_body
from mockllm.replay.sessions.exchange import Exchange, PassedAnswer
from mockllm.replay.sessions.session import Sessions
from mockllm.replay.sessions.shared_session import SharedSession
from mockllm.scenario.model import Scenario
from mockllm.server.answers import Answers, Forward
from mockllm.server.control.access import ControlAccess
from mockllm.server.control.metrics import Snapshot, make_metrics
from mockllm.server.control.responses import ControlAnswers
from mockllm.server.control.routes import Control
from mockllm.server.control.server_requests import About
from mockllm.server.control.server_view import ServerView
from mockllm.server.http.body_reading import brief, is_malformed, silent
from mockllm.server.http.delivery import CLOSE, deliver, write_at_once
from mockllm.server.http.pacing import Pacer
from mockllm.server.http.request_target import (
    check_session,
    first_line,
    origin_form,
    session_of,
    split_target,
)
from mockllm.server.http.sending import break_off
from mockllm.server.last_resort import failure, note_failure, too_deep
from mockllm.server.options import ServerOptions

if TYPE_CHECKING:
    from mockllm.server.state.shared_answers import SharedAnswers
    from mockllm.server.state.shared_state import SharedState

__all__ = ["Handler"]

DEFAULT = "default"
"""The session of requests that name none, or none that can be."""


@lru_cache(maxsize=256)
def _read_headers(
    raw: tuple[tuple[bytes, bytes], ...],
) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """The headers of a request, their names in lower case, and the same with secrets masked.

    Clients repeat their headers. Both results are shared: nothing may change them.
    """
    headers = {name.decode("latin-1").lower(): readable_header(value) for name, value in raw}
    return headers, masked_headers(headers)


def _port(request: web.BaseRequest) -> int:
    """The port of the client."""
    transport = request.transport
    peer = None if transport is None else transport.get_extra_info("peername")
    return 0 if peer is None else int(peer[1])


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
        self.answers = Answers(scenarios, options, self.streaming)
        self.assigned = self.answers.assigned
        sessions.on_evicted = self.assigned.evict
        control = Control(sessions, self.assigned, PROTOCOLS, self.answers.player_of, options.paths)
        access = ControlAccess(options.host, options.allowed_hosts, options.allowed_origins)
        self.ui = ServerView(self.answers, sessions, options.page)
        self._control = ControlAnswers(control, access, self._figures, self.ui)
        self.readiness = self._control.readiness
        self.shared: SharedAnswers | None = None
        self._about = About(self._control, self.answers)

    def _figures(self) -> Snapshot:
        return self.metrics.snapshot(len(self.streaming), self.sessions.dropped)

    def share(self, state: SharedState) -> None:
        """Keeps sessions in a store that other processes use, too."""
        from mockllm.server.state.shared_answers import SharedAnswers
        from mockllm.server.state.shared_control import SharedControl

        self.shared = SharedAnswers(
            state,
            self.assigned,
            lambda: self.answers.player,
            self.answers.refusal,
            self.metrics.store_failed,
        )
        self.ui.shared = SharedControl(self.shared, self.assigned)
        self._control.control.shared = self.ui.shared
        self.readiness.checks.append(state.problem)
        state.figures = self._figures
        self._control.gather = state.all_figures

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
            answer = self.answers.refusal(target, refused, exchange)
        else:
            refused = failure(error)
            answer = self.answers.refusal(target, refused, exchange)
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
        target, (headers, masked) = request.raw_path, _read_headers(request.raw_headers)
        if not target.startswith("/"):
            target, headers = origin_form(target, headers)
            masked = masked_headers(headers)
        session_name, target = session_of(target, headers)
        exchange = Exchange(
            request.method,
            masked_url(target),
            masked,
            b"",
            at=time.time(),
            clock=began,
            in_use=True,
            connection=_port(request),
        )
        if self._about.may_answer(request.method, split_target(target)[0]):
            shown = self._about.answer(request, target, session_name, headers, exchange)
            if shown is not None:
                return await self._shown(request, exchange, shown)
        refusal = None
        if session_name != DEFAULT:
            try:
                check_session(session_name)
            except RequestError as error:
                refusal = self.answers.refusal(target, error, exchange)
                session_name = DEFAULT
        return await self._play(request, target, headers, session_name, exchange, refusal)

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

    async def _play(
        self,
        request: web.BaseRequest,
        target: str,
        headers: Mapping[str, str],
        session_name: str,
        exchange: Exchange,
        refusal: HttpAnswer | None,
    ) -> web.StreamResponse:
        """Sends what answers a request; it stands in the journal of its session.

        Args:
            refusal: the answer, if it is known already.
        """
        answer: HttpAnswer | Forward
        shared = self.shared
        session = self.sessions.get(session_name) if shared is None else SharedSession(session_name)
        close = False
        try:
            if refusal is not None:
                answer = refusal
            elif isinstance(session, SharedSession) and shared is not None:
                playing = partial(self.answers.answer, request, target, headers, session, exchange)
                answer, close = await shared.answer(session, exchange, target, playing)
            else:
                answer, close = await self.answers.answer(
                    request, target, headers, session, exchange
                )
        except ConnectionResetError:
            raise
        except Exception as error:  # noqa: BLE001 - of mockllm itself: it is said and counted
            refused = too_deep(error, exchange.body) or failure(error)
            answer, close = self.answers.refusal(target, refused, exchange), True
            if refused.status >= 500:
                exchange.problems = ()
                note_failure(exchange, refused)
        if request.method == "HEAD" and isinstance(answer, HttpAnswer):
            answer = without_body(answer)
        if exchange.problems:  # they quote headers and the path
            exchange.problems = masked_messages(exchange.problems, headers, target)
        if isinstance(session, SharedSession) and shared is not None:
            shared.record(session, exchange)
        else:
            self.sessions.record(session, exchange)
        if self.ui.sent is not None and isinstance(answer, HttpAnswer):
            self.ui.sent.add(exchange, answer)
        if not close and isinstance(answer, HttpAnswer):
            response = write_at_once(request, answer, exchange, self.options)
            if response is not None:
                self._end(exchange)
                return response
        return await self._send(request, target, exchange, answer, close=close)

    async def _send(
        self,
        request: web.BaseRequest,
        target: str,
        exchange: Exchange,
        answer: HttpAnswer | Forward,
        *,
        close: bool,
    ) -> web.StreamResponse:
        """Sends an answer, and notes in the exchange how that ended."""
        task = asyncio.current_task()
        assert task is not None
        if isinstance(answer, Forward) or answer.takes_time:
            self.streaming.add(task)
        if self.ui.sent is not None:
            exchange.left = array("d")
            exchange.passed = PassedAnswer() if isinstance(answer, Forward) else None
        if self.ui.watch is not None:
            self.ui.watch(exchange)
        try:
            if isinstance(answer, Forward):
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
            self._end(exchange)

    def _end(self, exchange: Exchange) -> None:
        """Notes that the answer to a request is over."""
        exchange.duration = time.perf_counter() - exchange.clock
        exchange.settle()
        self.metrics.answered(exchange, self.answers.player.served.by_name)
        if self.shared is not None:
            self.shared.end(exchange)
        self._log(exchange)

    def _log(self, exchange: Exchange) -> None:
        """Reports a request that is over."""
        if self.options.log is not None:
            self.options.log(exchange)
        if self.ui.watch is not None:
            self.ui.watch(exchange)
