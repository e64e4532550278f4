"""A case with a fault over HTTP: its session, its message, and what came of its requests."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from mockllm.checking.resilience.model import FaultCase
from mockllm.conformance.messages import tools_json
from mockllm.protocols import PROTOCOLS
from mockllm.server.control.routes import base_urls
from mockllm.server.thread import ServerThread

if TYPE_CHECKING:
    from mockllm.replay.sessions.session import Exchange

__all__ = ["GRACE", "FaultSession", "fault_message"]

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
        return [] if found is None else [entry.copy() for entry in found.journal]


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
