"""One runner process: sends it cases, and gives each the answer, or the reason why there is none.

A process that dies, or does not answer in time, is started again. If several cases were in flight,
they are run one at a time in the new process, so that exactly the one that did it is blamed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import IO, Any

from mockllm.checking.outcome import Outcome, Trouble
from mockllm.conformance.messages import (
    Answer,
    Hello,
    InvalidMessageError,
    encode,
    parse,
    read_answer,
    read_hello,
)
from mockllm.errors import ProbeError

__all__ = ["START_LIMIT", "Job", "RunnerProcess", "end_process", "no_answer"]

START_LIMIT = 60.0
"""Seconds for the hello of a runner: interpreters and virtual machines take their time to start."""

_END_LIMIT = 2.0
"""Seconds that a runner has to end by itself at the end of its standard input."""

_SELF_TEST = "`mockllm check --self-test` with the same arguments shows what is wrong"


@dataclass(slots=True)
class Job:
    """A case for a runner.

    Args:
        message: without its id.
    """

    message: Mapping[str, Any]
    done: Future[Answer] = field(default_factory=Future)
    id: int = 0


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of a process; None at the end of its output."""

    process: subprocess.Popen[bytes]
    line: bytes | None


class _Close:
    """No job follows."""


def no_answer(reason: str) -> Answer:
    """The answer to a case that crashed its runner."""
    return Answer(Outcome(errors=(Trouble(reason, crash=True),)), ended=reason)


