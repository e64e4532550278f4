"""A whole client behind a runner program, and a server that plays faults to it."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as LateError
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from mockllm.checking.resilience.model import FaultCase
from mockllm.conformance.fault_sessions import FaultSession
from mockllm.conformance.http_programs import ProgramPerCase, StartedPrograms
from mockllm.conformance.messages import Answer, Hello
from mockllm.conformance.pool import check_api, remarks
from mockllm.server.options import ServerOptions
from mockllm.server.thread import ServerThread

if TYPE_CHECKING:
    from mockllm.replay.sessions.session import Exchange

__all__ = ["END", "PATIENCE", "FaultRunner", "Played"]

PATIENCE = 1.0
"""Seconds that a client gets after its deadline, before its connections are broken off."""

END = 10.0
"""Seconds that a client gets after that, before its process is ended."""


@dataclass(frozen=True, slots=True)
class Played:
    """A case that was played to a client.

    Args:
        exchanges: until the client answered and its connections were over, or until it was late.
        late: whether it had not answered some seconds after its deadline; then its connections were
            broken off, and what it did after that is not in `exchanges`.
    """

    case: FaultCase
    answer: Answer
    exchanges: tuple[Exchange, ...]
    late: bool = False


class FaultRunner:
    """A whole client that gets a base URL for each case; any number of cases at the same time.

    Args:
        command: the program and its arguments.
        longest: the longest deadline of all cases, in seconds.
        jobs, per_case: as of `HttpRunner`.

    Raises:
        UsageError: there is no such API.
        ProbeError: the program cannot be started, or does not speak the protocol.
    """

    def __init__(
        self,
        command: Sequence[str],
        api: str,
        *,
        longest: float,
        jobs: int = 1,
        per_case: bool = False,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        check_api(api)
        self._numbers = count(1)
        self._lock = threading.Lock()
        self._thread = ServerThread([], ServerOptions(grace=0))
        limit = longest + PATIENCE + END
        self._clients: StartedPrograms | ProgramPerCase
        self._thread.__enter__()
        try:
            if per_case:
                self._clients = ProgramPerCase(command, jobs, limit, cwd, env)
            else:
                self._clients = StartedPrograms(command, api, jobs, limit, cwd, env)
        except BaseException:
            self._thread.__exit__(None, None, None)
            raise
        self.hello: Hello = self._clients.hello

    @property
    def remarks(self) -> list[str]:
        """What happened besides the answers, a sentence each."""
        return remarks(self._clients.restarts, self._clients.unexplained)

    def play(self, case: FaultCase) -> Played:
        """Plays a case, and waits for the answer; several threads may do so.

        Raises:
            ProbeError: the runner breaks the rules of the protocol; nothing more can be judged.
        """
        session = FaultSession(self._thread, case, self._numbers)
        with self._lock:
            job = self._clients.submit(session.open(), session)
        try:
            return self._wait(case, job, session)
        finally:
            session.close()

    def _wait(self, case: FaultCase, job: Future[Answer], session: FaultSession) -> Played:
        try:
            answer = job.result(case.deadline + PATIENCE)
        except LateError:
            exchanges = tuple(session.exchanges())
            session.break_off()
            return Played(case, job.result(), exchanges, late=True)
        return Played(case, answer, tuple(session.settled()))

    def close(self) -> None:
        """Ends the programs and the server."""
        self._clients.close()
        self._thread.__exit__(None, None, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
