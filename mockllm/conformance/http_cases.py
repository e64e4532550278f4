"""Whole clients over HTTP: a server in this process, and a session for each case."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Self

from mockllm.checking.cases.case import Case
from mockllm.checking.cases.compile import CaseSpec
from mockllm.checking.judging.report import Report
from mockllm.checking.outcome import Outcome
from mockllm.checking.policy import Policy
from mockllm.conformance.case_names import name_of
from mockllm.conformance.http_programs import ProgramPerCase, StartedPrograms
from mockllm.conformance.http_sessions import (
    ServedCase,
    requests_usage,
    with_requests,
)
from mockllm.conformance.messages import Answer, Hello
from mockllm.conformance.pool import WINDOW, Progress, answered, check_api, examined, remarks
from mockllm.server.options import ServerOptions
from mockllm.server.thread import ServerThread

__all__ = ["HTTP_LIMIT", "HttpRunner"]

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
        UsageError: there is no such API.
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
        check_api(api)
        self._limit = limit
        self._window = window * jobs
        self._numbers = count(1)
        self._requested: dict[str, bool] = {}
        self._repeated: dict[str, int] = {}
        self.answers: dict[str, Answer] = {}
        """The first answer to each case, by the name of the case."""
        self._thread = ServerThread([], ServerOptions(speed=0))
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
    def restarts(self) -> int:
        """How often a process was started again, because it died or hung."""
        return self._clients.restarts

    @property
    def unexplained(self) -> int:
        """How often a process died or hung, and no case does that alone."""
        return self._clients.unexplained

    @property
    def remarks(self) -> list[str]:
        """What happened besides the answers, a sentence each."""
        found = remarks(self.restarts, self.unexplained)
        if self._repeated:
            (first, count), number = next(iter(self._repeated.items())), len(self._repeated)
            cases = "1 case" if number == 1 else f"{number} cases"
            found.append(
                f"the client sent several requests in {cases}, such as {count} in {first}: it "
                "retries, or sends them twice"
            )
        return found

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

    def each(self, cases: Iterable[Case]) -> Iterator[tuple[Case, Answer]]:
        """The cases in their order with their answers, which `answers` does not keep.

        Raises:
            ProbeError: the program breaks the rules of the protocol.
        """
        return answered(cases, self._submit, self._window)

    def outcome(self, case: Case) -> Outcome:
        """The outcome of one more case."""
        return self.answer(case).outcome

    def answer(self, case: Case) -> Answer:
        """The answer to one more case."""
        return self._submit(case).result()

    def _submit(self, case: Case) -> Future[Answer]:
        served = ServedCase(self._thread, case, self._numbers, self._limit)
        done: Future[Answer] = Future()

        def finish(answered: Future[Answer]) -> None:
            try:
                exchanges = served.close()
                self._requested[case.name] = requests_usage(case, exchanges)
                if len(exchanges) > 1:
                    self._repeated[name_of(case)] = len(exchanges)
                done.set_result(with_requests(answered.result(), exchanges, served.url))
            except Exception as error:  # noqa: BLE001 - raised again where it is waited for
                done.set_exception(error)

        message = served.open()
        self._clients.submit(message, served).add_done_callback(finish)
        return done

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
