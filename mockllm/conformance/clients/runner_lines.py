"""A runner whose lines are read one at a time, as its mistakes show."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Self

from mockllm.conformance.clients.child import Child
from mockllm.conformance.clients.messages import Hello, InvalidMessageError, parse


class SilentError(EOFError):
    """Nothing came in time."""


class RunnerLines:
    """A runner, line by line; it is ended where its context is left.

    Args:
        hello: what it says of its client; None until that is there.
    """

    def __init__(self, command: Sequence[str], cwd: Path | None = None) -> None:
        self.hello: Hello | None = None
        self._lines: SimpleQueue[bytes] = SimpleQueue()
        self._child = Child(command, lambda _, line: self._lines.put(line or b""), cwd=cwd)
        self._has_begun = False
        self.write, self.end = self._child.write, self._child.end
        self.close_input = self._child.close_input

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end(at_once=True)

    def line(self, seconds: float) -> bytes:
        """The next line.

        Raises:
            SilentError: nothing came in time.
            EOFError: the program has ended; the text says with which exit code.
        """
        seconds = max(seconds, 0)
        try:
            begun = self._has_begun
            line = self._lines.get(timeout=seconds) if begun else self._child.first_line(seconds)
        except Empty:
            raise SilentError(f"nothing came for {seconds:.3g} s") from None
        self._has_begun = True
        if not line:
            self._lines.put(line)
            raise EOFError(f"the program has ended with exit code {self.end()}")
        return line

    def held_back(self, seconds: float) -> bytes:
        """The first line that a silent runner writes once its input has ended; empty for none."""
        self.close_input()
        try:
            return self.line(seconds)
        except EOFError:
            return b""


class EncodingError(InvalidMessageError):
    """A line is not UTF-8."""


WRITE_UTF_8 = (
    "Write standard output as UTF-8, whatever the locale of the machine is (Python: "
    'sys.stdout.reconfigure(encoding="utf-8")), or escape all that is not ASCII in the JSON.'
)


def parsed_line(line: bytes) -> dict[str, Any]:
    """The object of a line.

    Raises:
        EncodingError: it is not UTF-8.
        InvalidMessageError: it is no JSON object.
    """
    try:
        line.decode()
    except UnicodeDecodeError as error:
        raise EncodingError(f"a line is not UTF-8: {error.reason} at byte {error.start}") from None
    if b"\0" in line:
        raise EncodingError("a line is not UTF-8, but UTF-16 or UTF-32")
    return parse(line)
