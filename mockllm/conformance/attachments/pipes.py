"""Clients attached over pipes: runner programs that take bytes or payloads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path

from mockllm.checking.cases.case import Case
from mockllm.conformance.attachments.messages import Answer, Hello, case_json, question
from mockllm.conformance.attachments.process import RunnerProcesses
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
    processes = RunnerProcesses(command, question(api, level), jobs, limit, cwd, env)
    return Runner(Pipes(processes, level, window * jobs))


class Pipes:
    """Runner processes that get cases at a level."""

    def __init__(self, processes: RunnerProcesses, level: Level, window: int) -> None:
        self.processes, self._level, self.window = processes, level, window
        self.needs_events = level == "payloads"
        self.hello: Hello = processes.hello

    @property
    def remarks(self) -> list[str]:
        return remarks(self.processes.restarts, self.processes.unexplained)

    def submit(self, case: Case) -> Future[Answer]:
        return self.processes.submit(case_json(case, self._level))

    def requests_usage(self, case: Case) -> bool:
        """True: a runner sends no requests."""
        return True

    def close(self) -> None:
        self.processes.close()
