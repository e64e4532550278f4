"""Clients attached over pipes: runner programs that take bytes or payloads."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

from mockllm.checking.cases.case import Case
from mockllm.conformance.attachments.messages import Answer, Hello, case_json, question
from mockllm.conformance.attachments.process import Program, RunnerProcesses
from mockllm.conformance.attachments.runner import LIMIT, Level, Runner, check_api


def pipe_runner(
    command: Sequence[str],
    api: str,
    level: Level = "bytes",
    *,
    limit: float = LIMIT,
    **settings: Any,
) -> Runner:
    """A client behind a runner program, which takes bytes or payloads on its standard input.

    Args:
        limit, settings: see `Program`.
    """
    check_api(api)
    program = Program(command=command, limit=limit, **settings)
    processes = RunnerProcesses(program, question(api, level))
    return Runner(Pipes(processes, level, program.window * program.jobs))


class Pipes:
    """Runner processes that get cases at a level."""

    def __init__(self, processes: RunnerProcesses, level: Level, window: int) -> None:
        self.processes, self._level, self.window = processes, level, window
        self.needs_events = level == "payloads"
        self.hello: Hello = processes.hello

    @property
    def remarks(self) -> list[str]:
        return self.processes.remarks

    def submit(self, case: Case) -> Future[Answer]:
        return self.processes.submit(case_json(case, self._level))

    def requests_usage(self, case: Case) -> bool:
        """True: a runner sends no requests."""
        return True

    def close(self) -> None:
        self.processes.close()
