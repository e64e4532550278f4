"""One session over WebSockets with a real service, as it was on the wire. Pure.

It may have several connections, one after another, where a client dialled again.
"""

from __future__ import annotations

from typing import Literal

from mockllm.core.http import TimedBytes
from mockllm.core.record import record
from mockllm.play.tapes.captured import Captured

Side = Literal["client", "service"]
Kind = Literal["text", "binary", "ping", "pong", "close"]
HowClosed = Literal["", "eof", "reset"]
"""How a connection ended without a close frame: by FIN, or by RST."""


@record
class SocketMessage:
    """A message, or the end of a connection.

    Args:
        at: microseconds after the opening of the first connection.
        connection: which of the session's connections, from 0.
        side: who sent it.
        data: of all kinds but `close`: what was sent, inflated; that of a text is UTF-8.
        code: of a close frame; 0: it has none, or there was no frame.
        reason: of a close frame.
        how: of a `close` without a frame.
        fragments: the lengths of its frames, where there were several.
    """

    at: int
    connection: int
    side: Side
    kind: Kind
    data: bytes = b""
    code: int = 0
    reason: str = ""
    how: HowClosed = ""
    fragments: tuple[int, ...] = ()


@record
class SocketSession:
    """The opening of a session, and its messages in their order; names of headers in lower case.

    Args:
        url: with the query, of the first connection; `wss` and `ws` are written `https` and `http`.
        status, headers: of the answer to the opening; 101 where it was accepted.
        body: of an opening that was refused.
        at: when the client opened it, in seconds since 1970; 0 where that is not known.
        source: the origin, for messages: a file and a number, or the proxy.
        hidden: eight bits of each value that was hidden, after its place
            (`mockllm.play.matching.hidden`).
    """

    url: str
    request_headers: tuple[tuple[str, str], ...]
    status: int
    headers: tuple[tuple[str, str], ...]
    messages: tuple[SocketMessage, ...]
    body: bytes = b""
    at: float = 0.0
    source: str = ""
    hidden: tuple[tuple[str, str], ...] = ()

    @property
    def opening(self) -> Captured:
        """The request that opened it, and its answer, as an exchange."""
        return Captured(
            "GET",
            self.url,
            self.request_headers,
            b"",
            self.status,
            self.headers,
            (TimedBytes(0, self.body),) if self.body else (),
            at=self.at,
            source=self.source,
            hidden=self.hidden,
        )


def opening_session(exchange: Captured) -> SocketSession:
    """The session that an exchange opened, or could not open, without messages."""
    return SocketSession(
        exchange.url,
        exchange.request_headers,
        exchange.status,
        exchange.headers,
        (),
        body=exchange.body,
        at=exchange.at,
        source=exchange.source,
        hidden=exchange.hidden,
    )


Recording = Captured | SocketSession
"""What a recorder writes as one: an exchange over HTTP, or a session over WebSockets."""
