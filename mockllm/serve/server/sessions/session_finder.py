"""Finds the session of a request: by its path, a header or its body, or it is the one that runs.

The last one is for clients that know no other: the base URL in the environment is the same for all
tests of a process, as some libraries read it only once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress

from mockllm.core.errors import RequestError
from mockllm.serve.interception.headers import DEFAULT, ORIGIN_HEADER, RUNNING, RUNNING_HEADER
from mockllm.serve.server.http.request_reading import Arrival, check_session
from mockllm.serve.server.options import ServerOptions
from mockllm.serve.server.sessions.session_setup import SessionSetups


class SessionFinder:
    """Finds the sessions of one server's requests."""

    def __init__(self, options: ServerOptions, setups: SessionSetups) -> None:
        self._options, self._setups = options, setups
        self._running: list[tuple[str, frozenset[object]]] = []
        """The sessions that run, each inside the one before, and the connections that are older."""
        self._has_run = False
        """Whether there is, or was, one: otherwise `RUNNING` is the name of any session."""

    def begin_running(self, session: str, connections: Iterable[object]) -> None:
        """A session runs from now on, inside those that run already.

        Args:
            connections: those that are open, and so belong to something else.
        """
        self._has_run = True
        self._running.append((session, frozenset(connections)))

    def end_running(self, session: str) -> None:
        """A session runs no more."""
        self._running = [pair for pair in self._running if pair[0] != session]

    def find(self, arrival: Arrival) -> tuple[str, RequestError | None]:
        """The name of a request's session, and why the request is refused; None: it is not. Takes
        the origin that a redirected library names from its header."""
        name, refusal = arrival.session, None
        try:
            check_session(name)
        except RequestError as error:
            name, refusal = DEFAULT, error
        if name == RUNNING and self._has_run:
            try:
                name = self._running_session(arrival)
            except RequestError as error:
                refusal = error
        if ORIGIN_HEADER in arrival.headers:
            try:
                self._accept_origin(arrival, name)
            except RequestError as error:
                refusal = error
        return name, refusal

    async def read_body(self, arrival: Arrival, pattern: re.Pattern[bytes]) -> None:
        """Takes the session that the body of a request names, if nothing else names one."""
        if arrival.session == DEFAULT:
            # A body that cannot be read is refused where the request is answered.
            with suppress(RequestError):
                body = await arrival.read(self._options.max_body, self._options.patience)
                found = pattern.search(body)
                arrival.session = DEFAULT if found is None else found[0].decode()

    def _accept_origin(self, arrival: Arrival, session: str) -> None:
        """Takes the origin that a request names in a header.

        Raises:
            RequestError: somebody else than a library that is redirected names it, or it is not
                intercepted.
        """
        options, setup = self._options.intercept, self._setups.find(session)
        arrival.accept_origin("" if options is None else options.key)
        if setup is not None and setup.gone:
            return  # which is what the answer says
        hosts = (options and options.hosts, setup and setup.hosts)
        if not any(known and known.has_url(arrival.origin) for known in hosts):
            raise RequestError(
                f"{arrival.origin} is not intercepted here.", status=403, code="not_intercepted"
            )

    def _running_session(self, arrival: Arrival) -> str:
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
