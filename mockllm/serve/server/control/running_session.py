"""The session of the test that runs, for clients that know no other: the base URL in the
environment is the same for all tests of a process, as some libraries read it only once."""

from __future__ import annotations

from collections.abc import Iterable

from mockllm.core.errors import RequestError
from mockllm.serve.interception.headers import RUNNING_HEADER
from mockllm.serve.server.http.request_reading import Arrival, check_session


class RunningSession:
    """Which session runs now, and which connections are older."""

    def __init__(self) -> None:
        self.is_known = False
        """Whether there is, or was, one: otherwise the name is that of any session."""
        self._running: list[tuple[str, frozenset[object]]] = []

    def begin(self, session: str, connections: Iterable[object]) -> None:
        """A session runs from now on, inside those that run already.

        Args:
            connections: those that are open, and so belong to something else.
        """
        self.is_known = True
        self._running.append((session, frozenset(connections)))

    def end(self, session: str) -> None:
        """A session runs no more."""
        self._running = [pair for pair in self._running if pair[0] != session]

    def session_of(self, arrival: Arrival) -> str:
        """The session of a request: a redirected library says which; else the one that runs.

        Raises:
            RequestError: no test runs, or the connection began before it.
        """
        named = arrival.headers.get(RUNNING_HEADER)
        if named is not None:
            check_session(named)
            return named
        if not self._running:
            raise _refusal("no test runs that has a session")
        session, older = self._running[-1]
        if arrival.request.protocol in older:
            raise _refusal(f"its connection began before the test of {session!r}, which runs")
        return session


def _refusal(why: str) -> RequestError:
    return RequestError(
        f"This request belongs to no test: {why}. Its URL is that of the environment, which is the "
        "same in all tests: ask in a test that uses mockllm_session, with a client of that test.",
        status=410,
        code="no_session",
    )
