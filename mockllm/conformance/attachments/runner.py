"""A client that is attached in whatever way: its cases run in a window, and are judged in order.

The simplest way is over pipes, to a program that takes bytes or payloads.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from itertools import islice
from typing import Any, Literal, Protocol, Self

from mockllm.checking.cases.case import Case
from mockllm.checking.cases.compile import check_api
from mockllm.checking.judging.examine import examine_outcomes
from mockllm.checking.judging.report import Report, Result
from mockllm.checking.outcome import Outcome
from mockllm.checking.policy import Policy
from mockllm.conformance.attachments.messages import Answer, Hello, case_json, question
from mockllm.conformance.attachments.process import Program, RunnerProcesses

Level = Literal["bytes", "payloads"]
Progress = Callable[[Result], None]

LIMIT = 5.0
"""Seconds that a case may take."""


class Attachment(Protocol):
    """How a client is attached: over pipes, over HTTP, or by a file with its answers."""

    @property
    def hello(self) -> Hello: ...

    @property
    def window(self) -> int:
        """How many cases may be submitted before the first of them is judged."""

    @property
    def needs_events(self) -> bool:
        """Whether the client takes decoded events, so that it cannot get every case."""

    @property
    def remarks(self) -> Sequence[str]:
        """What happened besides the answers, a sentence each."""

    def submit(self, case: Case) -> Future[Answer]: ...

    def requests_usage(self, case: Case) -> bool:
        """Whether the client has requested usage, where the API sends it on request only."""

    def close(self) -> None: ...


class Runner:
    """A client that gets cases, and whose answers are judged."""

    def __init__(self, attachment: Attachment) -> None:
        self.attachment = attachment
        self.hello: Hello = attachment.hello
        self.answers: dict[str, Answer] = {}
        """The first answer to each case, by the name of the case."""
        self._submitted: dict[int, Future[Answer]] = {}

    @property
    def remarks(self) -> Sequence[str]:
        """What happened besides the answers, a sentence each."""
        return self.attachment.remarks

    def examine(
        self,
        cases: Iterable[Case],
        policy: Policy,
        progress: Progress | None = None,
    ) -> Report:
        """Runs the client through cases."""

        def reply(case: Case) -> tuple[Outcome, frozenset[str]]:
            answer = self.answer(case)
            self.answers.setdefault(case.name, answer)  # not of another form of the same name
            return answer.outcome, answer.absent | self.hello.unsupported

        return examine_outcomes(
            reply,
            self._window(iter(cases)),
            policy,
            progress=progress,
            usage_requested=self.attachment.requests_usage,
            needs_events=self.attachment.needs_events,
        )

    def each(self, cases: Iterable[Case]) -> Iterator[tuple[Case, Answer]]:
        """The cases in their order with their answers, which `answers` does not keep."""
        return ((case, self.answer(case)) for case in self._window(iter(cases)))

    def _window(self, cases: Iterator[Case]) -> Iterator[Case]:
        """The cases in their order, each some time after it was submitted."""
        attachment = self.attachment
        waiting: deque[Case] = deque()
        self._submitted.clear()  # what an interrupted run has left
        while True:
            for case in islice(cases, max(attachment.window - len(waiting), 0)):
                waiting.append(case)
                if not attachment.needs_events or case.events is not None:
                    self._submitted[id(case)] = attachment.submit(case)
            if not waiting:
                return
            yield waiting.popleft()

    def answer(self, case: Case) -> Answer:
        """The answer to a case: one that was submitted before, or one more."""
        future = self._submitted.pop(id(case), None)
        return (future or self.attachment.submit(case)).result()

    def close(self) -> None:
        """Ends what was started for the client."""
        self.attachment.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


# Clients over pipes


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
