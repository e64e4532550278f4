"""Cases as a file and answers as a file, for runners that no command line can start: a browser, a
phone, an embedded target.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import IO

from mockllm.checking.cases.case import Case
from mockllm.checking.cases.compile import plain_forms
from mockllm.conformance.attachments.messages import (
    Answer,
    Hello,
    InvalidMessageError,
    case_json,
    encode,
    parse,
    question,
    read_answer,
    read_hello,
    sent_id,
)
from mockllm.conformance.attachments.process import no_answer
from mockllm.conformance.attachments.runner import Level
from mockllm.conformance.case_names import name_of
from mockllm.errors import UsageError


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
        self._names = {name_of(case): case.name for case in self._written}
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
        name = self._ids.get(id) if named is None else self._names.get(str(named))
        if name is None:
            raise InvalidMessageError(
                f"id: {value.get('id')!r:.80} is none of the {len(self._names)} cases; judge with "
                "the arguments that the cases were written with"
            )
        if name in self.answers:
            raise InvalidMessageError(f"id: there are two answers to {name}")
        try:
            self.answers[name] = read_answer(value)
        except InvalidMessageError as error:  # of one case, as over a pipe
            broken = f"the answer of the runner is not valid: {error}"
            self.answers[name] = replace(no_answer(broken), ended="", invalid=str(error))
