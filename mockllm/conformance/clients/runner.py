"""A client that is attached in whatever way: its cases run in a window, and are judged in order.

The simplest way is over pipes, to a program that takes bytes or payloads. `Piped` makes such a
program an accumulator of the kit, for suites and tests in Python. For runners that no command line
can start (a browser, a phone, an embedded target) there are cases as a file, and answers as a file.
"""

from __future__ import annotations

import weakref
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import IO, Any, Protocol, Self

from mockllm.checking.cases.case import Case, Level
from mockllm.checking.cases.compile import check_api, plain_forms
from mockllm.checking.judging.examination import Report
from mockllm.checking.judging.examine import examine_outcomes
from mockllm.checking.outcome import Outcome
from mockllm.checking.policy import Policy
from mockllm.checking.probes import Tool
from mockllm.conformance.clients.messages import (
    Answer,
    Hello,
    InvalidMessageError,
    case_json,
    encode,
    parse,
    question,
    read_hello,
    sent_id,
    tools_json,
    valid_answer,
)
from mockllm.conformance.clients.process import Program, RunnerProcesses
from mockllm.conformance.driver import UNWATCHED, Driver
from mockllm.core.errors import ProbeError, UsageError
from mockllm.scenario.model import ToolSpec

LIMIT = 5.0
"""Seconds that a case may take."""


class Attachment(Protocol):
    """The attachment of a client: over pipes, over HTTP, or by a file with its answers."""

    @property
    def hello(self) -> Hello: ...

    @property
    def window(self) -> int:
        """The number of cases that may be submitted before the first of them is judged."""

    @property
    def needs_events(self) -> bool:
        """Whether the client takes decoded events, so that it cannot get every case."""

    @property
    def remarks(self) -> Sequence[str]:
        """Events besides the answers, a sentence each."""

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

    def examine(self, cases: Sequence[Case], policy: Policy, driver: Driver = UNWATCHED) -> Report:
        """Runs the client through cases."""
        needs_events = self.attachment.needs_events
        skipped = [case for case in cases if needs_events and case.events is None]
        playable = [case for case in cases if not needs_events or case.events is not None]
        unjudged: dict[int, Answer] = {}

        def in_turn() -> Iterator[Case]:
            yield from skipped
            for case, answer in self.each(playable, driver):
                unjudged[id(case)] = answer
                yield case

        def reply(case: Case) -> tuple[Outcome, frozenset[str]]:
            answer = unjudged.pop(id(case), None) or self.answer(case)
            self.answers.setdefault(case.name, answer)  # not of another form of the same name
            return answer.outcome, answer.absent | self.hello.unsupported

        return examine_outcomes(
            reply,
            in_turn(),
            policy,
            usage_requested=self.attachment.requests_usage,
            needs_events=needs_events,
        )

    def each(
        self, cases: Iterable[Case], driver: Driver, what: str = "cases"
    ) -> Iterator[tuple[Case, Answer]]:
        """The cases in their order with their answers, which `answers` does not keep."""
        return driver.each(cases, self.attachment.submit, self.attachment.window, what)

    def answer(self, case: Case) -> Answer:
        """One more answer to a case."""
        return self.attachment.submit(case).result()

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
        self.close = processes.close

    @property
    def remarks(self) -> list[str]:
        return self.processes.remarks

    def submit(self, case: Case) -> Future[Answer]:
        return self.processes.submit(case_json(case, self._level))

    def requests_usage(self, case: Case) -> bool:
        """True: a runner sends no requests."""
        return True


class Piped:
    """Makes probes of a runner program: `AccumulatorSuite` and `check` take it as a factory.

    The program is started at the first stream, and ends with `close`, or when this object is
    collected. The stream is sent as a whole at its end, so that no state in the middle of it is
    judged. What the client has no place for is ignored by the policy that judges:
    `Policy(ignore=piped.unsupported)`.
    """

    def __init__(
        self,
        command: Sequence[str],
        api: str,
        level: Level = "bytes",
        *,
        limit: float = LIMIT,
    ) -> None:
        self.level: Level = level
        self._program = Program(command=command, limit=limit)
        self._question = question(api, level)
        self._process: RunnerProcesses | None = None
        self._end: weakref.finalize[Any, Any] | None = None

    @property
    def process(self) -> RunnerProcesses:
        """The running program."""
        if self._process is None:
            self._process = RunnerProcesses(self._program, self._question)
            self._end = weakref.finalize(self, self._process.close)
        return self._process

    @property
    def unsupported(self) -> frozenset[str]:
        """The fields of an outcome that the client has no place for."""
        return self.process.hello.unsupported

    def __call__(self) -> _PipedProbe:
        """A new probe."""
        return _PipedProbe(self)

    def close(self) -> None:
        """Ends the program; a later probe starts it again."""
        if self._end is not None:
            self._end()
        self._process = self._end = None


