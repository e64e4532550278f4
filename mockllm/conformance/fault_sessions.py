"""A case with a fault over HTTP: its session, its message, and what came of its requests."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from mockllm.checking.resilience.model import FaultCase
from mockllm.conformance.fault_results import ClosedBy, LoggedRequest
from mockllm.conformance.messages import tools_json
from mockllm.protocols import PROTOCOLS
from mockllm.server.control.routes import base_urls
from mockllm.server.thread import ServerThread

if TYPE_CHECKING:
    from mockllm.replay.sessions.session import Exchange

__all__ = ["GRACE", "FaultSession", "fault_message", "logged"]

GRACE = 1.0
"""Seconds that the connections of a client that has answered may take to end."""

_LOOK = 0.02


class FaultSession:
    """A case in a session of its own, on a server that plays faults."""

    def __init__(self, thread: ServerThread, case: FaultCase, numbers: Iterator[int]) -> None:
        self._thread, self._case, self._numbers = thread, case, numbers
        self._session = ""
        self.urls: Mapping[str, str] = {}

    def open(self) -> dict[str, Any]:
        """The message of the case; each time in a new session, since attempts are counted."""
        if self._session:
            self.close()
        self._session = f"fault-{next(self._numbers)}"
        case, server = self._case, self._thread.server
        self._thread.ask(
            server.assign,
            self._session,
            (case.scenario,),
            named=case.scenario.name,
            faults=case.faults,
        )
        self.urls = base_urls(PROTOCOLS, f"{self._thread.url}/s/{self._session}")
        return fault_message(case, self.urls)

    def exchanges(self) -> list[Exchange]:
        """What was requested so far, as it is now, not as it becomes."""
        return self._thread.ask(self._exchanges)

    def settled(self) -> list[Exchange]:
        """What was requested, once every answer is over, or after `GRACE` seconds."""
        until = time.monotonic() + GRACE
        while True:
            found = self.exchanges()
            if not any(one.in_use for one in found) or time.monotonic() > until:
                return found
            time.sleep(_LOOK)

    def break_off(self) -> None:
        """Ends the connections on which an answer is not over; further requests get an error."""
        self._thread.ask(self._break_off)

    def _break_off(self) -> None:
        server = self._thread.server
        server.break_off(self._session)
        server.assign(self._session, ())

    def close(self) -> None:
        """Ends the session."""
        self._thread.ask(self._thread.server.forget, self._session)

    def _exchanges(self) -> list[Exchange]:
        found = self._thread.server.sessions.find(self._session)
        return [] if found is None else [replace(one) for one in found.journal]


def fault_message(case: FaultCase, urls: Mapping[str, str]) -> dict[str, Any]:
    """The message of a case, without its id.

    Args:
        urls: by the name of the API.
    """
    return {
        "case": case.name,
        "api": case.api,
        "base_url": urls[case.api],
        "model": case.model,
        "prompt": case.prompt,
        "tools": tools_json(case.tools),
        "deadline": case.deadline,
        "tries": case.tries,
        "idle_timeout": case.idle_timeout,
        "requests": case.requests,
        "together": case.together,
        "cancel": {"after": "first"} if case.cancel else None,
    }


def logged(exchanges: Sequence[Exchange]) -> tuple[LoggedRequest, ...]:
    """The log of the requests of a case."""
    if not exchanges:
        return ()
    begin = exchanges[0].clock
    ports = list(dict.fromkeys(one.connection for one in exchanges))
    return tuple(
        LoggedRequest(
            number=number,
            connection=ports.index(one.connection) + 1,
            at=round(one.clock - begin, 4),
            request=f"{one.method} {one.path}",
            headers=dict(one.headers),
            body_digest=sha256(one.body).hexdigest()[:16],
            status=one.status,
            bytes_sent=one.bytes_sent,
            fault=one.fault,
            struck=None if one.struck is None else round(one.struck, 4),
            struck_after=one.struck_after,
            duration=None if one.in_use else round(one.duration, 4),
            closed_by=_closed_by(one),
        )
        for number, one in enumerate(exchanges, 1)
    )


def _closed_by(one: Exchange) -> ClosedBy:
    if one.in_use:
        return "still sending"
    if one.client_gone:
        return "client"
    if one.stopped:
        return "still sending"
    breaks = any(
        part.startswith(_CLOSING) and _ORDERLY not in part for part in one.fault.split(";")
    )
    return "server" if not one.complete and (breaks or not one.fault) else "kept open"


_CLOSING = ("cut", "refuse")
_ORDERLY = "end=orderly"
