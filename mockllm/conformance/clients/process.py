"""Runner processes: sends them cases, and gives each the answer, or the reason why there is none.

A process that dies, or does not answer in time, is started again. A case is blamed for that only if
it was all that the process ever got: the cases that were in flight are run one at a time in a new
process, and where one ends a process that has answered others before, once more in one of its own.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from mockllm.conformance.clients.child import Child
from mockllm.conformance.clients.messages import (
    Answer,
    Hello,
    InvalidMessageError,
    encode,
    no_answer,
    parse,
    read_hello,
    sent_id,
    valid_answer,
)
from mockllm.core.errors import ProbeError

if TYPE_CHECKING:
    from mockllm.conformance.clients.http_sessions import CaseSession

START_LIMIT = 60.0
"""Seconds for the hello of a runner: interpreters and virtual machines take their time to start."""

WINDOW = 64
"""Cases that are in flight at once, in each process."""

_MOST_LOST = 20
"""Processes that may end before any case is answered; one that hangs counts as three."""

_SELF_TEST = "`mockllm check --self-test` with the same arguments shows what is wrong"


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program with a client, and how it is run.

    Args:
        limit: seconds that a case may take.
        jobs: how many run side by side.
        window: cases that each of them may work on at the same time.
    """

    command: Sequence[str]
    limit: float
    jobs: int = 1
    window: int = WINDOW
    cwd: Path | None = None
    env: Mapping[str, str] | None = None

    def __str__(self) -> str:
        return f"`{' '.join(self.command)}`"

    def not_started(self, error: OSError) -> ProbeError:
        """The error where the program cannot be started."""
        return ProbeError(
            f"the runner {self} cannot be started: {error.strerror or error}; "
            "the command after `--` must be a program that can be found"
        )


