"""WebSockets of clients: each message that asks for an answer goes the way of a request over HTTP,
and its answer comes back as messages.

An API says what messages mean (`mockllm.wire.protocols.sockets`); here they are read, kept in the
order of their lanes, and written. aiohttp answers pings, and closes.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from aiohttp import WSCloseCode, WSMsgType, web

from mockllm.core.errors import RequestError
from mockllm.core.events import Frame
from mockllm.core.http import TimedBytes, close_reason
from mockllm.core.jsontext import json_bytes
from mockllm.play.faults.strikes import NO_CLOSE_FRAME
from mockllm.play.matching.route_selection import RouteRequest
from mockllm.play.replay.broken_answer import refused_handshake
from mockllm.play.replay.call import Answered, ApiCall
from mockllm.play.replay.compilation.http_answer import bytes_answer
from mockllm.play.replay.sessions.exchange import Played, Sent
from mockllm.scenario.fault_model import Fault
from mockllm.serve.server.answers import DeferredWork
from mockllm.serve.server.exchanges import Delivery
from mockllm.serve.server.http.aiohttp_internals import leaves_at_end
from mockllm.serve.server.http.request_reading import brief
from mockllm.serve.server.http.sending import break_off, send
from mockllm.serve.server.http.socket_writing import (
    MAX_MESSAGE,
    AnswerPayloads,
    SocketWriter,
    stop_reading,
)
from mockllm.serve.server.played_sockets import PlayedSocket
from mockllm.serve.server.request_context import RequestContext
from mockllm.serve.server.routing import Endpoint
from mockllm.serve.server.stages import Respond
from mockllm.wire.framing.websocket import encode_message
from mockllm.wire.protocols.base import dumps
from mockllm.wire.protocols.records import Json
from mockllm.wire.protocols.sockets import (
    Ask,
    Breach,
    Close,
    Heard,
    Interrupt,
    Listen,
    Opening,
    SocketConversation,
    Step,
)

_MOST_WAITING = 64
"""How many answers of a connection may be under way; until then no further message is read."""


class Sockets:
    """The WebSockets of one server.

    Args:
        respond: answers a request, and delivers the answer.
    """

    def __init__(self, delivery: Delivery, deferred: DeferredWork, respond: Respond) -> None:
        self._delivery, self._deferred, self._respond = delivery, deferred, respond
        self._payloads = AnswerPayloads()
        self._open: set[web.WebSocketResponse] = set()

    async def serve(
        self, opened: RequestContext, endpoint: Endpoint, fault: Fault | None
    ) -> web.StreamResponse:
        """Serves the WebSocket that a request opens, until one side ends it.

        Args:
            fault: of that request.
        """
        assert endpoint.protocol.socket is not None
        if fault is not None and fault.get("status") is not None:
            protocol, path = endpoint.protocol, opened.arrival.request.raw_path
            return await self._delivery.send(opened, refused_handshake(protocol, path, fault))
        request, conversation = opened.arrival.request, endpoint.protocol.socket()
        # Pings are answered below: a fault may leave them without an answer.
        socket = web.WebSocketResponse(
            protocols=conversation.subprotocols,
            max_msg_size=MAX_MESSAGE,
            compress=False,
            autoping=False,
        )
        if fault is not None:
            await asyncio.sleep(fault.number("pause") / 1_000_000)
        await socket.prepare(request)
        leaves_at_end(request, True)
        if fault is not None:
            self._delivery.enter_handshake(opened, endpoint.protocol.name, fault)
            if code := fault.number("code"):
                await _close(request, socket, code, fault.text("reason", ""))
                return socket
        self._open.add(socket)
        connection = _Connection(
            opened,
            endpoint,
            socket,
            conversation,
            self._respond,
            self._delivery,
            self._deferred,
            self._payloads,
        )
        try:
            await connection.run()
        finally:
            self._open.discard(socket)
        return socket

    async def play(self, context: RequestContext, opening: RouteRequest) -> web.StreamResponse:
        """Plays a scenario on the WebSocket that a request opens, until one side ends it."""
        played = PlayedSocket(context, opening, self._delivery.log, self._respond)
        response = await played.open()
        if played.socket is None:
            return response
        self._open.add(played.socket)
        try:
            await played.run()
        finally:
            self._open.discard(played.socket)
        return played.socket

    async def close(self) -> None:
        """Tells all clients that the server goes away (RFC 6455, section 7.4.1)."""
        for socket in tuple(self._open):
            with suppress(ConnectionError):
                await socket.close(code=WSCloseCode.GOING_AWAY)


class _Connection:
    """What is under way on one WebSocket.

    The task that reads also ends the connection: only it can wait for the client's close frame.
    aiohttp's `close` from another task breaks off at once, and where the client has sent more, the
    client loses the code and the reason.
    """

    def __init__(
        self,
        opened: RequestContext,
        endpoint: Endpoint,
        socket: web.WebSocketResponse,
        conversation: SocketConversation,
        respond: Respond,
        delivery: Delivery,
        deferred: DeferredWork,
        payloads: AnswerPayloads,
    ) -> None:
        self._opened, self._endpoint, self._payloads = opened, endpoint, payloads
        self._socket, self._conversation = socket, conversation
        self._respond, self._delivery, self._deferred = respond, delivery, deferred
        self._arrival = opened.arrival.without_upgrade()
        self._lanes: dict[str, asyncio.Task[None]] = {}
        self._running: dict[str, tuple[asyncio.Task[None], SocketWriter]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._bound = asyncio.timeout(conversation.lifetime)
        self._last: Close | None = None
        self._answers_pings = True

    def ignore_pings(self) -> None:
        """Leaves the client's pings without an answer from now on."""
        self._answers_pings = False

    def close(self, code: int, reason: str = "") -> None:
        """Ends the connection with a close frame, before a further message is read."""
        self._last = Close(code, reason)
        self.expire()

    def expire(self) -> None:
        """Ends the connection as one that is as old as the service lets it become."""
        stop_reading(self._bound)

    async def run(self) -> None:
        """Serves the connection until one side ends it."""
        conversation, warning = self._conversation, None
        if conversation.notice:
            notice = conversation.lifetime - conversation.notice
            warning = asyncio.get_running_loop().call_later(notice, self._warn)
        try:
            async with self._bound:
                await self._open()
                async for message in self._socket:
                    if message.type in (WSMsgType.TEXT, WSMsgType.BINARY):
                        await self._receive(message.data)
                    elif message.type == WSMsgType.PING and self._answers_pings:
                        await self._socket.pong(message.data)
        except TimeoutError:
            if self._last is None:
                await self._follow(conversation.expire())
            assert self._last is not None
            last, request = self._last, self._opened.arrival.request
            await _close(request, self._socket, last.code, last.reason)
        finally:
            if warning is not None:
                warning.cancel()
            await self._end()

    async def _open(self) -> None:
        """Sends what the service says first, or begins to."""
        target = replace(self._endpoint.target, query=self._arrival.query)
        try:
            steps = self._conversation.open(Opening(target, self._arrival.headers))
        except RequestError as refusal:
            self._begin(Ask({}), b"", refusal)
            return
        await self._follow(steps)

    def _warn(self) -> None:
        """Begins to say that the connection ends soon."""
        task = asyncio.create_task(self._follow(self._conversation.warn()))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _receive(self, data: str | bytes) -> None:
        """Answers a client's message, or begins to."""
        raw = data if isinstance(data, bytes) else json_bytes(data)
        # The client may have read the end of an answer before its task goes on.
        over = [task for task, writer in self._running.values() if writer.is_written]
        if over:
            await asyncio.wait(over)
        try:
            steps = self._conversation.receive(_read_object(raw))
        except RequestError as refusal:
            self._begin(Ask({}), raw, refusal)
            return
        await self._follow(steps, raw)
        while len(self._tasks) >= _MOST_WAITING:
            await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)

    async def _end(self) -> None:
        """Ends what is under way: the client is gone."""
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _follow(self, steps: list[Step], raw: bytes = b"") -> None:
        for step in steps:
            match step:
                case Ask():
                    self._begin(step, raw, None)
                case Interrupt(lane):
                    await self._interrupt(lane)
                case Listen(body):
                    await self._follow(self._conversation.hear(await self._listen(body)), raw)
                case Breach(mistake, problem):
                    self._enter(raw, mistake, problem)
                case Close(code, reason):
                    self.close(code, reason)
                case str():
                    binary = self._conversation.binary
                    frame = encode_message(json_bytes(step), binary=binary)
                    await send(self._opened.arrival.request, frame, Sent(time.perf_counter()))

    def _enter(self, raw: bytes, mistake: str, problem: str) -> None:
        api = self._endpoint.protocol.name
        played = Played("played", 101, (problem,), api=api, mistake=mistake)
        session = self._delivery.log.session(self._opened.session.name)
        self._delivery.enter_message(session, self._arrival.with_message(raw), played)

    async def _interrupt(self, lane: str) -> None:
        """Ends the answer that is on its way in a lane, and sends what follows."""
        running = self._running.pop(lane, None)
        if running is not None:
            task, writer = running
            writer.interrupted = True
            task.cancel()
            await asyncio.wait([task])

    async def _listen(self, body: Callable[[str], Json]) -> Heard | None:
        """What the user says next, by the scenarios of the session."""
        opened, endpoint = self._opened, self._endpoint
        player, session = opened.player, opened.session
        if not player.speakers:
            return None

        def call(words: str) -> ApiCall:
            data = json_bytes(dumps(body(words)))
            return ApiCall(endpoint.protocol, endpoint.target, self._arrival.headers, data, session)

        heard = await self._deferred.play(self, session, partial(player.hear, call))
        return None if heard is None else Heard(heard.say, heard.after / 1e6, heard.barge_in)

    def _begin(self, ask: Ask, raw: bytes, refusal: RequestError | None) -> None:
        """Begins an answer, which waits for those before it in its lane."""
        before = self._lanes.get(ask.lane)
        task = asyncio.create_task(self._answer(ask, raw, refusal, before))
        self._lanes[ask.lane] = task
        self._tasks.add(task)
        task.add_done_callback(partial(self._forget, ask.lane))

    def _forget(self, lane: str, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if self._lanes.get(lane) is task:
            del self._lanes[lane]

    async def _answer(
        self, ask: Ask, raw: bytes, refusal: RequestError | None, before: asyncio.Task[None] | None
    ) -> None:
        if before is not None:
            await asyncio.wait([before])
        writer = self._writer(ask)
        context = self._context(raw, refusal, writer)
        task = asyncio.current_task()
        assert task is not None
        self._running[ask.lane] = task, writer
        try:
            made = None
            if refusal is None:
                made = await self._prepare(ask, context)
            if made is None:
                await self._respond(context)
            else:
                await self._delivery.send(context, made)
        except ConnectionResetError:
            return  # the journal says that the client left
        except asyncio.CancelledError:
            if not writer.interrupted:
                raise
            task.uncancel()
        self._running.pop(ask.lane, None)
        with suppress(ConnectionResetError):
            await self._follow(self._conversation.finish(ask, writer.sent_messages))

    def _writer(self, ask: Ask) -> SocketWriter:
        conversation, protocol = self._conversation, self._endpoint.protocol
        messages = partial(conversation.messages, ask)
        request = self._opened.arrival.request
        binary, payloads = conversation.binary, self._payloads
        return SocketWriter(request, protocol, binary, payloads, messages, self)

    def _context(
        self, raw: bytes, refusal: RequestError | None, writer: SocketWriter
    ) -> RequestContext:
        opened = self._opened
        return RequestContext(
            self._arrival.with_message(raw),
            self._delivery.log.session(opened.session.name),
            opened.player,
            refusal,
            endpoint=self._endpoint,
            api=self._endpoint.protocol.name,
            socket=writer,
        )

    async def _prepare(self, ask: Ask, context: RequestContext) -> Answered | None:
        """Gives a request its body; the answer of one that no scenario answers."""
        session = context.session
        read = partial(
            self._conversation.request, ask, lambda named: session.answer(named) is not None
        )
        try:
            prepared = await self._deferred.play(self, session, read)
        except RequestError as refusal:
            context.refusal = refusal
            return None
        if isinstance(prepared, dict):
            context.arrival.body = json_bytes(dumps(prepared))
            return None
        name = self._endpoint.protocol.name
        model = ask.message.get("model")
        played = Played("played", 200, api=name, model=str(model or ""), stream=True)
        carrier = self._endpoint.protocol.usual
        parts = [TimedBytes(0, carrier.encode(Frame(text), "lf")) for text in prepared]
        headers = {"content-type": carrier.content_type}
        return Answered(bytes_answer(200, headers.items(), parts, streamed=True), played)


async def _close(
    request: web.BaseRequest, socket: web.WebSocketResponse, code: int, reason: str
) -> None:
    """Ends a connection with a close frame, which 1006 stands for the lack of."""
    if code == NO_CLOSE_FRAME:
        await break_off(request, "closed")
    else:
        await socket.close(code=code, message=close_reason(reason).encode())


def _read_object(raw: bytes) -> dict[str, Any]:
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise RequestError(
            f"The message is no JSON: {brief(error)}.",
            code="invalid_json",
            mistake="unknown-message",
        ) from None
    if not isinstance(value, dict):
        problem = "A message is a JSON object."
        raise RequestError(problem, code="invalid_json", mistake="unknown-message")
    return value
