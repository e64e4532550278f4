"""Whole clients over HTTP: their programs, a server in this process, a session for each case."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

from mockllm.checking.cases.case import Case
from mockllm.checking.cases.compile import check_api
from mockllm.checking.outcome import Outcome
from mockllm.conformance.clients.child import end_process, spawn
from mockllm.conformance.clients.http_sessions import (
    END,
    PATIENCE,
    CaseSession,
    PlayedCase,
    finish_case,
    requests_usage,
    with_requests,
)
from mockllm.conformance.clients.messages import (
    Answer,
    Hello,
    InvalidMessageError,
    no_answer,
    parse,
    question,
    read_answer,
)
from mockllm.conformance.clients.process import Program, RunnerProcesses
from mockllm.conformance.clients.runner import Runner
from mockllm.conformance.results import Client
from mockllm.core.text import quantity
from mockllm.serve.server.options import ServerOptions
from mockllm.serve.server.thread import ServerThread
from mockllm.wire.protocols.environment import client_environment, proxy_exemptions

_OF_FAULTS = ("tries", "idle_timeout", "requests", "together", "cancel")
"""What only the messages of cases with faults have, as JSON in the environment."""


class ProgramPerCase:
    """A program that is started for each case."""

    remarks: Sequence[str] = ()

    def __init__(self, program: Program) -> None:
        self._program = program
        self._env = dict(os.environ if program.env is None else program.env)
        self._pool = ThreadPoolExecutor(program.jobs, thread_name_prefix="mockllm-client")
        name = Path(program.command[0]).name
        self.hello = Hello(Client(name, adapter=" ".join(program.command)))
        self._running: set[subprocess.Popen[bytes]] = set()
        self._closed = False

    def submit(self, message: Mapping[str, Any], session: CaseSession) -> Future[Answer]:
        return self._pool.submit(self._run, message, session.urls)

    def _run(self, message: Mapping[str, Any], urls: Mapping[str, str]) -> Answer:
        own = {f"MOCKLLM_{name.upper()}": message[name] for name in ("case", "model", "prompt")}
        own |= {"MOCKLLM_BASE_URL": message["base_url"], "MOCKLLM_API": message["api"]}
        own |= {"MOCKLLM_TOOLS": json.dumps(message["tools"])}
        given = {name: message[name] for name in _OF_FAULTS if message.get(name) is not None}
        own |= {f"MOCKLLM_{name.upper()}": json.dumps(value) for name, value in given.items()}
        env = {**self._env, **proxy_exemptions(self._env), **client_environment(urls), **own}
        try:
            process = spawn(self._program.command, reads=False, cwd=self._program.cwd, env=env)
        except OSError as error:
            raise self._program.not_started(error) from None
        with process:  # closes its output
            self._running.add(process)
            if self._closed:
                end_process(process, at_once=True)
            try:
                output = process.communicate(timeout=self._program.limit)[0]
            except subprocess.TimeoutExpired:
                end_process(process, at_once=True)
                return no_answer(f"no answer within {self._program.limit:g} s")
            finally:
                self._running.discard(process)
        lines = output.strip().splitlines()
        if not lines:
            return no_answer(
                f"the program ended with exit code {process.returncode} and no outcome"
            )
        return _read(lines[-1], process.returncode)

    def close(self) -> None:
        self._closed = True
        self._pool.shutdown(wait=False, cancel_futures=True)
        for process in tuple(self._running):
            end_process(process, at_once=True)
        self._pool.shutdown()


def _read(line: bytes, status: int) -> Answer:
    """The outcome that a program printed."""
    try:
        return read_answer(parse(line))
    except InvalidMessageError as error:
        if status:
            return no_answer(f"the program ended with exit code {status} and no outcome")
        reason = f"the last line of the program is no outcome: {error}"
        return Answer(Outcome.of(errors=[reason]), invalid=reason)


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
        check_api(api, over_http=True)
        self.window = program.window * program.jobs
        self._limit = program.limit
        self._numbers = count(1)
        self._lock = threading.Lock()
        self._requested: dict[str, bool] = {}
        self._repeated: dict[str, int] = {}
        self.processes: RunnerProcesses | ProgramPerCase
        with ExitStack() as stack:
            self._thread = stack.enter_context(ServerThread([], options))
            self.processes = ProgramPerCase(program) if per_case else _start(program, api)
            stack.callback(self.processes.close)
            self.close = stack.pop_all().close
        self.hello: Hello = self.processes.hello

    @property
    def remarks(self) -> list[str]:
        lines = list(self.processes.remarks)
        if self._repeated:
            first, requests = next(iter(self._repeated.items()))
            cases = quantity(len(self._repeated), "case")
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
                    self._repeated[case.name] = len(exchanges)
                url = session.urls[case.api]
                done.set_result(with_requests(answered.result(), exchanges, url))
            except Exception as error:  # noqa: BLE001 - raised again where it is waited for
                done.set_exception(error)

        self._send(session).add_done_callback(finish)
        return done

    def requests_usage(self, case: Case) -> bool:
        return self._requested.get(case.name, True)

    def play(self, case: Case) -> PlayedCase:
        """Plays a case with a fault, and waits for the answer; several threads may do so."""
        session = CaseSession(self._thread, case, self._numbers)
        with self._lock:
            job = self._send(session)
        return finish_case(case, session, job)

    def _send(self, session: CaseSession) -> Future[Answer]:
        return self.processes.submit(session.open(), session)


def _start(program: Program, api: str) -> RunnerProcesses:
    """Programs that are started once, and get each case as a line."""
    env = dict(os.environ if program.env is None else program.env)
    return RunnerProcesses(replace(program, env=env | proxy_exemptions(env)), question(api, "http"))