class RunnerProcess:
    """Runs jobs in one process at a time; a thread of its own does all the work.

    Args:
        command: the program and its arguments.
        question: the first message.
        limit: seconds that a case may take.

    Raises:
        ProbeError: the program cannot be started, or its first answer is no hello.
    """

    def __init__(
        self,
        command: Sequence[str],
        question: Mapping[str, Any],
        *,
        limit: float,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self._command, self._question, self._limit = list(command), question, limit
        self._cwd, self._env = cwd, env
        self._inbox: SimpleQueue[Job | _Line | _Close] = SimpleQueue()
        self._waiting: deque[Job] = deque()
        self._suspects: deque[Job] = deque()
        self._pending: dict[int, Job] = {}
        self._answered: set[int] = set()
        self._next_id = 1
        self._since = 0.0
        self._closing = False
        self.restarts = 0
        self._process, self._writer, self.hello = self._started()
        self._thread = threading.Thread(target=self._run, name="mockllm-runner", daemon=True)
        self._thread.start()

    def submit(self, job: Job) -> None:
        """Hands over a job; its future gets the answer, or a `ProbeError`."""
        self._inbox.put(job)

    def close(self) -> None:
        """Ends the process: closes its standard input, and kills it if it goes on."""
        self._inbox.put(_Close())
        self._thread.join()

    # The start

    def _started(self) -> tuple[subprocess.Popen[bytes], _Writer, Hello]:
        process = self._spawned()
        assert process.stdin is not None
        assert process.stdout is not None
        writer = _Writer(process.stdin)
        writer.write(encode(self._question))
        lines: SimpleQueue[bytes] = SimpleQueue()
        threading.Thread(target=self._read, args=(process, lines), daemon=True).start()
        try:
            line = lines.get(timeout=START_LIMIT)
        except Empty:
            writer.end_of(process, at_once=True)
            raise ProbeError(
                f"the runner {self._shown} sent no hello within {START_LIMIT:g} s; {_SELF_TEST}"
            ) from None
        if not line:
            status = writer.end_of(process)
            raise ProbeError(
                f"the runner {self._shown} ended with exit code {status} before its hello; "
                "what it printed on standard error is above"
            )
        try:
            hello = read_hello(parse(line))
        except InvalidMessageError as error:
            writer.end_of(process, at_once=True)
            raise ProbeError(
                f"the first line of the runner {self._shown} is no hello: {error}; {_SELF_TEST}"
            ) from None
        return process, writer, hello

    def _spawned(self) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(  # noqa: S603  the user's own command
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                cwd=self._cwd,
                env=None if self._env is None else dict(self._env),
                start_new_session=True,  # what it starts itself is ended with it
            )
        except OSError as error:
            raise ProbeError(
                f"the runner {self._shown} cannot be started: {error.strerror or error}; "
                "the command after `--` must be a program that can be found"
            ) from None

    @property
    def _shown(self) -> str:
        return f"`{' '.join(self._command)}`"

    def _read(self, process: subprocess.Popen[bytes], first: SimpleQueue[bytes]) -> None:
        """Puts the first line of a process into a queue of its own, the others into the inbox."""
        assert process.stdout is not None
        with process.stdout as stdout:
            first.put(stdout.readline())
            for line in stdout:
                self._inbox.put(_Line(process, line))
        self._inbox.put(_Line(process, None))

    # The thread

    def _run(self) -> None:
        try:
            while not self._closing:
                self._handle(self._next())
        except Exception as error:  # noqa: BLE001 - raised again where a job is waited for
            self._fail(error)
        finally:
            self._writer.end_of(self._process)

    def _next(self) -> Job | _Line | _Close | None:
        """What comes next; None where the process has taken too long."""
        if not self._pending:
            return self._inbox.get()
        remaining = self._since + self._limit - time.monotonic()
        try:
            return self._inbox.get(timeout=max(remaining, 0))
        except Empty:
            return None

    def _handle(self, item: Job | _Line | _Close | None) -> None:
        match item:
            case None:
                self._lost(f"no answer within {self._limit:g} s")
            case Job():
                self._waiting.append(item)
            case _Close():
                self._closing = True
            case _Line(process, _) if process is not self._process:
                pass  # of a process that was killed
            case _Line(_, None):
                self._lost(None)
            case _Line(_, bytes() as line):
                self._answer(line)
        self._send()

    def _send(self) -> None:
        """Sends what may be sent: suspects one at a time, everything else at once."""
        if self._closing:
            return
        if self._suspects:
            if not self._pending:
                self._write(self._suspects.popleft())
            return
        while self._waiting:
            self._write(self._waiting.popleft())

    def _write(self, job: Job) -> None:
        job.id, self._next_id = self._next_id, self._next_id + 1
        if not self._pending:
            self._since = time.monotonic()
        self._pending[job.id] = job
        self._writer.write(encode({"id": job.id, **job.message}))

    def _answer(self, line: bytes) -> None:
        try:
            value = parse(line)
        except InvalidMessageError as error:
            raise ProbeError(
                f"{error}; standard output is for answers alone, everything else has to go to "
                f"standard error. {_SELF_TEST}"
            ) from None
        id = value.get("id")
        job = self._pending.pop(id, None) if isinstance(id, int) else None
        if job is None:
            problem = "answered twice" if id in self._answered else "is none that was sent"
            raise ProbeError(f"the id {id!r} of an answer {problem}. {_SELF_TEST}")
        self._answered.add(job.id)
        self._since = time.monotonic()
        try:
            answer = read_answer(value)
        except InvalidMessageError as error:
            broken = f"the answer of the runner is not valid: {error}"
            answer = replace(no_answer(broken), ended="", invalid=str(error))
        job.done.set_result(answer)

    def _lost(self, reason: str | None) -> None:
        """The process died (None) or hangs: blames the only case in flight, or looks for it."""
        status = self._writer.end_of(self._process, at_once=reason is not None)
        reason = reason or f"the runner ended with exit code {status}"
        jobs = list(self._pending.values())
        self._pending.clear()
        if len(jobs) == 1:
            jobs[0].done.set_result(no_answer(reason))
        else:
            self._suspects.extendleft(reversed(jobs))
        self.restarts += 1
        self._process, self._writer, _ = self._started()

    def _fail(self, error: Exception) -> None:
        """Hands the error to every job that waits, and to those that still come."""
        for job in (*self._pending.values(), *self._suspects, *self._waiting):
            job.done.set_exception(error)
        while not isinstance(item := self._inbox.get(), _Close):
            if isinstance(item, Job):
                item.done.set_exception(error)


class _Writer:
    """Writes to a pipe in a thread: a runner that does not read must not block anything else."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._queue: SimpleQueue[bytes | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="mockllm-writer", daemon=True)
        self._thread.start()

    def write(self, data: bytes) -> None:
        self._queue.put(data)

    def end_of(self, process: subprocess.Popen[bytes], *, at_once: bool = False) -> int:
        """Closes the pipe after what was written, and ends the process; returns its exit code."""
        self._queue.put(None)
        return end_process(process, at_once=at_once)

    def _run(self) -> None:
        try:
            while (data := self._queue.get()) is not None:
                self._stream.write(data)
                if self._queue.empty():
                    self._stream.flush()
        except OSError:  # the process has ended; its output ends, too, and is noticed there
            pass
        finally:
            _close(self._stream)


def _close(stream: IO[bytes]) -> None:
    try:
        stream.close()
    except OSError:  # what is left cannot be written to a process that has ended
        return


def end_process(process: subprocess.Popen[bytes], *, at_once: bool = False) -> int:
    """Ends a process that was started as the first of its session, and what it has started.

    Args:
        at_once: do not wait for it to end by itself at the end of its standard input.

    Returns:
        Its exit code.
    """
    try:
        return process.wait(0 if at_once else _END_LIMIT)
    except subprocess.TimeoutExpired:
        _kill(process)
        return process.wait()


def _kill(process: subprocess.Popen[bytes]) -> None:
    if sys.platform == "win32":
        process.kill()
        return
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:  # it has just ended
        return
