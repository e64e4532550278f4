"""Handles one request: finds its session, answers, delivers and records; `make_parts` wires the
server.

Nothing here knows a protocol. Imported when the server listens already, for it needs nearly
everything. Internal errors appear in answer, log and verdict.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Iterable
from dataclasses import replace
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

from aiohttp import web

from mockllm.core.errors import RequestError
from mockllm.core.record import record
from mockllm.play.replay.compilation.http_answer import HttpAnswer, json_answer, without_body
from mockllm.play.replay.sessions.exchange import (
    NOTHING,
    Exchange,
    Played,
    Received,
    Sent,
)
from mockllm.play.replay.sessions.session import Session, Sessions
from mockllm.play.replay.sessions.shared_session import SharedSession
from mockllm.record.redaction.credentials import masked_messages, masked_url
from mockllm.scenario.model import Scenario
from mockllm.serve.interception.headers import ORIGIN_HEADER, RUNNING
from mockllm.serve.server.answers import Answers, Chosen, Forward
from mockllm.serve.server.control.access import ControlAccess
from mockllm.serve.server.control.control_routes import Control
from mockllm.serve.server.control.running_session import RunningSession
from mockllm.serve.server.control.server_requests import Readiness, ServerRequests
from mockllm.serve.server.control.server_view import ServerView
from mockllm.serve.server.http.aiohttp_internals import leaves_at_end
from mockllm.serve.server.http.delivery import CLOSE, deliver, write_at_once
from mockllm.serve.server.http.pacing import Pacer
from mockllm.serve.server.http.request_reading import (
    Arrival,
    check_session,
    first_line,
    is_malformed,
    not_http,
    silent,
)
from mockllm.serve.server.http.sending import break_off
from mockllm.serve.server.metrics.by_model import Models
from mockllm.serve.server.metrics.figures import Figures
from mockllm.serve.server.options import ServerOptions

if TYPE_CHECKING:
    from mockllm.serve.server.state.shared_state import SharedState

DEFAULT = "default"
"""The session of requests that name none, or none that can be."""


class Handler:
    """Answers the requests of one server.

    Args:
        shared: the state that other processes share, in place of `sessions`; None: there is none.
    """

    def __init__(
        self,
        options: ServerOptions,
        answers: Answers,
        sessions: Sessions,
        shared: SharedState | None,
        requests: ServerRequests,
        view: ServerView,
        metrics: Figures,
        streaming: set[asyncio.Task[object]],
        running: RunningSession,
    ) -> None:
        self._options, self._answers, self._sessions = options, answers, sessions
        self._running = running
        self._shared, self._requests, self._view, self._metrics = shared, requests, view, metrics
        self._streaming = streaming
        self._pacer = Pacer(metrics.late.note)
        self.cutting = False
        """Whether the server stops, and ends the answers that are still open."""

    def gave_up(self) -> None:
        """Notes a request whose head did not arrive whole; nothing is known of its session."""
        error = silent("head", self._options.patience)
        self._note_lost("", "", Played(problems=(error.message,)))

    def refuse_malformed(self, data: bytes, error: BaseException) -> web.Response:
        """The answer to bytes that are no HTTP request, in the form of the API whose path they
        name. It stands in the journal of the default session."""
        method, target = first_line(data)
        if is_malformed(error):
            refusal = RequestError(not_http(data, error), code="malformed")
        else:
            refusal = failure(error)
        answered = self._answers.refusal(target.partition("?")[0], refusal)
        answer, played = answered.answer, answered.played
        if refusal.status >= 500:
            played = replace(played, outcome="failed")
        self._note_lost(method, target, played, answer.size)
        return web.Response(
            status=answer.status,
            body=b"" if method == "HEAD" else b"".join(answer.data),
            headers=dict(answer.headers),
        )

    def _note_lost(self, method: str, target: str, played: Played, size: int = 0) -> None:
        """Notes a request whose session is not known, and which is over."""
        clock = time.perf_counter()
        received = Received(method, masked_url(target), {}, b"", time.time(), clock)
        sent = Sent(clock, bytes=size, complete=played.outcome != "failed")
        self._note_over(Exchange(received, played, sent))

    def _note_over(self, exchange: Exchange) -> None:
        """Notes a request that is over in the journal of the default session."""
        self._record(self._session(DEFAULT), exchange)
        if self._shared is not None:
            self._shared.end(exchange)
        self._metrics.note_answered(exchange, {})
        self._log(exchange)

    def _session(self, name: str) -> Session:
        return self._sessions.get(name) if self._shared is None else SharedSession(name)

    def _record(self, session: Session, exchange: Exchange) -> None:
        if self._shared is not None and isinstance(session, SharedSession):
            self._shared.record(session, exchange)
        else:
            self._sessions.record(session, exchange)

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answers a request, in full, and notes it in its session's journal."""
        arrival = Arrival(request)
        if self._requests.may_answer(arrival.method, arrival.path):
            sent = Sent(arrival.clock)
            shown = self._requests.answer(arrival, sent)
            if shown is not None:
                return await self._show(arrival, sent, shown)
        name, refusal = arrival.session, None
        if name == DEFAULT and self._options.session_in_body is not None:
            name = await self._session_in_body(arrival, self._options.session_in_body)
        if name != DEFAULT:
            try:
                check_session(name)
            except RequestError as error:
                name, refusal = DEFAULT, error
        if name == RUNNING and self._running.is_known:
            try:
                name = self._running.session_of(arrival)
            except RequestError as error:
                refusal = error
        if ORIGIN_HEADER in arrival.headers:
            try:
                self._answers.accept_origin(arrival, name)
            except RequestError as error:
                refusal = error
        session = self._session(name)
        try:
            if self._shared is None or not isinstance(session, SharedSession):
                return await self._answer(arrival, session, refusal)
            await self._shared.hold(session)
            try:
                return await self._answer(arrival, session, refusal)
            finally:
                self._shared.release(session)
        finally:
            if arrival.slot is not None:
                arrival.slot.leave()

    async def _session_in_body(self, arrival: Arrival, pattern: re.Pattern[bytes]) -> str:
        """The session that the body of a request names."""
        try:
            body = await arrival.read(self._options.max_body, self._options.patience)
        except RequestError:
            return DEFAULT  # the request is refused for it where it is answered
        found = pattern.search(body)
        return DEFAULT if found is None else found[0].decode()

    async def _answer(
        self, arrival: Arrival, session: Session, refusal: RequestError | None
    ) -> web.StreamResponse:
        """Answers a request, or refuses it."""
        if refusal is not None:
            refused = self._answers.refusal(arrival.path, refusal)
            answer = refused.answer
            if ORIGIN_HEADER in arrival.headers:
                answer = answer.hidden_from_pages()
            return await self._play(arrival, session, Chosen(answer, refused.played))
        try:
            chosen = await self._answers.answer(arrival, session)
        except ConnectionResetError:
            raise
        except asyncio.CancelledError:
            self._note_left(arrival, session)
            raise
        except Exception as error:  # noqa: BLE001 - of mockllm itself: it is said and counted
            chosen = self._failure_answer(arrival, error)
        return await self._play(arrival, session, chosen)

    def _note_left(self, arrival: Arrival, session: Session) -> None:
        """Notes a request whose client left while it waited for a slot."""
        if arrival.slot is None or arrival.slot.taken:
            return
        api, target = self._answers.api_and_target(arrival)
        sent = Sent(arrival.clock, client_gone=True)
        from mockllm.serve.server.limits.capacity import LEFT  # few servers need it

        played = Played("error", problems=(LEFT,), api=api)
        exchange = Exchange(arrival.received_request(target), played, sent, in_use=True)
        self._record(session, exchange)
        self._end(exchange, None)

    async def _show(
        self, arrival: Arrival, sent: Sent, shown: Awaitable[web.StreamResponse]
    ) -> web.StreamResponse:
        """Serves a control request; journals it only on failure."""
        leaves_at_end(arrival.request, True)  # the live page closes its stream of events
        try:
            return await shown
        except ConnectionResetError:
            raise
        except Exception as error:  # noqa: BLE001 - of mockllm itself: it is said
            refusal = failure(error)
            is_begun = sent.bytes > 0
            sent.fail(refusal.message, refusal.status)
            self._note_over(Exchange(arrival.received_request(), NOTHING, sent))
            if is_begun:
                await break_off(arrival.request, "closed")
                return CLOSE
            answer = json_answer(refusal.status, {"error": {"message": refusal.message}})
            return await deliver(arrival.request, answer, sent, close=True)
        finally:
            leaves_at_end(arrival.request, False)

    def _failure_answer(self, arrival: Arrival, error: Exception) -> Chosen:
        """The answer to a request on which mockllm itself fails."""
        refusal = too_deep(error, arrival.body) or failure(error)
        api, target = self._answers.api_and_target(arrival)
        answered = self._answers.refusal(arrival.path, refusal, Played(api=api))
        played = answered.played
        if refusal.status >= 500:
            played = replace(played, outcome="failed")
        return Chosen(answered.answer, played, target, close=True)

    async def _play(self, arrival: Arrival, session: Session, chosen: Chosen) -> web.StreamResponse:
        """Sends what answers a request; it stands in the journal of its session."""
        answer, played = chosen.answer, chosen.played
        if arrival.method == "HEAD" and isinstance(answer, HttpAnswer):
            answer = without_body(answer)
        if played.problems:  # they quote headers and the path
            masked = masked_messages(played.problems, arrival.headers, arrival.target)
            played = replace(played, problems=masked)
        sent = Sent(arrival.clock, complete=played.outcome != "failed")
        exchange = Exchange(arrival.received_request(chosen.target), played, sent, in_use=True)
        self._record(session, exchange)
        if isinstance(answer, Forward):
            return await self._send(arrival, exchange, answer, close=chosen.close)
        if self._view.sent is not None:
            self._view.sent.add(exchange, answer)
        if not chosen.close:
            timed = answer.timed and self._answers.player_of(session.name).speed > 0
            response = write_at_once(arrival.request, answer, sent, timed)
            if response is not None:
                self._end(exchange, answer)
                return response
        return await self._send(arrival, exchange, answer, close=chosen.close)

    async def _send(
        self, arrival: Arrival, exchange: Exchange, answer: HttpAnswer | Forward, *, close: bool
    ) -> web.StreamResponse:
        """Sends an answer, and notes in the exchange how that ended."""
        task = asyncio.current_task()
        assert task is not None
        request, sent = arrival.request, exchange.sent
        if isinstance(answer, Forward) or answer.takes_time:
            self._streaming.add(task)
            leaves_at_end(request, True)
        speed = self._answers.player_of(exchange.session).speed
        is_timed = isinstance(answer, HttpAnswer) and answer.timed and speed > 0
        if is_timed or self._view.sent is not None:
            sent.note_marks()
        models = self._metrics.models
        if isinstance(answer, Forward) or answer.generated is None:
            models = None
        if models is not None:
            models.begin(exchange)
        if self._view.watch is not None:
            self._view.watch(exchange)
        try:
            if isinstance(answer, Forward):
                if self._view.sent is not None:
                    exchange.keep_passed()
                return await answer.proxy.forward(arrival, answer.protocol, exchange, answer.origin)
            return await deliver(
                request,
                answer,
                sent,
                speed=speed,
                close=close,
                stalled=partial(self._streaming.discard, task),
                pacer=self._pacer,
                since=0.0 if arrival.slot is None else arrival.slot.since,
            )
        except asyncio.CancelledError:
            sent.leave()
            raise
        except ConnectionResetError:
            raise
        except Exception as error:  # noqa: BLE001 - of mockllm itself, in the middle of an answer
            refusal = failure(error)
            sent.fail(refusal.message, refusal.status)
            await break_off(request, "closed")
            return CLOSE
        finally:
            self._streaming.discard(task)
            leaves_at_end(request, False)
            if models is not None:
                models.end(exchange)
            self._end(exchange, answer)

    def _end(self, exchange: Exchange, answer: HttpAnswer | Forward | None) -> None:
        """Notes that the answer to a request is over; None: there was none."""
        sent = exchange.sent
        sent.finish(time.perf_counter(), stopping=self.cutting)
        if isinstance(answer, HttpAnswer) and (sent.marks or self._metrics.models is not None):
            speed = self._answers.player_of(exchange.session).speed
            self._metrics.note_sent(exchange, answer, speed)
            if self._view.sent is None:
                sent.forget_marks()
        exchange.settle()
        self._metrics.note_answered(exchange, self._answers.player.served.by_name)
        if self._shared is not None:
            self._shared.end(exchange)
        self._log(exchange)

    def _log(self, exchange: Exchange) -> None:
        if self._options.log is not None:
            self._options.log(exchange)
        if self._view.watch is not None:
            self._view.watch(exchange)


