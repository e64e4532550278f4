"""The log of a case with a fault: requests and connections, as the server saw them. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal

from mockllm.replay.sessions.exchange import Exchange

ClosedBy = Literal["client", "server", "kept open", "still sending"]
"""`kept open`: the answer was complete, and the connection could be used again; `still sending`:
the answer was not over when the case was judged."""


@dataclass(frozen=True, slots=True)
class LoggedRequest:
    """A request of a case, and what happened on its connection. All times are in seconds.

    Args:
        number: from 1, in the order of arrival.
        connection: the number of the client's connection within the server.
        at: after the first request of the case.
        request: method and path.
        headers: of the request, credentials masked.
        body_digest: the beginning of the SHA-256 of the request's body, in hexadecimal: the same
            for the same body.
        status: of the answer; 0 where the client got none.
        bytes_sent: of the answer's body.
        fault: as it is written for `x-mockllm-fault`; "" for none.
        struck: when the fault struck, after this request; None where it did not.
        struck_after: how many bytes of the body were sent before.
        duration: until the end of the answer; None where it was not over.
        closed_by: who ended the connection.
    """

    number: int
    connection: int
    at: float
    request: str
    headers: Mapping[str, str]
    body_digest: str
    status: int
    bytes_sent: int
    fault: str = ""
    struck: float | None = None
    struck_after: int | None = None
    duration: float | None = None
    closed_by: ClosedBy = "kept open"


def logged(exchanges: Sequence[Exchange]) -> tuple[LoggedRequest, ...]:
    """The log of the requests of a case."""
    if not exchanges:
        return ()
    begin = exchanges[0].received.clock
    ports = list(dict.fromkeys(exchange.received.connection for exchange in exchanges))
    return tuple(
        LoggedRequest(
            number=number,
            connection=ports.index(one.received.connection) + 1,
            at=round(one.received.clock - begin, 4),
            request=f"{one.received.method} {one.path}",
            headers=dict(one.headers),
            body_digest=sha256(one.body).hexdigest()[:16],
            status=one.status,
            bytes_sent=one.sent.bytes,
            fault=one.fault,
            struck=None if one.sent.struck is None else round(one.sent.struck, 4),
            struck_after=one.sent.struck_after,
            duration=None if one.in_use else round(one.sent.duration, 4),
            closed_by=_closed_by(one),
        )
        for number, one in enumerate(exchanges, 1)
    )


def _closed_by(one: Exchange) -> ClosedBy:
    if one.in_use:
        return "still sending"
    if one.sent.client_gone:
        return "client"
    if one.sent.stopped:
        return "still sending"
    breaks = any(
        part.startswith(_CLOSING) and _ORDERLY not in part for part in one.fault.split(";")
    )
    return "server" if not one.sent.complete and (breaks or not one.fault) else "kept open"


_CLOSING = ("cut", "refuse")
_ORDERLY = "end=orderly"


def log_line(one: LoggedRequest) -> str:
    """A request of the log of a case."""
    words = [
        f"{one.number}. at {one.at:.3f} s, connection {one.connection}: {one.request} ->",
        f"{one.status}, {one.bytes_sent:,} bytes" if one.status else "no answer",
    ]
    if one.fault:
        struck = f" after {one.struck:.3f} s" if one.struck is not None else " did not strike"
        after = f" and {one.struck_after:,} bytes" if one.struck_after is not None else ""
        words[-1] += f"; {one.fault}{struck}{after}"
    took = f" after {one.duration:.3f} s" if one.duration is not None else ""
    ends = {"client": "the client closed it", "server": "mockllm closed it"}
    words[-1] += f"; {ends.get(one.closed_by, one.closed_by)}{took}"
    return " ".join(words)
