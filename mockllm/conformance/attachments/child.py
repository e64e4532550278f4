"""A program that is started as the first of its own session, is written to, and is ended whole."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from queue import SimpleQueue
from typing import IO

END_LIMIT = 2.0
"""Seconds that a program has to end by itself at the end of its standard input."""


def spawn(
    command: Sequence[str],
    *,
    reads: bool = True,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> subprocess.Popen[bytes]:
    """Starts the user's program; its standard error is that of this process."""
    return subprocess.Popen(  # noqa: S603  the user's own command
        list(command),
        stdin=subprocess.PIPE if reads else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        cwd=cwd,
        env=None if env is None else dict(env),
        start_new_session=True,  # what it starts itself is ended with it
    )


def end_process(process: subprocess.Popen[bytes], *, at_once: bool = False) -> int:
    """Ends a program that `spawn` started, and what it has started.

    Args:
        at_once: do not wait for it to end by itself at the end of its standard input.
    """
    try:
        return process.wait(0 if at_once else END_LIMIT)
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


class PipeWriter:
    """Writes to a pipe in a thread: a program that does not read must not block anything else."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._queue: SimpleQueue[bytes | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="mockllm-writer", daemon=True)
        self._thread.start()

    def write(self, data: bytes) -> None:
        """Writes after what was written before; what a program that has ended misses is lost."""
        self._queue.put(data)

    def close(self) -> None:
        """Closes the pipe after what was written."""
        self._queue.put(None)

    def end_of(self, process: subprocess.Popen[bytes], *, at_once: bool = False) -> int:
        """Closes the pipe after what was written, and ends the process; returns its exit code."""
        self.close()
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
