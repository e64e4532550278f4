"""WebSockets on which a scenario is played: the opening, and each turn, are requests that the
journal has."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from aiohttp import WSCloseCode, WSMsgType, web

from mockllm.core.http import close_reason
from mockllm.core.jsontext import json_bytes
from mockllm.play.matching.route_selection import RouteRequest
from mockllm.play.replay.call import Answered
from mockllm.play.replay.compilation.http_answer import HttpAnswer
from mockllm.play.replay.sessions.exchange import Sent
from mockllm.play.replay.socket_player import finish, opening_answer, play_turn, refuse_message
from mockllm.play.replay.socket_replay import DueTurn, SocketReplay
from mockllm.play.replay.socket_script import ServedMessage
from mockllm.scenario.reading.sockets import is_sent
from mockllm.scenario.route_model import CloseSpec
from mockllm.serve.server.exchanges import ExchangeLog
from mockllm.serve.server.http.aiohttp_internals import leaves_at_end
from mockllm.serve.server.http.delivery import KEEP_ALIVE, Hold
from mockllm.serve.server.http.pacing import Pacer, sleep_until
from mockllm.serve.server.http.sending import break_off, send
from mockllm.serve.server.http.socket_writing import MAX_MESSAGE, stop_reading, write_messages
from mockllm.serve.server.request_context import RequestContext
from mockllm.serve.server.stages import Respond
from mockllm.wire.framing.websocket import encode_message

_UNEXPECTED = 1008
"""The close code for a message that is not the expected one: it violates a policy (RFC 6455,
section 7.4.1)."""

_NO_CODE = b"\x88\x00"
"""A close frame without a code (RFC 6455, section 5.5.1)."""


class PlayedSocket:
    """One WebSocket of a client.

    Args:
        context: of the request that opens it.
        respond: answers a request, and delivers the answer.
    """

    interrupted = False

    def __init__(
        self, context: RequestContext, opening: RouteRequest, log: ExchangeLog, respond: Respond
    ) -> None:
        self._context, self._opening = context, opening
        self._log, self._respond = log, respond
        self._replay: SocketReplay | None = None
        self._due: asyncio.Queue[DueTurn | tuple[str, ...]] = asyncio.Queue()
        self._begun = self._refused = self._sends = self._left = False
        self._bound = asyncio.timeout(None)
        self._last: CloseSpec | None = None
        self.socket: web.WebSocketResponse | None = None

    async def open(self) -> web.StreamResponse:
        """Answers the opening; `socket` is there where it is accepted."""
        self._context.play = self._choose
        return await self._respond(self._context)

    def _choose(self) -> Answered:
        context = self._context
        found = context.player.routes.sockets.open(self._opening, context.session)
        if isinstance(found, Answered):
            return found
        self._replay = found
        context.socket = self
        return opening_answer(found.script)

    async def write(
        self, answer: HttpAnswer, sent: Sent, speed: float, pacer: Pacer, hold: Hold | None
    ) -> web.StreamResponse:
        """Accepts the opening."""
        request, headers = self._context.arrival.request, dict(answer.headers)
        offered = self._context.arrival.headers.get("sec-websocket-protocol", "").split(",")
        chosen = headers.pop("sec-websocket-protocol", offered[0].strip())
        # A close of the client is answered when all is in the journal that it left undone.
        self.socket = web.WebSocketResponse(
            max_msg_size=MAX_MESSAGE,
            compress=False,
            protocols=[chosen] if chosen else (),
            autoclose=False,
        )
        self.socket.headers.update(headers)
        sent.end_at_once()
        await self.socket.prepare(request)
        leaves_at_end(request, True)
        return self.socket

    async def run(self) -> None:
        """Plays the scenario until one side ends the connection."""
        assert self.socket is not None
        assert self._replay is not None
        self._note_due(self._replay)
        sending = asyncio.create_task(self._send())
        try:
            async with self._bound:
                async for message in self.socket:
                    if message.type in (WSMsgType.TEXT, WSMsgType.BINARY) and not self._refused:
                        self._receive(self._replay, message.data)
        except TimeoutError:
            assert self._last is not None
            await self._close(self.socket, self._last)
        finally:
            self._left = True
            self._due.put_nowait(())
            if self._sends:
                sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
            if not (self._refused or self._log.cutting):
                await self._finish(self._replay)
            with suppress(ConnectionError):
                await self.socket.close(code=_echo(self.socket.close_code))

    def _receive(self, replay: SocketReplay, data: str | bytes) -> None:
        problems = replay.receive(data if isinstance(data, bytes) else json_bytes(data))
        self._note_due(replay)
        if problems:
            self._refused = True
            self._due.put_nowait(problems)

    def _note_due(self, replay: SocketReplay) -> None:
        while (turn := replay.next_due()) is not None:
            self._due.put_nowait(turn)

    async def _send(self) -> None:
        """Sends what is due, one after the other, until the client has left."""
        with suppress(ConnectionResetError):  # the journal says that the client left
            while True:
                due = await self._due.get()
                if not isinstance(due, DueTurn):
                    if due:
                        await self._refuse(due)
                    return
                if due.served and self._left:
                    return
                await self._play(due)
                close = due.served[-1].close if due.served else None
                if close is not None:
                    self._begin_to_close(close)

    async def _play(self, due: DueTurn) -> None:
        assert self._replay is not None
        self._begun, self._sends = True, bool(due.served)
        play = partial(play_turn, self._replay.script, due)
        await self._answer(due.received, due.served, lambda context: play(context.session))
        self._sends = False

    async def _refuse(self, problems: tuple[str, ...]) -> None:
        assert self._replay is not None
        answered = refuse_message(self._replay.script, problems)
        await self._answer(self._replay.take_received(), (), lambda _: answered)
        self._begin_to_close(CloseSpec(_UNEXPECTED, problems[0]))

    async def _finish(self, replay: SocketReplay) -> None:
        """Notes what the client left undone."""
        replay.close()
        turn = replay.next_due()
        if turn is not None and not turn.served:
            await self._play(turn)
        answered = finish(replay, self._begun)
        if answered is not None:
            await self._answer(replay.take_received(), (), lambda _: answered)

    async def _answer(
        self,
        received: str,
        served: tuple[ServedMessage, ...],
        play: Callable[[RequestContext], Answered],
    ) -> None:
        """Answers messages of the client as a request of their own."""
        opened = self._context
        context = RequestContext(
            opened.arrival.with_message(json_bytes(received)),
            self._log.session(opened.session.name),
            opened.player,
            None,
        )
        context.play = partial(play, context)
        context.socket = _TurnWriter(opened.arrival.request, served)
        await self._respond(context)

    def _begin_to_close(self, close: CloseSpec) -> None:
        """Lets the task that reads end the connection: only it can wait for the client's close
        frame, which a client that sends on loses with the connection."""
        self._last = close
        stop_reading(self._bound)

    async def _close(self, socket: web.WebSocketResponse, close: CloseSpec) -> None:
        request = self._context.arrival.request
        if close.how:
            await break_off(request, "reset" if close.how == "reset" else "closed")
        elif not close.code:
            await send(request, _NO_CODE, Sent())
            await break_off(request, "closed")
        else:
            await socket.close(code=close.code, message=close_reason(close.reason).encode())


def _echo(code: int | None) -> int:
    """The close code that answers one (RFC 6455, section 5.5.1)."""
    return code if code is not None and is_sent(code) else WSCloseCode.OK


class _TurnWriter:
    """Sends the messages of a turn at their times."""

    interrupted = False

    def __init__(self, request: web.BaseRequest, served: tuple[ServedMessage, ...]) -> None:
        self._request, self._served = request, served

    async def write(
        self, answer: HttpAnswer, sent: Sent, speed: float, pacer: Pacer, hold: Hold | None
    ) -> web.StreamResponse:
        """Sends the messages; waits until the connection is to be closed."""
        start = pacer.start_of(self._request)
        parts = [one.data for one in self._served if one.close is None]
        frames = [
            encode_message(one.data, binary=one.binary) for one in self._served if one.close is None
        ]
        gates = [(0, gate) for gate in answer.gates]
        start = await write_messages(
            *(self._request, parts, frames, answer.times, sent, pacer, start, speed, hold, gates)
        )
        if self._served and self._served[-1].close is not None and speed:
            await sleep_until(start + self._served[-1].at / (speed * 1_000_000))
        return KEEP_ALIVE
