"""Copies of WebSockets that pass through a recording server.

What passes is kept as it was on the wire, with its times, and read when the connection is over: so
it takes no time of the event loop.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from mockllm.core.errors import WireError
from mockllm.play.tapes.socket_session import HowClosed, Kind, Side, SocketMessage, SocketSession
from mockllm.serve.interception.pipes import Watch
from mockllm.wire.framing.websocket import (
    BINARY,
    CLOSE,
    PING,
    PONG,
    TEXT,
    MessageReader,
    ReadMessage,
)

MAX_MESSAGE = 64 * 1024 * 1024
"""The largest message that is recorded, in bytes: histories have images in them."""

_KINDS: dict[int, Kind] = {
    TEXT: "text",
    BINARY: "binary",
    CLOSE: "close",
    PING: "ping",
    PONG: "pong",
}


class SocketCopy:
    """The copy of one connection.

    Args:
        opening: the session without messages.
        limit: the most bytes that are kept.
        clock: the time in seconds.
    """

    def __init__(self, opening: SocketSession, limit: int, clock: Callable[[], float]) -> None:
        self._opening, self._limit, self._clock = opening, limit, clock
        self._began = clock()
        self._passed: list[tuple[int, Side, bytes, HowClosed]] = []
        self._size = 0

    @property
    def watches(self) -> tuple[Watch, Watch]:
        """See what the client sends, and what the service sends."""
        return partial(self._add, "client"), partial(self._add, "service")

    def _add(self, side: Side, data: bytes, how: HowClosed) -> None:
        self._size += len(data)
        if self._size <= self._limit:
            at = round((self._clock() - self._began) * 1_000_000)
            self._passed.append((at, side, data, how))

    def read(self) -> tuple[SocketSession, str]:
        """The session, and why it has not all that passed; "" where it has."""
        inflates = any(
            name == "sec-websocket-extensions" and "permessage-deflate" in value
            for name, value in self._opening.headers
        )
        readers = {
            side: MessageReader(inflates=inflates, most=MAX_MESSAGE)
            for side in ("client", "service")
        }
        messages: list[SocketMessage] = []
        problem, is_over = "", False
        try:
            for at, side, data, how in self._passed:
                for read in readers[side].read(data):
                    messages.append(_message(at, side, read))
                    is_over = is_over or read.opcode == CLOSE
                if how and not is_over:
                    messages.append(SocketMessage(at, 0, side, "close", how=how))
                    is_over = True
        except WireError as error:
            problem = f"of the {side}, {error}"
        if not problem and self._size > self._limit:
            problem = f"more than {self._limit} bytes passed"
        if not problem and any(reader.is_inside for reader in readers.values()):
            problem = "the last one breaks off"
        if problem:
            problem = f"it is recorded up to message {len(messages)}: {problem}"
        return replace(self._opening, messages=tuple(messages)), problem


def _message(at: int, side: Side, read: ReadMessage) -> SocketMessage:
    """A message as a session has it.

    Raises:
        WireError: a text is no UTF-8.
    """
    kind, data = _KINDS[read.opcode], read.data
    if kind == "close":
        code, reason = int.from_bytes(data[:2]), data[2:].decode("utf-8", "replace")
        return SocketMessage(at, 0, side, kind, code=code, reason=reason)
    if kind == "text":
        try:
            data.decode()
        except UnicodeDecodeError as error:
            raise WireError(f"byte {error.start} of a text is not UTF-8") from None
    return SocketMessage(at, 0, side, kind, data, fragments=read.fragments)
