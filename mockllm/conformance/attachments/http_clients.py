"""Whole clients over HTTP: a server in this process, and a session for each case."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import replace
from itertools import count
from typing import Any

from mockllm.checking.cases.case import Case
from mockllm.checking.cases.compile import check_api
from mockllm.conformance.attachments.http_programs import ProgramPerCase
from mockllm.conformance.attachments.http_sessions import (
    END,
    PATIENCE,
    CaseSession,
    PlayedCase,
    finished,
    requests_usage,
    with_requests,
)
from mockllm.conformance.attachments.messages import Answer, Hello, question
from mockllm.conformance.attachments.process import Program, RunnerProcesses
from mockllm.conformance.attachments.runner import Runner
from mockllm.conformance.case_names import name_of
from mockllm.core.text import counted
from mockllm.protocols.environment import unproxied
from mockllm.server.options import ServerOptions
from mockllm.server.thread import ServerThread

HTTP_LIMIT = 30.0
"""Seconds that a client may take for a case."""


def http_runner(
    command: Sequence[str],
    api: str,
    *,
    limit: float = HTTP_LIMIT,
    per_case: bool = False,
    **settings: Any,
) -> Runner:
    """A whole client that gets a base URL for each case.

    Args:
        limit, settings: see `Program`.
        per_case: see `HttpClients`.
    """
    program = Program(command=command, limit=limit, **settings)
    return Runner(HttpClients(program, api, options=ServerOptions(speed=0), per_case=per_case))


def fault_limit(cases: Sequence[Case]) -> float:
    """Seconds that a client may take for any of some cases with faults."""
    return max(case.deadline for case in cases) + PATIENCE + END


class HttpClients:
    """Programs with a whole client, and the server that they send their requests to.

    Args:
        per_case: start the program for each case, with the case in its environment. Its outcome is
            the last line of its standard output.
    """

    needs_events = False

    def __init__(
        self,
        program: Program,
        api: str,
        *,
        options: ServerOptions,
        per_case: bool = False,
    ) -> None:
        check_api(api)
        self.window = program.window * program.jobs
        self._limit = program.limit
        self._numbers = count(1)
        self._lock = threading.Lock()
        self._requested: dict[str, bool] = {}
        self._repeated: dict[str, int] = {}
        self._thread = ServerThread([], options)
        self.processes: RunnerProcesses | ProgramPerCase
        self._thread.__enter__()
        try:
            self.processes = ProgramPerCase(program) if per_case else _started(program, api)
        except BaseException:
            self._thread.__exit__(None, None, None)
            raise
        self.hello: Hello = self.processes.hello

    @property
    def remarks(self) -> list[str]:
        lines = list(self.processes.remarks)
        if self._repeated:
            first, requests = next(iter(self._repeated.items()))
            cases = counted(len(self._repeated), "case")
            lines.append(
                f"the client sent several requests in {cases}, such as {requests} in {first}: it "
                "retries, or sends them twice"
            )
        return lines

    def submit(self, case: Case) -> Future[Answer]:
        """Hands a stream to the client."""
        session = CaseSession(self._thread, case, self._numbers, self._limit)
        done: Future[Answer] = Future()

        def finish(answered: Future[Answer]) -> None:
            try:
                exchanges = session.exchanges()
                session.close()
                self._requested[case.name] = requests_usage(case, exchanges)
                if len(exchanges) > 1:
                    self._repeated[name_of(case)] = len(exchanges)
                url = session.urls[case.api]
                done.set_result(with_requests(answered.result(), exchanges, url))
            except Exception as error:  # noqa: BLE001 - raised again where it is waited for
                done.set_exception(error)

        self._sent(session).add_done_callback(finish)
        return done

    def requests_usage(self, case: Case) -> bool:
        return self._requested.get(case.name, True)

    def play(self, case: Case) -> PlayedCase:
        """Plays a case with a fault, and waits for the answer; several threads may do so."""
        session = CaseSession(self._thread, case, self._numbers)
        with self._lock:
            job = self._sent(session)
        return finished(case, session, job)

    def _sent(self, session: CaseSession) -> Future[Answer]:
        return self.processes.submit(session.open(), session)

    def close(self) -> None:
        """Ends the programs and the server."""
        self.processes.close()
        self._thread.__exit__(None, None, None)


def _started(program: Program, api: str) -> RunnerProcesses:
    """Programs that are started once, and get each case as a line."""
    env = dict(os.environ if program.env is None else program.env)
    return RunnerProcesses(replace(program, env=env | unproxied(env)), question(api, "http"))