@dataclass(slots=True)
class Job:
    """A case for a runner.

    Args:
        message: without its id.
        again: the message for a new process, where it is another one.
    """

    message: Mapping[str, Any]
    again: Callable[[], Mapping[str, Any]] | None = None
    done: Future[Answer] = field(default_factory=Future)
    id: int = 0


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of a program; None at the end of its output."""

    child: Child
    line: bytes | None


class _Close:
    """No job follows."""


class RunnerProcess:
    """Runs jobs in one process at a time; a thread of its own does all the work.

    Cases behind another one in the same process are not counted in its time.
    """

    def __init__(self, program: Program, question: Mapping[str, Any]) -> None:
        self._program, self._question = program, question
        self._inbox: SimpleQueue[Job | _Line | _Close] = SimpleQueue()
        self._waiting: deque[Job] = deque()
        self._suspects: deque[Job] = deque()
        self._pending: dict[int, Job] = {}
        self._answered: set[int] = set()
        self._next_id = 1
        self._since = 0.0
        self._closing = self._gone = False
        self._searching = False
        self._sent = self._lost_in_vain = 0
        self.restarts = 0
        """How often a process was started again."""
        self.unexplained = 0
        """How often a process ended or hung, and no case did that alone."""
        self._child, self.hello = self._start()
        self._thread = threading.Thread(target=self._run, name="mockllm-runner", daemon=True)
        self._thread.start()

    def submit(self, job: Job) -> None:
        """Hands over a job; its future gets the answer, or a `ProbeError`."""
        if not self._thread.is_alive():
            job.done.set_exception(ProbeError(f"the runner {self._program} was closed"))
            return
        self._inbox.put(job)

    def close(self) -> None:
        """Ends the process: closes its standard input, and kills it if it goes on."""
        self._inbox.put(_Close())
        self._thread.join()

    # The start

    def _start(self) -> tuple[Child, Hello]:
        try:
            child = Child(
                self._program.command,
                lambda child, line: self._inbox.put(_Line(child, line)),
                cwd=self._program.cwd,
                env=self._program.env,
            )
        except OSError as error:
            raise self._program.not_started(error) from None
        child.write(encode(self._question))
        try:
            line = child.first_line(START_LIMIT)
        except BaseException as error:  # Ctrl-C does not reach it, in a session of its own
            child.end(at_once=True)
            if not isinstance(error, Empty):
                raise
            raise ProbeError(
                f"the runner {self._program} sent no hello within {START_LIMIT:g} s; {_SELF_TEST}"
            ) from None
        if not line:
            status = child.end()
            raise ProbeError(
                f"the runner {self._program} ended with exit code {status} before its hello; "
                "what it printed on standard error is above"
            )
        try:
            hello = read_hello(parse(line))
        except InvalidMessageError as error:
            child.end(at_once=True)
            raise ProbeError(
                f"the first line of the runner {self._program} is no hello: {error}; {_SELF_TEST}"
            ) from None
        self._sent = 0
        return child, hello

    # The thread

    def _run(self) -> None:
        try:
            while not self._closing:
                self._handle(self._next())
        except Exception as error:  # noqa: BLE001 - raised again where a job is waited for
            self._fail(error)
        finally:
            self._child.end()

    def _next(self) -> Job | _Line | _Close | None:
        """The next message; None where the process has taken too long."""
        if not self._pending:
            return self._inbox.get()
        remaining = self._since + self._program.limit - time.monotonic()
        try:
            return self._inbox.get(timeout=max(remaining, 0))
        except Empty:
            return None

    def _handle(self, item: Job | _Line | _Close | None) -> None:
        match item:
            case None:
                self._handle_loss(f"no answer within {self._program.limit:g} s")
            case Job():
                self._waiting.append(item)
            case _Close():
                self._closing = True
            case _Line(child, _) if child is not self._child or self._gone:
                pass  # of a process that was killed
            case _Line(_, None):
                self._handle_loss(None)
            case _Line(_, bytes() as line):
                self._answer(line)
        if not self._closing:
            self._send()

    def _send(self) -> None:
        """Sends what may be sent: suspects one at a time, everything else at once."""
        if self._searching and not self._pending and not self._suspects:
            self._searching = False
            self.unexplained += 1
        if self._gone and (self._suspects or self._waiting):
            self._child, _ = self._start()
            self._gone = False
            self.restarts += 1
        if self._suspects:
            if not self._pending:
                self._write(self._suspects.popleft())
            return
        while self._waiting:
            self._write(self._waiting.popleft())

    def _write(self, job: Job) -> None:
        if job.id and job.again is not None:
            job.message = job.again()
        job.id, self._next_id = self._next_id, self._next_id + 1
        if not self._pending:
            self._since = time.monotonic()
        self._pending[job.id] = job
        self._sent += 1
        self._child.write(encode({"id": job.id, **job.message}))

    def _answer(self, line: bytes) -> None:
        try:
            value = parse(line)
        except InvalidMessageError as error:
            if not line.endswith(b"\n"):
                return  # the process died inside of an answer; its end comes next
            raise ProbeError(
                f"{error}; standard output is for answers alone, everything else has to go to "
                f"standard error. {_SELF_TEST}"
            ) from None
        id = sent_id(value)
        job = self._pending.pop(id, None)
        if job is None:
            problem = "is answered twice" if id in self._answered else "is none that was sent"
            raise ProbeError(f"the id {value.get('id')!r:.80} of an answer {problem}. {_SELF_TEST}")
        self._answered.add(id)
        self._since = time.monotonic()
        job.done.set_result(valid_answer(value))

    # Processes that are lost

    def _handle_loss(self, reason: str | None) -> None:
        """The process died (None) or hangs: blames the only case it got, or looks for the one."""
        status = self._child.end(at_once=reason is not None)
        self._gone = True
        died = f"the runner ended with exit code {status}"
        jobs = list(self._pending.values())
        self._pending.clear()
        if self._sent == len(jobs) == 1:
            jobs[0].done.set_result(no_answer(reason or died))
            self._searching = False
        elif jobs:
            self._suspects.extendleft(reversed(jobs))
            self._searching = True
        else:
            self.unexplained += 1
        self._count_in_vain(1 if reason is None else 3, reason or died)

    def _count_in_vain(self, weight: int, reason: str) -> None:
        """Gives up on a runner that never answers."""
        self._lost_in_vain += weight
        if not self._answered and self._lost_in_vain >= _MOST_LOST:
            raise ProbeError(
                f"the runner {self._program} was started {self.restarts + 1} times and has "
                f"answered no case ({reason}). {_SELF_TEST}"
            )

    def _fail(self, error: Exception) -> None:
        """Hands the error to every job that waits, and to those that still come."""
        for job in (*self._pending.values(), *self._suspects, *self._waiting):
            job.done.set_exception(error)
        while not isinstance(item := self._inbox.get(), _Close):
            if isinstance(item, Job):
                item.done.set_exception(error)


class RunnerProcesses:
    """Processes of one runner, which get the cases in turns.

    Args:
        question: the first message to each.
    """

    def __init__(self, program: Program, question: Mapping[str, Any]) -> None:
        self._sent = 0
        self._processes: list[RunnerProcess] = []
        try:
            while len(self._processes) < program.jobs:
                self._processes.append(RunnerProcess(program, question))
        except BaseException:
            self.close()
            raise
        self.hello: Hello = self._processes[0].hello

    @property
    def restarts(self) -> int:
        """The number of times that a process was started again, because it died or hung."""
        return sum(process.restarts for process in self._processes)

    @property
    def unexplained(self) -> int:
        """The number of times that a process died or hung, and no case does that alone."""
        return sum(process.unexplained for process in self._processes)

    @property
    def remarks(self) -> list[str]:
        """Sentences about processes that died or hung."""
        remarks = []
        if self.restarts:
            times = "once" if self.restarts == 1 else f"{self.restarts} times"
            remarks.append(f"the runner died or hung, and was started again {times}")
        if self.unexplained:
            remarks.append(
                "the runner died or hung where no case does that alone: a stream may depend on "
                "those before it"
            )
        return remarks

    def submit(
        self, message: Mapping[str, Any], session: CaseSession | None = None
    ) -> Future[Answer]:
        """Hands a case to the next process."""
        job = Job(message, again=None if session is None else session.open)
        self._processes[self._sent % len(self._processes)].submit(job)
        self._sent += 1
        return job.done

    def close(self) -> None:
        """Ends the processes."""
        for process in self._processes:
            process.close()
