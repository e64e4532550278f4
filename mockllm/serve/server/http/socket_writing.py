"""Writes answers as the messages of a WebSocket, at their times, with what breaks on their way."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate
from typing import Protocol

from aiohttp import WSCloseCode, web
from cachetools import LRUCache

from mockllm.core.errors import WireError
from mockllm.core.jsontext import json_bytes
from mockllm.play.faults.transmission import SocketFault, Transmission
from mockllm.play.replay.compilation.gates import AnswerGate
from mockllm.play.replay.compilation.http_answer import HttpAnswer, byte_bounded
from mockllm.play.replay.sessions.exchange import Sent
from mockllm.serve.server.http.connection_faults import close_at_next_request
from mockllm.serve.server.http.delivery import KEEP_ALIVE, Hold, note_fault
from mockllm.serve.server.http.pacing import Paced, Pacer, reach_gate, sleep_until
from mockllm.serve.server.http.sending import break_off
from mockllm.wire.framing.carrier import Carrier
from mockllm.wire.framing.websocket import begin_message, encode_fragments, encode_message
from mockllm.wire.protocols.base import WireProtocol
from mockllm.wire.protocols.values import json_object

MAX_MESSAGE = 64 * 1024 * 1024
"""The largest message of a client, in bytes: histories have images in them."""


async def write_messages(
    request: web.BaseRequest,
    messages: Sequence[bytes],
    frames: Sequence[bytes],
    times: Sequence[int],
    sent: Sent,
    pacer: Pacer,
    start: float,
    speed: float,
    hold: Hold | None,
    gates: Sequence[tuple[int, AnswerGate]] = (),
    *,
    final: bool = True,
) -> float:
    """Sends messages, each in its frame or frames, at their times after `start`; the start without
    the time at gates.

    Args:
        times: in microseconds.
        gates: after how many messages each is, in order.
        final: whether the answer is over with the last one.
    """
    if speed == 0 or not any(times):
        if not gates:
            sent.end_at_once()
        times, speed = [0] * len(messages), 1.0
    begin, count = 0, len(messages)
    for end, gate in (*gates, (count, None)):
        if begin < end:
            ends = list(accumulate(map(len, frames[begin:end])))
            is_final = final and end == count
            wire, parts = b"".join(frames[begin:end]), messages[begin:end]
            paced = Paced(wire, ends, times[begin:end], parts, final=is_final)
            await pacer.play(request, paced, sent, start, speed)
            begin = end
        if gate is not None and hold is not None:
            await reach_gate(start, times, end, gate.pause, speed)
            start += await hold(sent, gate.gate)
    return start


def stop_reading(bound: asyncio.Timeout) -> None:
    """Ends the task that reads a connection within a bound, as if its time were over; nothing where
    it has ended."""
    with suppress(RuntimeError):
        bound.reschedule(asyncio.get_running_loop().time())


class MessageWriter(Protocol):
    """Sends an answer as messages on a WebSocket.

    Attributes:
        interrupted: whether a message of the client ends the answer.
    """

    interrupted: bool

    async def write(
        self, answer: HttpAnswer, sent: Sent, speed: float, pacer: Pacer, hold: Hold | None
    ) -> web.StreamResponse:
        """Sends the messages of an answer at their times; `hold` waits at its gates."""


_Payloads = tuple[list[str], list[int], str]
_Encoded = tuple[list[bytes], list[bytes]]
"""Messages, and their frames."""


@dataclass(slots=True)
class _Kept:
    """What was read of an answer.

    Args:
        encoded: its data as messages; None until they are sent as they are.
    """

    answer: HttpAnswer
    payloads: _Payloads
    encoded: _Encoded | None = None


class AnswerPayloads:
    """The data of the frames of answers, when each is due, and what there is of one that breaks
    off. Those of streams are kept: clients repeat requests, and to read a stream takes longer than
    all else on its way."""

    _MOST_BYTES = 16 * 1024 * 1024

    def __init__(self) -> None:
        # By the id of an answer, which is kept with it: to hash one takes as long as to read it.
        self._kept: LRUCache[int, _Kept] = byte_bounded(
            self._MOST_BYTES, lambda kept: 6 * kept.answer.size
        )

    def read(self, answer: HttpAnswer, carrier: Carrier) -> _Payloads:
        """The data of the frames of a stream; a body that is no stream is one."""
        kept = self._kept.get(id(answer))
        if kept is not None:
            return kept.payloads
        kind = dict(answer.headers).get("content-type", "")
        if answer.status >= 400 or not kind.startswith(carrier.content_type):
            body = b"".join(answer.data).decode("utf-8", "replace")
            return [body], [answer.times[-1] if answer.times else 0], ""
        decoder = carrier.decoder()
        payloads: list[str] = []
        times: list[int] = []
        for at, data in zip(answer.times, answer.data, strict=True):
            with suppress(WireError):
                for frame in decoder.decode(data):
                    if frame.data is not None:
                        payloads.append(frame.data)
                        times.append(at)
        begun = ""
        with suppress(WireError):
            begun = "".join(frame.data or "" for frame in decoder.decode(b"\n\n"))
        read = payloads, times, begun
        self._kept[id(answer)] = _Kept(answer, read)
        return read

    def encode(self, answer: HttpAnswer, messages: list[str], *, binary: bool) -> _Encoded:
        """The messages of an answer and their frames; kept where they are the data as they are."""
        kept = self._kept.get(id(answer))
        is_data = kept is not None and messages is kept.payloads[0]
        if kept is not None and is_data and kept.encoded is not None:
            return kept.encoded
        parts = [json_bytes(message) for message in messages]
        encoded = parts, [encode_message(part, binary=binary) for part in parts]
        if kept is not None and is_data:
            kept.encoded = encoded
        return encoded


class Connection(Protocol):
    """What a fault of an answer may do to its connection."""

    def expire(self) -> None:
        """Ends it as one that has reached its age."""

    def close(self, code: int, reason: str = "") -> None:
        """Ends it with a close frame."""

    def ignore_pings(self) -> None:
        """Leaves pings without an answer from now on."""


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
        protocol: WireProtocol,
        binary: bool,
        answers: AnswerPayloads,
        messages: Callable[[int, Mapping[str, str], list[str]], list[str]],
        connection: Connection,
    ) -> None:
        self._request, self._connection = request, connection
        self._protocol, self._binary, self._messages = protocol, binary, messages
        self._answers = answers
        self._sizes: list[int] = []
        self._sent: Sent | None = None
        self._breaks = False
        self.interrupted = False

    @property
    def sent_messages(self) -> int:
        """How many messages of the answer were sent."""
        written = 0 if self._sent is None else self._sent.bytes
        return sum(end <= written for end in accumulate(self._sizes))

    @property
    def is_written(self) -> bool:
        """Whether the whole answer was sent, so that the client may know its end."""
        return 0 < len(self._sizes) == self.sent_messages and not self._breaks

    async def write(
        self, answer: HttpAnswer, sent: Sent, speed: float, pacer: Pacer, hold: Hold | None
    ) -> web.StreamResponse:
        """Sends the messages of an answer at their times, with what breaks on their way."""
        start, fault = pacer.start_of(self._request), answer.fault
        payloads, times, begun = self._answers.read(answer, self._protocol.usual)
        messages = self._messages(answer.status, dict(answer.headers), payloads)
        times = times[: len(messages)]  # an API may send the end of an answer in another way
        if fault is not None:
            note_fault(answer, fault, sent)
            speed = 1.0
        parts, frames = self._answers.encode(answer, messages, binary=self._binary)
        self._sizes, self._sent, self._breaks = list(map(len, parts)), sent, fault is not None
        if fault is not None:
            frames = [self._frame(fault.socket, *part) for part in enumerate(parts, 1)]
        if begun and fault is not None and answer.ending != "open":
            # In a first frame: what ends the connection, or a pong, may follow it.
            parts = [*parts, json_bytes(begun)]
            frames = [*frames, begin_message(parts[-1], binary=self._binary)]
            times = [*times, times[-1] if times else 0]
        request, gates = self._request, list(self._placed_gates(answer, len(messages)))
        start = await write_messages(
            *(request, parts, frames, times, sent, pacer, start, speed, hold, gates),
            final=fault is None,
        )
        if fault is not None and fault.end_at:
            await sleep_until(start + fault.end_at / 1_000_000)
        if fault is not None and fault.struck is not None:
            sent.strike(time.perf_counter())
        if fault is not None and not fault.socket.answers_pings:
            self._connection.ignore_pings()
        if answer.ending == "open":
            await asyncio.Event().wait()  # is cancelled when the client leaves
        if answer.closes_connection:
            sent.break_off()
            await break_off(self._request, "reset" if answer.ending == "reset" else "closed")
        elif fault is not None:
            is_over = answer.status >= 400 or self._is_over(payloads)
            self._end_with(fault, sent, is_over=is_over)
        return KEEP_ALIVE

    def _placed_gates(self, answer: HttpAnswer, most: int) -> Iterator[tuple[int, AnswerGate]]:
        """The gates of an answer, each with the number of messages before it."""
        for gate in answer.gates:
            before = b"".join(answer.data)[: max(0, gate.before)]
            frames = self._protocol.usual.decoder().decode(before)
            yield min(most, sum(frame.data is not None for frame in frames)), gate

    def _frame(self, fault: SocketFault, number: int, message: bytes) -> bytes:
        binary = self._binary is not (fault.opcode in (0, number))
        if fault.fragmented in (0, number):
            return encode_fragments(message, fault.fragment, binary=binary)
        return encode_message(message, binary=binary)

    def _end_with(self, fault: Transmission, sent: Sent, *, is_over: bool) -> None:
        """Ends the connection as a fault has it, after its messages."""
        effect = fault.socket
        if effect.expires:
            self._connection.expire()
        elif effect.code:
            self._connection.close(effect.code, effect.reason)
        elif not is_over:
            # Over HTTP its body ends like a whole one.
            self._connection.close(WSCloseCode.OK)
        elif fault.idle_closed:
            close_at_next_request(self._request, lambda: sent.strike(time.perf_counter()))

    def _is_over(self, payloads: list[str]) -> bool:
        last = json_object(payloads[-1].encode()) if payloads else None
        return last is not None and self._protocol.events.is_end(last)
