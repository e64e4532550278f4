"""Clients attached over pipes: runner programs that take bytes or payloads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path

from mockllm.checking.cases.case import Case
from mockllm.conformance.attachments.messages import Answer, Hello, case_json, question
from mockllm.conformance.attachments.process import Job, RunnerProcess
from mockllm.conformance.attachments.runner import LIMIT, WINDOW, Level, Runner, check_api, remarks


def pipe_runner(
    command: Sequence[str],
    api: str,
    level: Level = "bytes",
    *,
    jobs: int = 1,
    window: int = WINDOW,
    limit: float = LIMIT,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> Runner:
    """A client behind a runner program, which takes bytes or payloads on its standard input.

    Args:
        jobs: how many processes run side by side.
        window: how many cases are in flight in each of them.
    """
    check_api(api)
    asked = question(api, level)
    processes: list[RunnerProcess] = []
    try:
        while len(processes) < jobs:
            processes.append(RunnerProcess(command, asked, limit=limit, cwd=cwd, env=env))
    except BaseException:
        for process in processes:
            process.close()
        raise
    return Runner(Pipes(processes, level, window * jobs))


class Pipes:
    """Runner processes that get the cases in turns."""

    def __init__(self, processes: Sequence[RunnerProcess], level: Level, window: int) -> None:
        self._processes, self._level, self._sent = processes, level, 0
        self.window = window
        self.needs_events = level == "payloads"
        self.hello: Hello = processes[0].hello

    @property
    def restarts(self) -> int:
        return sum(process.restarts for process in self._processes)

    @property
    def unexplained(self) -> int:
        return sum(process.unexplained for process in self._processes)

    @property
    def remarks(self) -> list[str]:
        return remarks(self.restarts, self.unexplained)

    def submit(self, case: Case) -> Future[Answer]:
        job = Job(case_json(case, self._level))
        self._processes[self._sent % len(self._processes)].submit(job)
        self._sent += 1
        return job.done

    def requests_usage(self, case: Case) -> bool:
        """True: a runner sends no requests."""
        return True

    def close(self) -> None:
        for process in self._processes:
            process.close()
