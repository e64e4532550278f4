"""Clients attached over pipes: the cases run in a window, and are judged in their order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from mockllm.checking.cases.case import Case
from mockllm.checking.cases.compile import CaseSpec
from mockllm.checking.judging.examine import examine_outcomes
from mockllm.checking.judging.report import Report, Result
from mockllm.checking.outcome import Outcome
from mockllm.checking.policy import Policy
from mockllm.conformance.messages import Answer, case_json, question
from mockllm.conformance.process import Job, RunnerProcess
from mockllm.errors import UsageError
from mockllm.protocols import PROTOCOLS

__all__ = [
    "LIMIT",
    "WINDOW",
    "Level",
    "PipeRunner",
    "Progress",
    "answered",
    "check_api",
    "examined",
    "remarks",
]

Level = Literal["bytes", "payloads"]
Progress = Callable[[Result], None]

LIMIT = 5.0
"""Seconds that a case may take."""

WINDOW = 64
"""Cases that are in flight at once, in each process."""

Submit = Callable[[Case], "Future[Answer]"]


class PipeRunner:
    """A client behind a runner program, which takes bytes or payloads on its standard input.

    Args:
        command: the program and its arguments.
        jobs: how many processes run side by side.
        window: how many cases are in flight in each of them.
        limit: seconds that a case may take.

    Raises:
        UsageError: there is no such API.
        ProbeError: the program cannot be started, or does not speak the protocol.
    """

    def __init__(
        self,
        command: Sequence[str],
        api: str,
        level: Level = "bytes",
        *,
        jobs: int = 1,
        window: int = WINDOW,
        limit: float = LIMIT,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        check_api(api)
        self._level = level
        self._window = window * jobs
        self._processes: list[RunnerProcess] = []
        self.answers: dict[str, Answer] = {}
        """The first answer to each case, by the name of the case."""
        asked = question(api, level)
        try:
            for _ in range(jobs):
                self._processes.append(RunnerProcess(command, asked, limit=limit, cwd=cwd, env=env))
        except BaseException:
            self.close()
            raise
        self._sent = 0
        self.hello = self._processes[0].hello

    @property
    def restarts(self) -> int:
        """How often a process was started again, because it died or hung."""
        return sum(one.restarts for one in self._processes)

    @property
    def unexplained(self) -> int:
        """How often a process died or hung, and no case does that alone."""
        return sum(one.unexplained for one in self._processes)

    @property
    def remarks(self) -> list[str]:
        """What happened besides the answers, a sentence each."""
        return remarks(self.restarts, self.unexplained)

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
            events=self._level == "payloads",
        )

    def each(self, cases: Iterable[Case]) -> Iterator[tuple[Case, Answer]]:
        """The cases in their order with their answers, which `answers` does not keep.

        Raises:
            ProbeError: the runner breaks the rules of the protocol.
        """
        return answered(cases, self._submit, self._window)

    def outcome(self, case: Case) -> Outcome:
        """The outcome of one more case."""
        return self._submit(case).result().outcome

    def answer(self, case: Case) -> Answer:
        """The answer to one more case."""
        return self._submit(case).result()

    def _submit(self, case: Case) -> Future[Answer]:
        job = Job(case_json(case, self._level))
        self._processes[self._sent % len(self._processes)].submit(job)
        self._sent += 1
        return job.done

    def close(self) -> None:
        """Ends the processes."""
        for one in self._processes:
            one.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def check_api(api: str) -> None:
    """Checks that there is an API.

    Raises:
        UsageError: there is none of this name.
    """
    if api not in PROTOCOLS:
        raise UsageError(f"there is no API {api!r}; there are: {', '.join(PROTOCOLS)}")


def remarks(restarts: int, unexplained: int) -> list[str]:
    """Sentences about processes that died or hung."""
    found = []
    if restarts:
        times = "once" if restarts == 1 else f"{restarts} times"
        found.append(f"the runner died or hung, and was started again {times}")
    if unexplained:
        found.append(
            "the runner died or hung where no case does that alone: a stream may depend on those "
            "before it"
        )
    return found


def examined(
    specs: Iterable[CaseSpec | Case],
    policy: Policy,
    progress: Progress | None,
    *,
    submit: Submit,
    answers: dict[str, Answer],
    window: int,
    unsupported: frozenset[str],
    events: bool = False,
    **settings: Any,
) -> Report:
    """The report on cases that are submitted ahead, and judged in their order.

    Args:
        submit: hands a case to the client; its future gets the answer.
        answers: gets the answer to each case.
        window: how many cases are submitted ahead.
        unsupported: the fields of an outcome that the client has no place for.
        events: leave out cases that show in bytes only, as skipped.
        settings: further arguments of `examine_outcomes`.
    """
    ahead = _Ahead(submit, _compiled(specs), window, events=events)

    def reply(case: Case) -> tuple[Outcome, frozenset[str]]:
        answer = ahead.answer(case)
        answers.setdefault(case.name, answer)  # not of another form of the same name
        return answer.outcome, answer.absent | unsupported

    return examine_outcomes(
        reply, ahead.cases(), policy, progress=progress, needs_events=events, **settings
    )


def answered(cases: Iterable[Case], submit: Submit, window: int) -> Iterator[tuple[Case, Answer]]:
    """The cases in their order with their answers; arguments as of `examined`."""
    ahead = _Ahead(submit, iter(cases), window, events=False)
    return ((case, ahead.answer(case)) for case in ahead.cases())


def _compiled(specs: Iterable[CaseSpec | Case]) -> Iterator[Case]:
    """The cases, each with the plain case of the list as its plain form."""
    plain: dict[str, Case] = {}
    for spec in specs:
        if isinstance(spec, Case):
            yield spec
            continue
        if spec.plain is None:
            plain[spec.name] = spec.compile()
            yield plain[spec.name]
            continue
        if spec.plain.name not in plain:
            plain[spec.plain.name] = spec.plain.compile()
        yield spec.compile(plain[spec.plain.name])


class _Ahead:
    """Submits the cases of a list ahead of those that are judged."""

    def __init__(self, submit: Submit, cases: Iterator[Case], window: int, *, events: bool) -> None:
        self._submit, self._cases, self._window, self._events = submit, cases, window, events
        self._queue: deque[Case] = deque()
        self._futures: dict[int, Future[Answer]] = {}

    def cases(self) -> Iterator[Case]:
        """The cases in their order."""
        while True:
            for case in islice(self._cases, max(self._window - len(self._queue), 0)):
                self._queue.append(case)
                if not self._events or case.events is not None:
                    self._futures[id(case)] = self._submit(case)
            if not self._queue:
                return
            yield self._queue.popleft()

    def answer(self, case: Case) -> Answer:
        """The answer to a case: one that was submitted ahead, or one more."""
        future = self._futures.pop(id(case), None)
        return (future if future is not None else self._submit(case)).result()
