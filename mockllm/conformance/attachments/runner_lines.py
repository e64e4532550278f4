"""A runner whose lines are read one at a time, as its mistakes show."""

from __future__ import annotations

import subprocess
import threading
from queue import Empty, SimpleQueue
from typing import Any, Self

from mockllm.conformance.attachments.child import PipeWriter
from mockllm.conformance.attachments.messages import Hello, InvalidMessageError, parse


class SilentError(EOFError):
    """Nothing came in time."""


class RunnerLines:
    """A runner, line by line; it is ended where its context is left.

    Args:
        hello: what it says of its client; None until that is there.
    """

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        self.hello: Hello | None = None
        self._process, self._writer = process, PipeWriter(process.stdin)
        self._lines: SimpleQueue[bytes] = SimpleQueue()
        self.write = self._writer.write
        self.close_input = self._writer.close
        threading.Thread(target=self._read, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end(at_once=True)

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as stdout:
            for line in stdout:
                self._lines.put(line)
        self._lines.put(b"")

    def line(self, seconds: float) -> bytes:
        """The next line.

        Raises:
            SilentError: nothing came in time.
            EOFError: the program has ended; the text says with which exit code.
        """
        try:
            line = self._lines.get(timeout=max(seconds, 0))
        except Empty:
            raise SilentError(f"nothing came for {seconds:.3g} s") from None
        if not line:
            self._lines.put(line)
            raise EOFError(f"the program has ended with exit code {self._process.wait()}")
        return line

    def held_back(self, seconds: float) -> bytes:
        """The first line that a silent runner writes once its input has ended; empty for none."""
        self.close_input()
        try:
            return self.line(seconds)
        except EOFError:
            return b""

    def end(self, *, at_once: bool = False) -> int:
        """Ends the input of the runner, and the runner if it goes on; its exit code."""
        return self._writer.end_of(self._process, at_once=at_once)


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
