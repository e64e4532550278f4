"""The mistakes of a runner, as a program that speaks the protocol; its client is not judged."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import count, islice
from pathlib import Path
from typing import Any

from mockllm.checking.cases.compile import plain_cases
from mockllm.checking.outcome import FIELDS
from mockllm.conformance.clients.child import END_LIMIT
from mockllm.conformance.clients.http_sessions import CaseSession
from mockllm.conformance.clients.messages import (
    InvalidMessageError,
    case_json,
    encode,
    question,
    read_answer,
    read_hello,
    sent_id,
)
from mockllm.conformance.clients.runner_lines import (
    WRITE_UTF_8,
    EncodingError,
    RunnerLines,
    SilentError,
    parsed_line,
)
from mockllm.core import documentation
from mockllm.core.text import shorten
from mockllm.play.quirks.samples import SAMPLES, TEXT
from mockllm.scenario.model import Scenario
from mockllm.scenario.part_model import TextPart
from mockllm.serve.server.options import ServerOptions
from mockllm.serve.server.thread import ServerThread

_WIDEST = 300
_MOST = 10
"""Problems; a runner that prints without end has no end of them."""

_IDS = (7, 3, 4_000_000_011, 5, 11, 2)
"""Ids in no order, and one that needs more than 32 bits. The last case is that before it again, for
a process that gets nothing else."""

_TEXT = "Gr\u00fc\u00dfe, \u65e5\u672c, \U0001f642"
"""A text that only UTF-8 and UTF-16 have all characters of."""

_GARBLED = (
    _TEXT.encode().decode("latin-1"),
    _TEXT.encode().decode("cp1252", "replace"),
    _TEXT.encode().decode("ascii", "replace"),
    _TEXT.encode("ascii", "replace").decode(),
    _TEXT.encode("latin-1", "replace").decode("latin-1"),
)
"""What it becomes where it is read or written in another encoding."""


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
    start_limit: float | None = None,
    end_limit: float = END_LIMIT,
    cwd: Path | None = None,
) -> list[RunnerProblem]:
    """The problems of a runner, each once; empty if it speaks the protocol.

    Args:
        limit: seconds for all answers, and for the hello if `start_limit` is None.
        end_limit: seconds in which a silent runner may write what it holds back, once its input
            has ended.
    """
    limits = _Limits(limit if start_limit is None else start_limit, limit, end_limit)
    start = partial(RunnerLines, command, cwd)
    with ExitStack() as stack:
        messages = _messages(api, level, limit, stack)
        try:
            runner = stack.enter_context(start())
        except OSError as error:
            problem = f"the program cannot be started: {error.strerror or error}"
            advice = "The command after `--` must be a program that can be found."
            return [RunnerProblem(problem, advice)]
        first, answers = question(api, level), dict[int, tuple[dict[str, Any], bytes]]()
        *cases, alone = messages
        found = list(islice(_problems(runner, first, cases, answers, limits), _MOST))
        if cases[-1]["id"] in answers:
            before = answers[cases[-1]["id"]]
            other = stack.enter_context(start())
            found += _problems_of_state(other, first, alone, before, limits)
        if runner.hello is not None:
            for unknown in (question(_UNKNOWN, level), question(api, _UNKNOWN)):
                found += _problems_of_refusal(stack.enter_context(start()), unknown, limits)
        return list({wrong.problem: wrong for wrong in reversed(found)}.values())[::-1]


_UNKNOWN = "self-test"
"""An API and a level that no runner has."""


@dataclass(frozen=True, slots=True)
class _Limits:
    """Seconds for the hello, for all answers, and at the end of the input."""

    hello: float
    answers: float
    end: float


def _messages(api: str, level: str, limit: float, stack: ExitStack) -> list[dict[str, Any]]:
    """A few cases of different kinds, with a field that version 1 does not have."""
    samples = [sample for sample in SAMPLES.values() if sample.plays_over(api)][: len(_IDS) - 2]
    cases = list(plain_cases([*samples, _beyond_ascii(), _beyond_ascii()], api))
    if level == "http":
        server = stack.enter_context(ServerThread([], ServerOptions(speed=0)))
        numbers = count(1)
        bodies = [CaseSession(server, case, numbers, limit).open() for case in cases]
    else:
        bodies = [case_json(case, level) for case in cases]
    return [
        {"id": id, **body, "later_version": None} for id, body in zip(_IDS, bodies, strict=False)
    ]


def _beyond_ascii() -> Scenario:
    """An answer with a text that is not ASCII."""
    turn = replace(TEXT.turns[0], reply=(TextPart(_TEXT),))
    return replace(TEXT, name="sample-text-beyond-ascii", turns=(turn,))


def _problems(
    runner: RunnerLines,
    first: Mapping[str, Any],
    messages: Sequence[dict[str, Any]],
    answers: dict[int, tuple[dict[str, Any], bytes]],
    limits: _Limits,
) -> Iterator[RunnerProblem]:
    hello = encode(first)
    runner.write(hello)
    line = b""
    try:
        line = runner.line(limits.hello)
        runner.hello = read_hello(parsed_line(line))
    except EncodingError as error:
        yield RunnerProblem(str(error), WRITE_UTF_8, hello, line)
    except SilentError as error:
        yield _silence("there is no hello", error, hello, runner.held_back(limits.end))
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
        yield from _problems_of_answers(runner, waiting, answers, limits)
        if not waiting:
            yield from _problems_at_end(runner)


def _problems_of_state(
    runner: RunnerLines,
    first: Mapping[str, Any],
    alone: dict[str, Any],
    before: tuple[dict[str, Any], bytes],
    limits: _Limits,
) -> Iterator[RunnerProblem]:
    """Whether a case gets the answer that it got after others.

    Args:
        runner: a new one.
        before: the answer after others.
    """
    sent = encode(alone)
    runner.write(encode(first) + sent)
    try:
        read_hello(parsed_line(runner.line(limits.hello)))
        value = parsed_line(runner.line(limits.answers))
    except (EOFError, InvalidMessageError) as error:
        advice = "Answer each case with a line of its own, as soon as it is there."
        yield RunnerProblem(f"a case that comes alone gets no answer: {error}", advice, sent)
        return
    if _comparable(value) != _comparable(before[0]):
        problem = "a case gets another answer after other cases than alone: their state is left"
        advice = (
            "Make a new client for each case, and keep nothing in variables that outlive it. "
            f"Alone it is {shorten(encode(value).decode().rstrip(), _WIDEST)}"
        )
        yield RunnerProblem(problem, advice, sent, before[1])


def _comparable(answer: Mapping[str, Any]) -> dict[str, Any]:
    """The part that is the same in two answers to one case. A client may make up ids of calls, and
    where it fails, the message may name an address or a time."""
    found = {name: answer.get(name) for name in FIELDS}
    calls = answer.get("tool_calls")
    if isinstance(calls, list):
        found["tool_calls"] = [
            {name: part for name, part in call.items() if name != "id"}
            if isinstance(call, dict)
            else call
            for call in calls
        ]
    errors = answer.get("errors")
    return found | {"errors": len(errors) if isinstance(errors, list) else errors}


def _silence(what: str, error: SilentError, sent: bytes, line: bytes) -> RunnerProblem:
    """The problem of a runner from which nothing came in time.

    Args:
        line: what came once its input had ended.
    """
    if line:
        problem = f"{what}: {error}, and a line came when the input had ended"
        return RunnerProblem(problem, f"{_FLUSH} {_SLOW}", sent, line)
    return RunnerProblem(f"{what}: {error}", f"{_ANSWER} {_FLUSH} {_SLOW}", sent)


_ANSWER = "Read a line, and answer it with a line."
_FLUSH = (
    "The runner most likely does not flush standard output, so that its lines stay in a buffer. "
    "Flush after each line, such as print(..., flush=True), fflush(stdout) or System.out.flush()."
)
_SLOW = "A runner that only takes longer needs --limit SECONDS."


def _problems_of_refusal(
    runner: RunnerLines, first: Mapping[str, Any], limits: _Limits
) -> Iterator[RunnerProblem]:
    """Whether a runner refuses an API or a level that it cannot have."""
    sent, line = encode(first), b""
    runner.write(sent)
    runner.close_input()
    what = "API" if first["api"] == _UNKNOWN else "level"
    advice = (
        f"Compare the {what} of the first line with those that the client has; "
        "for any other one print the reason on standard error, and end with another "
        "exit code than 0, without a hello."
    )
    try:
        line = runner.line(limits.hello)
    except SilentError as error:
        problem = f"an unknown {what} is not refused: {error}"
    except EOFError:
        if runner.end() != 0:
            return
        problem = f"an unknown {what} is refused with exit code 0"
    else:
        problem = f"an unknown {what} is not refused: the runner accepts every {what}"
    yield RunnerProblem(problem, advice, sent, line)


def _problems_of_answers(
    runner: RunnerLines,
    waiting: dict[int, bytes],
    answers: dict[int, tuple[dict[str, Any], bytes]],
    limits: _Limits,
) -> Iterator[RunnerProblem]:
    """The problems of the answers to cases that are in flight at once; takes out those that came.

    Args:
        waiting: the cases by their ids.
        answers: those that came are added, each with its line.
    """
    runner.write(b"".join(waiting.values()))
    unknown = 0  # an answer with an id that was not sent is one of those that are missing
    until = time.monotonic() + limits.answers
    while len(waiting) > unknown:
        line = b""
        try:
            line = runner.line(until - time.monotonic())
            value = parsed_line(line)
        except EOFError as error:
            names, first = ", ".join(map(str, waiting)), next(iter(waiting.values()))
            what = f"there is no answer to the cases with the ids {names}"
            if isinstance(error, SilentError):
                yield _silence(what, error, first, runner.held_back(limits.end))
                return
            advice = "Answer each case with a line that has its id, whatever the client does."
            yield RunnerProblem(f"{what}: {error}", advice, first)
            return
        except EncodingError as error:
            yield RunnerProblem(str(error), WRITE_UTF_8, received=line)
            unknown += 1
            continue
        except InvalidMessageError as error:
            advice = (
                "Standard output is for answers alone; print everything else on standard error."
            )
            yield RunnerProblem(str(error), advice, received=line)
            continue
        id = sent_id(value)
        if id in waiting:
            yield from _problems_of_answer(runner, value, waiting.pop(id), line)
            answers[id] = value, line
            continue
        problem = "is answered twice" if id in answers else "was not sent"
        unknown += id not in answers
        advice = "Repeat the id of the case unchanged, as a number, once."
        yield RunnerProblem(f"the id {value.get('id')!r:.80} {problem}", advice, received=line)


def _problems_of_answer(
    runner: RunnerLines, value: Mapping[str, Any], sent: bytes, line: bytes
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
    assert runner.hello is not None
    for name in sorted(runner.hello.unsupported & value.keys()):
        problem = f"the hello says that the client has no place for {name}, and an answer has it"
        advice = f"Leave {name} out of all answers, or out of `unsupported`; then it is judged."
        yield RunnerProblem(problem, advice, sent, line)
    text = answer.outcome.text
    if any(garbled in text for garbled in _GARBLED):
        problem = f"the text {_TEXT!r} comes back as {shorten(text, _WIDEST)!r}"
        advice = f"Read and write UTF-8 everywhere. {WRITE_UTF_8}"
        yield RunnerProblem(problem, advice, sent, line)


def _problems_at_end(runner: RunnerLines) -> Iterator[RunnerProblem]:
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


_ADVICE = f"{documentation.page('runner-protocol')} and runner.schema.json describe every field."