_ROOT = Path(__file__).resolve().parents[2]

_DEEP = 100
"""Bodies with more levels may exceed Python's recursion limit; services refuse most of them, too:
Protocol Buffers reads 100 levels of JSON, Rust's serde_json 128."""


def failure(error: BaseException) -> RequestError:
    """The error for a request that mockllm could not answer because of a mistake of its own."""
    return RequestError(
        f"mockllm failed on this request: {_description(error)}. This is a mistake in mockllm, not "
        "in the client; please report it with the request.",
        status=500,
        code="mockllm_failed",
    )


def too_deep(error: BaseException, body: bytes) -> RequestError | None:
    """The error for a request whose body has so many levels that Python cannot walk through them;
    None for any other error."""
    if not isinstance(error, RecursionError) or _levels(body) <= _DEEP:
        return None
    return RequestError(
        f"We could not parse the JSON body of your request (it is nested too deeply: more than "
        f"{_DEEP} levels).",
        code="invalid_json",
    )


def _levels(body: bytes) -> int:
    """The most brackets that are open at once; those in strings count, too."""
    steps = ((byte in b"[{") - (byte in b"]}") for byte in body)
    return max(accumulate(steps, initial=0))


def _description(error: BaseException) -> str:
    """Type and message of an error, and where in mockllm it was raised."""
    where, at = "", error.__traceback__
    while at is not None:
        file = Path(at.tb_frame.f_code.co_filename)
        if file.is_relative_to(_ROOT):
            where = f" at mockllm/{file.relative_to(_ROOT).as_posix()}:{at.tb_lineno}"
        at = at.tb_next
    text = " ".join(str(error).split())
    return f"{type(error).__name__}{where}: {text[:200]}"


