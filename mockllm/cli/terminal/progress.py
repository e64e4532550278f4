"""Progress of a command that takes long, on standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from mockllm.core.text import printable

_REFRESH = 0.1
_INTERVAL = 10.0
_TERMINAL_WIDTH = 79


class ProgressLine:
    """Shows progress: on a terminal one line that changes, elsewhere a line every ten seconds, so
    that the logs of a quick run have none.

    Args:
        clock: seconds, from any start.
    """

    def __init__(self, out: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._out = out
        self._clock = clock
        self._terminal = out.isatty()
        self._due = clock() + (0.0 if self._terminal else _INTERVAL)
        self._shown = ""

    def __call__(self, what: str, done: int, total: int) -> None:
        """Shows how much is done, if the last time is long enough ago."""
        now = self._clock()
        if now < self._due:
            return
        self._due = now + (_REFRESH if self._terminal else _INTERVAL)
        text = printable(f"mockllm: {done:,} of {total:,} {what}")
        if self._terminal:
            self._rewrite(text[:_TERMINAL_WIDTH])
        else:
            self._out.write(f"{text}\n")
            self._out.flush()

    def close(self) -> None:
        if self._shown:
            self._rewrite("")
            self._out.write("\r")
            self._out.flush()

    def _rewrite(self, text: str) -> None:
        self._out.write(f"\r{text.ljust(len(self._shown))}")
        self._out.flush()
        self._shown = text


@contextmanager
def progress_line() -> Iterator[ProgressLine]:
    """A line on standard error while the block runs."""
    line = ProgressLine(sys.stderr)
    try:
        yield line
    finally:
        line.close()
