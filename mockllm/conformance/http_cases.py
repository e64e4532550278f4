"""Whole clients over HTTP: a server in this process, and a session for each case."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from mockllm.checking.cases.case import Case
from mockllm.checking.cases.compile import CaseSpec
from mockllm.checking.judging.report import Report
from mockllm.checking.outcome import Outcome
from mockllm.checking.policy import Policy
from mockllm.conformance.case_names import name_of
from mockllm.conformance.messages import (
    Answer,
    Hello,
    InvalidMessageError,
    parse,
    question,
    read_answer,
    tools_json,
)
from mockllm.conformance.pool import WINDOW, Progress, examined
from mockllm.conformance.process import Job, RunnerProcess, no_answer
from mockllm.conformance.results import Client
from mockllm.errors import ProbeError
from mockllm.matching.conditions import check_partial
from mockllm.protocols import PROTOCOLS
from mockllm.protocols.environment import client_environment, unproxied
from mockllm.replay.body import parse_object
from mockllm.server.control import base_urls
from mockllm.server.options import ServerOptions
from mockllm.server.thread import ServerThread

if TYPE_CHECKING:
    from mockllm.replay.session import Exchange

__all__ = ["HTTP_LIMIT", "HttpRunner", "case_message"]

HTTP_LIMIT = 30.0
"""Seconds that a client may take for a case."""


class HttpRunner:
    """A whole client that gets a base URL for each case.

    Args:
        command: the program and its arguments.
        jobs: how many programs run side by side; for `per_case`, at most.
        per_case: start the program for each case, with the case in its environment. Its outcome is
            the last line of its standard output.
        limit: seconds that a case may take.
        window: cases that a program which is started once may work on at the same time.

    Raises:
        ProbeError: the program cannot be started, or does not speak the protocol.
    """

    def __init__(
        self,
        command: Sequence[str],
        api: str,
        *,
        jobs: int = 1,
        per_case: bool = False,
        limit: float = HTTP_LIMIT,
        window: int = WINDOW,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self._limit = limit
        self._window = window * jobs
        self._numbers = count(1)
        self._requested: dict[str, bool] = {}
        self.answers: dict[str, Answer] = {}
        """The first answer to each case, by the name of the case."""
        self._thread = ServerThread([], ServerOptions(speed=0))
        self._clients: _Started | _PerCase
        self._thread.__enter__()
        try:
            if per_case:
                self._clients = _PerCase(command, jobs, limit, cwd, env)
            else:
                self._clients = _Started(command, api, jobs, limit, cwd, env)
        except BaseException:
            self._thread.__exit__(None, None, None)
            raise
        self.hello: Hello = self._clients.hello

    @property
    def restarts(self) -> int:
        """How often a process was started again, because it died or hung."""
        return self._clients.restarts

    def examine(
        self,
        specs: Iterable[CaseSpec | Case],
        policy: Policy,
        progress: Progress | None = None,
    ) -> Report:
        """Runs the client through cases.

        Raises:
            ProbeError: the runner breaks the rules of the protocol; nothing more can be judged.
            UsageError: a name in `Policy.allow` is neither a quirk nor a case.
        """
        return examined(
            specs,
            policy,
            progress,
            submit=self._submit,
            answers=self.answers,
            window=self._window,
            unsupported=self.hello.unsupported,
            usage_requested=lambda case: self._requested.get(case.name, True),
        )

    def outcome(self, case: Case) -> Outcome:
        """The outcome of one more case."""
        return self.answer(case).outcome

    def answer(self, case: Case) -> Answer:
        """The answer to one more case."""
        return self._submit(case).result()

    def _submit(self, case: Case) -> Future[Answer]:
        session = f"case-{next(self._numbers)}"
        server, thread = self._thread.server, self._thread
        thread.ask(server.assign, session, (case.scenario,), named=case.scenario.name)
        urls = base_urls(PROTOCOLS, f"{thread.url}/s/{session}")
        done: Future[Answer] = Future()

        def finish(answered: Future[Answer]) -> None:
            try:
                answer = answered.result()
                exchanges = thread.ask(self._exchanges, session)
                thread.call(server.forget, session)
                self._requested[case.name] = _requests_usage(case, exchanges)
                done.set_result(_with_requests(answer, exchanges, urls[case.api]))
            except Exception as error:  # noqa: BLE001 - raised again where it is waited for
                done.set_exception(error)

        self._clients.submit(case_message(case, urls, self._limit), urls).add_done_callback(finish)
        return done

    def _exchanges(self, session: str) -> list[Exchange]:
        found = self._thread.server.sessions.find(session)
        return [] if found is None else list(found.journal)

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


def case_message(case: Case, urls: Mapping[str, str], limit: float) -> dict[str, Any]:
    """The message of a case for a client that gets base URLs, without its id.

    Args:
        urls: by the name of the API.
        limit: seconds.
    """
    return {
        "case": name_of(case),
        "api": case.api,
        "base_url": urls[case.api],
        "model": case.model,
        "prompt": case.prompt,
        "tools": tools_json(case.tools),
        "deadline": limit,
    }


def _requests_usage(case: Case, exchanges: Sequence[Exchange]) -> bool:
    """Whether the last request was for usage, too, where the API sends it on request only."""
    wanted = PROTOCOLS[case.api].client.usage
    if not wanted or not exchanges:
        return True
    return check_partial("body", wanted, parse_object(exchanges[-1].body)) is None


def _with_requests(answer: Answer, exchanges: Sequence[Exchange], url: str) -> Answer:
    """The answer, which is not valid where the client did not send what is judged."""
    if answer.invalid or answer.ended:
        return answer
    if not exchanges:
        reason = f"the client sent no request to {url}"
    else:
        unplayed = next((one for one in exchanges if one.outcome != "played"), None)
        if unplayed is None:
            return answer
        reason = f"{unplayed.method} {unplayed.path} was not answered from the case"
        reason = "; ".join([reason, *map(str, unplayed.problems)])
    return Answer(answer.outcome, answer.absent, answer.raised, invalid=reason)


class _Started:
    """Programs that are started once, and get each case as a line."""

    def __init__(
        self,
        command: Sequence[str],
        api: str,
        jobs: int,
        limit: float,
        cwd: Path | None,
        env: Mapping[str, str] | None,
    ) -> None:
        self._sent = 0
        self._processes: list[RunnerProcess] = []
        hello = question(api, "http")
        try:
            for _ in range(jobs):
                self._processes.append(RunnerProcess(command, hello, limit=limit, cwd=cwd, env=env))
        except BaseException:
            self.close()
            raise
        self.hello = self._processes[0].hello

    @property
    def restarts(self) -> int:
        return sum(one.restarts for one in self._processes)

    def submit(self, message: Mapping[str, Any], urls: Mapping[str, str]) -> Future[Answer]:
        job = Job(message)
        self._processes[self._sent % len(self._processes)].submit(job)
        self._sent += 1
        return job.done

    def close(self) -> None:
        for one in self._processes:
            one.close()
        self._processes = []


class _PerCase:
    """A program that is started for each case."""

    def __init__(
        self,
        command: Sequence[str],
        jobs: int,
        limit: float,
        cwd: Path | None,
        env: Mapping[str, str] | None,
    ) -> None:
        self._command, self._limit, self._cwd = list(command), limit, cwd
        self._env = dict(os.environ if env is None else env)
        self._pool = ThreadPoolExecutor(jobs, thread_name_prefix="mockllm-client")
        name = Path(self._command[0]).name
        self.hello = Hello(Client(name, adapter=" ".join(self._command)))
        self.restarts = 0

    def submit(self, message: Mapping[str, Any], urls: Mapping[str, str]) -> Future[Answer]:
        return self._pool.submit(self._run, message, urls)

    def _run(self, message: Mapping[str, Any], urls: Mapping[str, str]) -> Answer:
        own = {f"MOCKLLM_{name.upper()}": message[name] for name in ("case", "model", "prompt")}
        own |= {"MOCKLLM_BASE_URL": message["base_url"], "MOCKLLM_API": message["api"]}
        own |= {"MOCKLLM_TOOLS": json.dumps(message["tools"])}
        try:
            done = subprocess.run(  # noqa: S603  the user's own command
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                cwd=self._cwd,
                env={**self._env, **unproxied(self._env), **client_environment(urls), **own},
                timeout=self._limit,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return no_answer(f"no answer within {self._limit:g} s")
        except OSError as error:
            raise ProbeError(
                f"{self._command[0]} cannot be started: {error.strerror or error}"
            ) from None
        lines = done.stdout.strip().splitlines()
        if not lines:
            return no_answer(f"the program ended with exit code {done.returncode} and no outcome")
        return _read(lines[-1], done.returncode)

    def close(self) -> None:
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
