"""Writes answers as the messages of a WebSocket, at their times, with what breaks on their way."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import accumulate
from typing import Protocol

from aiohttp import WSCloseCode, web
from cachetools import LRUCache

from mockllm.core.errors import WireError
from mockllm.core.jsontext import json_bytes
from mockllm.play.replay.compilation.http_answer import HttpAnswer, byte_bounded
from mockllm.play.replay.sessions.exchange import Sent
from mockllm.serve.server.http.delivery import KEEP_ALIVE, note_fault
from mockllm.serve.server.http.pacing import Paced, Pacer
from mockllm.serve.server.http.sending import break_off
from mockllm.wire.framing.carrier import Carrier
from mockllm.wire.framing.websocket import encode_message
from mockllm.wire.protocols.base import WireProtocol
from mockllm.wire.protocols.values import json_object

MAX_MESSAGE = 64 * 1024 * 1024
"""The largest message of a client, in bytes: histories have images in them."""


async def write_messages(
    request: web.BaseRequest,
    messages: Sequence[tuple[bytes, bool]],
    times: Sequence[int],
    sent: Sent,
    pacer: Pacer,
    start: float,
    speed: float,
    *,
    final: bool = True,
) -> None:
    """Sends messages, each with whether it is a binary one, at their times after `start`.

    Args:
        times: in microseconds.
        final: whether the answer is over with the last one.
    """
    parts = [part for part, _ in messages]
    frames = [encode_message(part, binary=binary) for part, binary in messages]
    if speed == 0 or not any(times):
        sent.end_at_once()
        times, speed = [0] * len(parts), 1.0
    if parts:
        ends = list(accumulate(map(len, frames)))
        paced = Paced(b"".join(frames), ends, times, parts, final=final)
        await pacer.play(request, paced, sent, start, speed)


class MessageWriter(Protocol):
    """Sends an answer as messages on a WebSocket.

    Attributes:
        interrupted: whether a message of the client ends the answer.
    """

    interrupted: bool

    async def write(
        self, answer: HttpAnswer, sent: Sent, speed: float, pacer: Pacer
    ) -> web.StreamResponse:
        """Sends the messages of an answer at their times."""


class AnswerPayloads:
    """The data of the frames of answers, and when each is due. Those of streams are kept: clients
    repeat requests, and to read a stream takes longer than all else on its way."""

    _MOST_BYTES = 16 * 1024 * 1024

    def __init__(self) -> None:
        # By the id of an answer, which is kept with it: to hash one takes as long as to read it.
        self._kept: LRUCache[int, tuple[HttpAnswer, list[str], list[int]]] = byte_bounded(
            self._MOST_BYTES, lambda kept: 4 * kept[0].size
        )

    def read(self, answer: HttpAnswer, carrier: Carrier) -> tuple[list[str], list[int]]:
        """The data of the frames of a stream; a body that is no stream is one."""
        kept = self._kept.get(id(answer))
        if kept is not None:
            return kept[1], kept[2]
        kind = dict(answer.headers).get("content-type", "")
        if answer.status >= 400 or not kind.startswith(carrier.content_type):
            body = b"".join(answer.data).decode("utf-8", "replace")
            return [body], [answer.times[-1] if answer.times else 0]
        decoder = carrier.decoder()
        payloads: list[str] = []
        times: list[int] = []
        for at, data in zip(answer.times, answer.data, strict=True):
            with suppress(WireError):
                for frame in decoder.decode(data):
                    if frame.data is not None:
                        payloads.append(frame.data)
                        times.append(at)
        self._kept[id(answer)] = answer, payloads, times
        return payloads, times


class SocketWriter:
    """Writes one answer as messages.

    Args:
        binary: whether messages are binary ones.
        answers: reads the data of frames.
        messages: of an answer, from its status, its headers and the data of its frames.
    """

    def __init__(
        self,
        request: web.BaseRequest,
        socket: web.WebSocketResponse,
        protocol: WireProtocol,
        binary: bool,
        answers: AnswerPayloads,
        messages: Callable[[int, Mapping[str, str], list[str]], list[str]],
    ) -> None:
        self._request, self._socket = request, socket
        self._protocol, self._binary, self._messages = protocol, binary, messages
        self._answers = answers
        self._sizes: list[int] = []
        self._sent: Sent | None = None
        self.interrupted = False

    @property
    def sent_messages(self) -> int:
        """How many messages of the answer were sent."""
        written = 0 if self._sent is None else self._sent.bytes
        return sum(end <= written for end in accumulate(self._sizes))

    async def write(
        self, answer: HttpAnswer, sent: Sent, speed: float, pacer: Pacer
    ) -> web.StreamResponse:
        """Sends the messages of an answer at their times, with what breaks on their way."""
        start, fault = pacer.start_of(self._request), answer.fault
        payloads, times = self._answers.read(answer, self._protocol.usual)
        messages = self._messages(answer.status, dict(answer.headers), payloads)
        if fault is not None:
            note_fault(answer, fault, sent)
            speed = 1.0
        parts = [(json_bytes(message), self._binary) for message in messages]
        self._sizes, self._sent = [len(part) for part, _ in parts], sent
        final = fault is None
        await write_messages(self._request, parts, times, sent, pacer, start, speed, final=final)
        if fault is not None and fault.end_at:
            await asyncio.sleep(start + fault.end_at / 1_000_000 - time.monotonic())
        if fault is not None and fault.struck is not None:
            sent.strike(time.perf_counter())
        if answer.ending == "open":
            await asyncio.Event().wait()  # is cancelled when the client leaves
        if answer.closes_connection:
            sent.break_off()
            await break_off(self._request, "reset" if answer.ending == "reset" else "closed")
        elif fault is not None and not self._is_over(payloads):
            # Over HTTP its body ends like a whole one.
            await self._socket.close(code=WSCloseCode.OK)
        return KEEP_ALIVE

    def _is_over(self, payloads: list[str]) -> bool:
        last = json_object(payloads[-1].encode()) if payloads else None
        return last is not None and self._protocol.events.is_end(last)