@record
class ServerParts:
    """The parts of one server.

    Args:
        state: what other processes share; None: nothing is shared.
    """

    handler: Handler
    answers: Answers
    readiness: Readiness
    view: ServerView
    streaming: set[asyncio.Task[object]]
    state: SharedState | None
    running: RunningSession


def make_parts(
    scenarios: Iterable[Scenario], options: ServerOptions, sessions: Sessions, began: float
) -> ServerParts:
    """The parts of a server; `began` is when it started, in seconds of `time.perf_counter`."""
    streaming: set[asyncio.Task[object]] = set()
    metrics = Figures(models=Models() if options.counts_models else None)

    def own_figures() -> Figures:
        waiting = answers.waiting
        return metrics.copy(len(streaming) - waiting, sessions.dropped, waiting)

    async def figures() -> Figures:
        return own_figures() if state is None else await state.all_figures()

    access = ControlAccess(options.host, options.allowed_hosts, options.allowed_origins)
    answers = Answers(scenarios, options, access, streaming, began)
    sessions.on_evicted = answers.assigned.evict
    state = None
    control = Control(sessions, answers)
    readiness = Readiness()
    if options.state:
        from mockllm.serve.server.state.shared_sessions import SharedSessions
        from mockllm.serve.server.state.shared_state import SharedState, store_of

        notice = options.notice or (lambda _: None)
        state = SharedState(store_of(options.state), notice, own_figures, metrics.note_store_error)
        control.sessions = SharedSessions(state, answers.assigned, lambda: answers.player)
        answers.share(control.sessions)
        readiness.checks.append(state.problem)
    view = ServerView(answers, control.sessions, options.page)
    requests = ServerRequests(answers, control, access, view, readiness, figures)
    running = RunningSession()
    handler = Handler(
        options, answers, sessions, state, requests, view, metrics, streaming, running
    )
    return ServerParts(handler, answers, readiness, view, streaming, state, running)
