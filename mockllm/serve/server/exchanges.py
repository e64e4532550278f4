"""The end of a request's way: it is recorded (journal, figures, log, live page), and its answer
delivered."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from aiohttp import web

from mockllm.core.errors import RequestError
from mockllm.play.replay.compilation.http_answer import HttpAnswer, json_answer, without_body
from mockllm.play.replay.sessions.exchange import NOTHING, Exchange, Played, Received, Sent
from mockllm.play.replay.sessions.session import Session, Sessions
from mockllm.play.replay.sessions.shared_session import SharedSession
from mockllm.record.redaction.credentials import masked_messages, masked_url
from mockllm.scenario.fault_model import Fault
from mockllm.serve.interception.headers import DEFAULT
from mockllm.serve.server.control.server_view import ServerView
from mockllm.serve.server.failures import failure
from mockllm.serve.server.http.aiohttp_internals import UNREADABLE, leaves_at_end
from mockllm.serve.server.http.delivery import CLOSE, deliver, write_at_once
from mockllm.serve.server.http.pacing import Pacer
from mockllm.serve.server.http.request_reading import Arrival, first_line, not_http, silent
from mockllm.serve.server.http.sending import break_off
from mockllm.serve.server.metrics.figures import Figures
from mockllm.serve.server.request_context import Chosen, Forward, RequestContext
from mockllm.serve.server.sources import Sources

if TYPE_CHECKING:
    from mockllm.serve.server.gates import Gates
    from mockllm.serve.server.state.shared_state import SharedState


@dataclass(slots=True)
class ExchangeLog:
    """Records the exchanges of one server.

    Args:
        state: what other processes share, in place of `sessions`; None: there is none.
        cutting: whether the server stops, and ends the answers that are still open.
    """

    sources: Sources
    sessions: Sessions
    state: SharedState | None
    metrics: Figures
    view: ServerView
    cutting: bool = False

    def session(self, name: str) -> Session:
        """A session by its name; it is made if need be."""
        return self.sessions.get(name) if self.state is None else SharedSession(name)

    def begin(self, session: Session, exchange: Exchange) -> None:
        """Enters an exchange into the journal of its session, before its answer is sent."""
        if self.state is not None and isinstance(session, SharedSession):
            self.state.record(session, exchange)
        else:
            self.sessions.record(session, exchange)

    def end(self, exchange: Exchange, answer: HttpAnswer | None = None, speed: float = 0.0) -> None:
        """Notes that the answer to a request is over.

        Args:
            answer: None: of a service, or there was none.
            speed: of timed answers.
        """
        sent = exchange.sent
        sent.finish(time.perf_counter(), stopping=self.cutting)
        if answer is not None and (sent.marks or self.metrics.models is not None):
            self.metrics.note_sent(exchange, answer, speed)
            if self.view.sent is None:
                sent.forget_marks()
        exchange.settle()
        self._note(exchange)

    def enter(self, exchange: Exchange) -> None:
        """Enters a request that is over into the journal of the default session."""
        self.begin(self.session(DEFAULT), exchange)
        self._note(exchange)

    def _note(self, exchange: Exchange) -> None:
        self.metrics.note_answered(exchange, self.sources.player.served.by_name)
        if self.state is not None:
            self.state.end(exchange)
        if self.sources.options.log is not None:
            self.sources.options.log(exchange)
        if self.view.watch is not None:
            self.view.watch(exchange)


class Delivery:
    """Delivers the answers of one server.

    Args:
        streaming: the tasks whose answers take time.
        gates: of the server, made with the first one.
    """

    def __init__(
        self,
        log: ExchangeLog,
        streaming: set[asyncio.Task[object]],
        gates: Callable[[], Gates],
    ) -> None:
        self.log, self._streaming, self._gates = log, streaming, gates
        self._sources, self._view, self._models = log.sources, log.view, log.metrics.models
        self._pacer = Pacer(log.metrics.late.note)

    async def send(self, context: RequestContext, chosen: Chosen) -> web.StreamResponse:
        """Answers a request, which stands in the journal of its session from then on."""
        arrival, played = context.arrival, chosen.played
        if played.problems:  # they quote headers and the path
            masked = masked_messages(played.problems, arrival.headers, arrival.target)
            played = replace(played, problems=masked)
        sent = Sent(arrival.clock, complete=played.outcome != "failed")
        received = arrival.received_request(context.target)
        exchange = Exchange(received, played, sent, in_use=True)
        self.log.begin(context.session, exchange)
        if isinstance(chosen, Forward):
            return await self._stream(context, exchange, chosen)
        answer = chosen.answer
        if arrival.method == "HEAD":
            answer = without_body(answer)
        if self._view.sent is not None:
            self._view.sent.add(exchange, answer)
        if not context.closes and context.socket is None:
            speed = context.player.speed
            timed = answer.timed and speed > 0
            response = write_at_once(arrival.request, answer, sent, timed)
            if response is not None:
                self.log.end(exchange, answer, speed)
                return response
        return await self._stream(context, exchange, answer)

    async def _stream(
        self, context: RequestContext, exchange: Exchange, answer: HttpAnswer | Forward
    ) -> web.StreamResponse:
        """Sends what one write is not enough for, and notes in the exchange how that ended."""
        task = asyncio.current_task()
        assert task is not None
        arrival, sent, speed = context.arrival, exchange.sent, context.player.speed
        request, hold = arrival.request, None
        made = None if isinstance(answer, Forward) else answer
        if made is not None and made.gates:
            hold = partial(self._gates().pass_through, context.session.name)
        if made is None or made.takes_time:
            self._streaming.add(task)
            leaves_at_end(request, True)
        is_timed = made is not None and made.timed and speed > 0
        if is_timed or self._view.sent is not None:
            sent.note_marks()
        models = None if made is None or made.generated is None else self._models
        if models is not None:
            models.begin(exchange)
        if self._view.watch is not None:
            self._view.watch(exchange)
        try:
            if isinstance(answer, Forward):
                if self._view.sent is not None:
                    exchange.keep_passed()
                return await answer.proxy.forward(
                    arrival, answer.protocol, exchange, answer.origin, answer.server
                )
            if context.socket is not None:
                return await context.socket.write(answer, sent, speed, self._pacer, hold)
            return await deliver(
                request,
                answer,
                sent,
                speed=speed,
                close=context.closes,
                stalled=partial(self._streaming.discard, task),
                pacer=self._pacer,
                since=0.0 if context.slot is None else context.slot.since,
                hold=hold,
            )
        except asyncio.CancelledError:
            if context.socket is not None and context.socket.interrupted:
                sent.interrupt()
            else:
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
            leaves_at_end(request, context.socket is not None)
            if models is not None:
                models.end(exchange)
            self.log.end(exchange, made, speed)

    def enter_handshake(self, context: RequestContext, api: str, fault: Fault) -> None:
        """Notes a request that opened a WebSocket, and the fault that struck it."""
        arrival = context.arrival
        sent = Sent(arrival.clock)
        sent.break_with(str(fault), 101)
        sent.strike(time.perf_counter())
        played = Played("error", 101, cause="server", api=api)
        self._enter(context.session, Exchange(arrival.received_request(), played, sent))

    def enter_message(self, session: Session, arrival: Arrival, played: Played) -> None:
        """Notes a message on a WebSocket that gets no answer of its own."""
        received = arrival.received_request()
        self._enter(session, Exchange(received, played, Sent(arrival.clock)))

    def _enter(self, session: Session, exchange: Exchange) -> None:
        self.log.begin(session, exchange)
        self.log.end(exchange)

    # Requests of no session

    async def show(
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
            self.log.enter(Exchange(arrival.received_request(), NOTHING, sent))
            if is_begun:
                await break_off(arrival.request, "closed")
                return CLOSE
            answer = json_answer(refusal.status, {"error": {"message": refusal.message}})
            return await deliver(arrival.request, answer, sent, close=True)
        finally:
            leaves_at_end(arrival.request, False)

    def gave_up(self) -> None:
        """Notes a request whose head did not arrive whole."""
        error = silent("head", self._sources.options.patience)
        self._note_lost("", "", Played(problems=(error.message,)))

    def refuse_malformed(self, data: bytes, error: BaseException) -> web.Response:
        """The answer to bytes that are no HTTP request, in the form of the API whose path they
        name."""
        method, target = first_line(data)
        if isinstance(error, UNREADABLE):
            refusal = RequestError(not_http(data, error), code="malformed")
        else:
            refusal = failure(error)
        answered = self._sources.refusal(target.partition("?")[0], refusal)
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
        clock = time.perf_counter()
        received = Received(method, masked_url(target), {}, b"", time.time(), clock)
        sent = Sent(clock, bytes=size, complete=played.outcome != "failed")
        self.log.enter(Exchange(received, played, sent))
