"""What is wrong with a runner, as a program that speaks the protocol; its client is not judged."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from mockllm.checking.cases.compile import plain_cases
from mockllm.checking.outcome import FIELDS
from mockllm.conformance.attachments.child import end_process, spawn
from mockllm.conformance.attachments.http_sessions import stream_session
from mockllm.conformance.attachments.messages import (
    case_json,
    encode,
    parse,
    question,
    read_answer,
    read_hello,
    sent_id,
)
from mockllm.conformance.attachments.outcome_json import InvalidMessageError
from mockllm.conformance.attachments.process import START_LIMIT
from mockllm.core.text import shorten
from mockllm.quirks.samples import SAMPLES
from mockllm.server.options import ServerOptions
from mockllm.server.thread import ServerThread

_WIDEST = 300
_MOST = 10
"""Problems; a runner that prints without end has no end of them."""

_IDS = (7, 3, 4_000_000_011, 5)
"""Ids in no order, and one that needs more than 32 bits."""


@dataclass(frozen=True, slots=True)
class RunnerProblem:
    """A rule of the protocol that a runner breaks.

    Args:
        sent: the message that it happened after; "" if none.
        received: what the runner wrote; "" if nothing.
    """

    problem: str
    advice: str
    sent: str = ""
    received: str = ""

    def __str__(self) -> str:
        lines = [self.problem]
        if self.sent:
            lines.append(f"  sent:     {shorten(self.sent, _WIDEST)}")
        lines.append(f"  received: {shorten(self.received, _WIDEST) or 'nothing'}")
        lines.append(f"  {self.advice}")
        return "\n".join(lines)


def self_test(
    command: Sequence[str],
    api: str,
    level: str = "bytes",
    *,
    limit: float = 5.0,
    start_limit: float = START_LIMIT,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> list[RunnerProblem]:
    """The problems of a runner; empty if it speaks the protocol.

    Args:
        limit: seconds for each answer, and for the end.
    """
    with ExitStack() as stack:
        messages = _messages(api, level, limit, stack)
        try:
            process = spawn(command, cwd=cwd, env=env)
        except OSError as error:
            return [
                RunnerProblem(
                    f"the program cannot be started: {error.strerror or error}",
                    "The command after `--` must be a program that can be found.",
                )
            ]
        conversation = _Conversation(process, limit, start_limit)
        try:
            if conversation.hello(encode(question(api, level))) and conversation.cases(messages):
                conversation.end()
        finally:
            conversation.close_input()
            end_process(process, at_once=True)
        # Each once, as it came first.
        return list(
            {problem.problem: problem for problem in reversed(conversation.problems)}.values()
        )[::-1]


def _messages(api: str, level: str, limit: float, stack: ExitStack) -> list[dict[str, Any]]:
    """A few cases of different kinds, with a field that version 1 does not have."""
    samples = [sample for sample in SAMPLES.values() if sample.plays_over(api)][: len(_IDS)]
    found = list(plain_cases(samples, api))
    if level == "http":
        server = stack.enter_context(ServerThread([], ServerOptions(speed=0)))
        numbers = count(1)
        bodies = [stream_session(server, case, numbers, limit).open() for case in found]
    else:
        bodies = [case_json(case, level) for case in found]
    return [
        {"id": id, **body, "later_version": None} for id, body in zip(_IDS, bodies, strict=False)
    ]


@dataclass(slots=True)
class _Conversation:
    """What is said to a runner, and what it answers."""

    process: subprocess.Popen[bytes]
    limit: float
    start_limit: float
    problems: list[RunnerProblem] = field(default_factory=list)
    _lines: SimpleQueue[bytes | None] = field(default_factory=SimpleQueue)
    _strangers: int = 0

    def __post_init__(self) -> None:
        threading.Thread(target=self._read, daemon=True).start()

    def hello(self, sent: bytes) -> bool:
        """Whether the runner answers the first message with a hello."""
        self._write(sent)
        line = self._line(self.start_limit)
        if isinstance(line, str):
            self._problem(
                f"there is no hello: {line}",
                "Read a line, and answer it with a line that has mockllm and client; flush "
                "standard output after each line.",
                sent,
            )
            return False
        try:
            read_hello(parse(line))
        except InvalidMessageError as error:
            self._problem(f"the hello is not valid: {error}", _ADVICE, sent, line)
            return False
        return True

    def cases(self, messages: Sequence[dict[str, Any]]) -> bool:
        """Whether the runner answers some cases, which are in flight at once."""
        waiting = {message["id"]: encode(message) for message in messages}
        answered: set[int] = set()
        self._write(b"".join(waiting.values()))
        until = time.monotonic() + self.limit
        # An answer with an id that was not sent is one of those that are missing.
        while len(waiting) > self._strangers:
            if len(self.problems) >= _MOST:
                return False
            line = self._line(until - time.monotonic())
            first = next(iter(waiting.values()))
            if isinstance(line, str):
                names = ", ".join(map(str, waiting))
                self._problem(
                    f"there is no answer to the cases with the ids {names}: {line}",
                    "Answer each case with a line that has its id, and flush standard output.",
                    first,
                )
                return False
            self._check(line, waiting, answered)
        return not waiting

    def _check(self, line: bytes, waiting: dict[int, bytes], answered: set[int]) -> None:
        """Checks one answer, and takes its case from those that wait."""
        try:
            value = parse(line)
        except InvalidMessageError as error:
            self._problem(
                str(error),
                "Standard output is for answers alone; print everything else on standard error.",
                received=line,
            )
            return
        id = sent_id(value)
        if id not in waiting:
            problem = "is answered twice" if id in answered else "was not sent"
            self._strangers += id not in answered
            self._problem(
                f"the id {value.get('id')!r:.80} {problem}",
                "Repeat the id of the case unchanged, as a number, once.",
                received=line,
            )
            return
        sent = waiting.pop(id)
        answered.add(id)
        try:
            answer = read_answer(value)
        except InvalidMessageError as error:
            self._problem(f"an answer is not valid: {error}", _ADVICE, sent, line)
            return
        if not answer.outcome.errors and answer.absent == frozenset(FIELDS):
            self._problem(
                "an answer has no field of an outcome, so that nothing can be judged",
                "Give text, tool_calls, finish and whatever else the client has.",
                sent,
                line,
            )

    def close_input(self) -> None:
        """Ends the standard input of the runner; does nothing the second time."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.close()
        except BrokenPipeError:  # it has ended already
            return

    def end(self) -> None:
        """Checks that the runner ends at the end of its input, and says nothing more."""
        self.close_input()
        until = time.monotonic() + self.limit
        while isinstance(line := self._line(until - time.monotonic()), bytes):
            if len(self.problems) >= _MOST:
                return
            self._problem(
                "a line comes after the last answer",
                "Answer each case once; print everything else on standard error.",
                received=line,
            )
        try:
            status = self.process.wait(max(until - time.monotonic(), 0.1))
        except subprocess.TimeoutExpired:
            self._problem(
                f"the runner goes on {self.limit:g} s after the end of its standard input",
                "End where standard input ends.",
            )
            return
        if status:
            self._problem(
                f"the runner ends with exit code {status}",
                "End with exit code 0 at the end of standard input.",
            )

    def _problem(self, problem: str, advice: str, sent: bytes = b"", received: bytes = b"") -> None:
        texts = (data.decode(errors="replace").rstrip("\n") for data in (sent, received))
        self.problems.append(RunnerProblem(problem, advice, *texts))

    def _write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(data)
            self.process.stdin.flush()
        except BrokenPipeError:  # it has ended, which is reported where its line is missing
            return

    def _line(self, seconds: float) -> bytes | str:
        """The next line; a text with the reason if there is none."""
        try:
            line = self._lines.get(timeout=max(seconds, 0))
        except Empty:
            return f"nothing came within {self.limit:g} s"
        if line is None:
            self._lines.put(None)
            return f"the program has ended with exit code {self.process.wait()}"
        return line

    def _read(self) -> None:
        for line in self._output():
            self._lines.put(line)
        self._lines.put(None)

    def _output(self) -> Iterator[bytes]:
        assert self.process.stdout is not None
        with self.process.stdout as stdout:
            yield from stdout


_ADVICE = "docs/runner-protocol.md and runner.schema.json describe every field."
