"""What is wrong with a runner, as a program that speaks the protocol; its client is not judged."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from mockllm.checking.cases.compile import plain_cases
from mockllm.checking.outcome import FIELDS
from mockllm.conformance.attachments.child import END_LIMIT, Child
from mockllm.conformance.attachments.http_sessions import CaseSession
from mockllm.conformance.attachments.messages import (
    InvalidMessageError,
    case_json,
    encode,
    parse,
    question,
    read_answer,
    read_hello,
    sent_id,
)
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
        sent: the message that it happened after; empty if none.
        received: what the runner wrote; empty if nothing.
    """

    problem: str
    advice: str
    sent: bytes = b""
    received: bytes = b""

    def __str__(self) -> str:
        sent, received = (
            shorten(data.decode(errors="replace").rstrip("\n"), _WIDEST)
            for data in (self.sent, self.received)
        )
        lines = [self.problem, *([f"  sent:     {sent}"] if sent else [])]
        return "\n".join([*lines, f"  received: {received or 'nothing'}", f"  {self.advice}"])


def self_test(
    command: Sequence[str],
    api: str,
    level: str = "bytes",
    *,
    limit: float = 5.0,
    cwd: Path | None = None,
) -> list[RunnerProblem]:
    """The problems of a runner, each once; empty if it speaks the protocol.

    Args:
        limit: seconds for all answers.
    """
    with ExitStack() as stack:
        messages = _messages(api, level, limit, stack)
        try:
            runner = _Runner(command, cwd)
        except OSError as error:
            problem = f"the program cannot be started: {error.strerror or error}"
            advice = "The command after `--` must be a program that can be found."
            return [RunnerProblem(problem, advice)]
        try:
            problems = islice(_problems(runner, question(api, level), messages, limit), _MOST)
            return list({wrong.problem: wrong for wrong in reversed([*problems])}.values())[::-1]
        finally:
            runner.end(at_once=True)


def _messages(api: str, level: str, limit: float, stack: ExitStack) -> list[dict[str, Any]]:
    """A few cases of different kinds, with a field that version 1 does not have."""
    samples = [sample for sample in SAMPLES.values() if sample.plays_over(api)][: len(_IDS)]
    cases = plain_cases(samples, api)
    if level == "http":
        server = stack.enter_context(ServerThread([], ServerOptions(speed=0)))
        numbers = count(1)
        bodies = [CaseSession(server, case, numbers, limit).open() for case in cases]
    else:
        bodies = [case_json(case, level) for case in cases]
    return [
        {"id": id, **body, "later_version": None} for id, body in zip(_IDS, bodies, strict=False)
    ]


class _Runner:
    """A runner, line by line."""

    def __init__(self, command: Sequence[str], cwd: Path | None) -> None:
        self._lines: SimpleQueue[bytes | None] = SimpleQueue()
        self._child = Child(command, lambda _, line: self._lines.put(line), cwd=cwd)
        self.write, self.end = self._child.write, self._child.end

    def first_line(self) -> bytes:
        """The first line; as `line`."""
        return self._checked(lambda: self._child.first_line(START_LIMIT))

    def line(self, seconds: float) -> bytes:
        """The next line.

        Raises:
            EOFError: there is none; the text says why.
        """
        return self._checked(lambda: self._lines.get(timeout=max(seconds, 0)))

    def _checked(self, get: Callable[[], bytes | None]) -> bytes:
        try:
            line = get()
        except Empty:
            raise EOFError("nothing came in time") from None
        if not line:
            self._lines.put(None)
            raise EOFError(f"the program has ended with exit code {self.end()}")
        return line


def _problems(
    runner: _Runner, first: Mapping[str, Any], messages: Sequence[dict[str, Any]], limit: float
) -> Iterator[RunnerProblem]:
    hello = encode(first)
    runner.write(hello)
    try:
        line = runner.first_line()
        read_hello(parse(line))
    except EOFError as error:
        advice = (
            "Read a line, and answer it with a line that has mockllm and client; flush standard "
            "output after each line."
        )
        yield RunnerProblem(f"there is no hello: {error}", advice, hello)
    except InvalidMessageError as error:
        yield RunnerProblem(f"the hello is not valid: {error}", _ADVICE, hello, line)
    else:
        waiting = {message["id"]: encode(message) for message in messages}
        yield from _problems_of_answers(runner, waiting, limit)
        if not waiting:
            yield from _problems_at_end(runner)


def _problems_of_answers(
    runner: _Runner, waiting: dict[int, bytes], limit: float
) -> Iterator[RunnerProblem]:
    """The problems of the answers to cases that are in flight at once; takes out those that came.

    Args:
        waiting: the cases by their ids.
    """
    runner.write(b"".join(waiting.values()))
    answered: set[int] = set()
    unknown = 0  # an answer with an id that was not sent is one of those that are missing
    until = time.monotonic() + limit
    while len(waiting) > unknown:
        try:
            line = runner.line(until - time.monotonic())
            value = parse(line)
        except EOFError as error:
            names, advice = ", ".join(map(str, waiting)), "Answer each case with a line that has "
            problem = f"there is no answer to the cases with the ids {names}: {error}"
            advice += "its id, and flush standard output."
            yield RunnerProblem(problem, advice, next(iter(waiting.values())))
            return
        except InvalidMessageError as error:
            advice = (
                "Standard output is for answers alone; print everything else on standard error."
            )
            yield RunnerProblem(str(error), advice, received=line)
            continue
        id = sent_id(value)
        if id in waiting:
            yield from _problems_of_answer(value, waiting.pop(id), line)
            answered.add(id)
            continue
        problem = "is answered twice" if id in answered else "was not sent"
        unknown += id not in answered
        advice = "Repeat the id of the case unchanged, as a number, once."
        yield RunnerProblem(f"the id {value.get('id')!r:.80} {problem}", advice, received=line)


def _problems_of_answer(
    value: Mapping[str, Any], sent: bytes, line: bytes
) -> Iterator[RunnerProblem]:
    try:
        answer = read_answer(value)
    except InvalidMessageError as error:
        yield RunnerProblem(f"an answer is not valid: {error}", _ADVICE, sent, line)
        return
    if not answer.outcome.errors and answer.absent == frozenset(FIELDS):
        problem = "an answer has no field of an outcome, so that nothing can be judged"
        advice = "Give text, tool_calls, finish and whatever else the client has."
        yield RunnerProblem(problem, advice, sent, line)


def _problems_at_end(runner: _Runner) -> Iterator[RunnerProblem]:
    """Whether the runner ends at the end of its input, and says nothing more."""
    began = time.monotonic()
    status = runner.end()
    ended = time.monotonic() - began < END_LIMIT
    with suppress(EOFError):
        while True:
            line = runner.line(END_LIMIT)
            advice = "Answer each case once; print everything else on standard error."
            yield RunnerProblem("a line comes after the last answer", advice, received=line)
    if not ended:
        problem = f"the runner goes on {END_LIMIT:g} s after the end of its standard input"
        yield RunnerProblem(problem, "End where standard input ends.")
    elif status:
        problem = f"the runner ends with exit code {status}"
        yield RunnerProblem(problem, "End with exit code 0 at the end of standard input.")


_ADVICE = "docs/runner-protocol.md and runner.schema.json describe every field."