class _PipedProbe:
    """Collects what it is fed, and sends it at the end of the stream."""

    def __init__(self, piped: Piped) -> None:
        self._piped = piped
        self._tools: list[dict[str, Any]] = []
        self._feed: list[Any] = []

    def offer(self, tools: tuple[Tool, ...]) -> None:
        specs = (ToolSpec(str(tool), tool.description, tool.parameters) for tool in tools)
        self._tools = tools_json(tuple(specs))

    def feed(self, data: Any, event: str | None = None) -> None:
        """Keeps what is played, for the runner."""
        level = "bytes" if isinstance(data, bytes) else "payloads"
        if level != self._piped.level:
            raise ProbeError(
                f"the runner gets {self._piped.level}, and the kit plays {level}: give both the "
                f'same level, as in level = "{self._piped.level}" of a suite'
            )
        if isinstance(data, bytes):
            self._feed.append(b64encode(data).decode("ascii"))
        else:
            self._feed.append([event, data])

    def outcome(self) -> Outcome:
        message = {"case": "", "tools": self._tools, "feed": self._feed}
        answer = self._piped.process.submit(message).result()
        if answer.invalid:
            raise ProbeError(f"the answer of the runner is not valid: {answer.invalid}")
        return answer.outcome


def write_cases(
    cases: Iterable[Case], api: str, level: Level, stream: IO[bytes]
) -> tuple[int, list[str]]:
    """Writes what mockllm would send to a runner; ids count from 1 in the order of the cases.

    The plain forms of the cases are written, too: without them, it is not known what a quirk adds.

    Returns:
        The number of cases, and the names of those that show in bytes only and are left out.
    """
    stream.write(encode(question(api, level)))
    written, left_out = 0, []
    listed = list(cases)
    for number, case in enumerate((*listed, *plain_forms(listed)), 1):
        if level == "payloads" and case.events is None:
            left_out.append(case.name)
            continue
        stream.write(encode({"id": number, **case_json(case, level)}))
        written += 1
    return written, left_out


class AnswerFile:
    """A client whose answers are in a file: a hello, then one answer a line, in any order.

    An answer names its case by `case`, or by the `id` that `write_cases` gave to it.

    Args:
        cases: all cases, in the order in which they were written.

    Raises:
        UsageError: the file has a line that is no message, an answer to a case that there is not,
            or two answers to one.
    """

    remarks: Sequence[str] = ()
    window = 1

    def __init__(self, path: Path, cases: Iterable[Case], level: Level = "bytes") -> None:
        self.needs_events = level == "payloads"
        listed = list(cases)
        self._written = [*listed, *plain_forms(listed)]
        self._ids = {number: case.name for number, case in enumerate(self._written, 1)}
        self.answers: dict[str, Answer] = {}
        """By the name of the case."""
        self.hello = self._read_file(path)

    @property
    def missing(self) -> tuple[str, ...]:
        """The names of the cases that were written and have no answer. They are not judged."""
        written = (
            case for case in self._written if not (self.needs_events and case.events is None)
        )
        return tuple(case.name for case in written if case.name not in self.answers)

    def submit(self, case: Case) -> Future[Answer]:
        done: Future[Answer] = Future()
        # Forms that were not written help to attribute a mistake; it is one whatever they show.
        done.set_result(self.answers.get(case.name) or Answer(case.expected))
        return done

    def requests_usage(self, case: Case) -> bool:
        """True: nothing is known of requests."""
        return True

    def close(self) -> None:
        """Does nothing: nothing was started."""

    def _read_file(self, path: Path) -> Hello:
        hello: Hello | None = None
        with path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                if not line.strip():
                    continue
                try:
                    if hello is None:
                        hello = read_hello(parse(line))
                    else:
                        self._add(line)
                except InvalidMessageError as error:
                    raise UsageError(f"{path}:{number}: {error}") from None
        if hello is None:
            raise UsageError(f"{path}: the first line must be the hello of the runner")
        return hello

    def _add(self, line: bytes) -> None:
        value = parse(line)
        named, id = value.pop("case", None), sent_id(value)
        name = self._ids.get(id, "") if named is None else str(named)
        if name not in self._ids.values():
            raise InvalidMessageError(
                f"id: {value.get('id')!r:.80} is none of the {len(self._ids)} cases; judge with "
                "the arguments that the cases were written with"
            )
        if name in self.answers:
            raise InvalidMessageError(f"id: there are two answers to {name}")
        self.answers[name] = valid_answer(value)
