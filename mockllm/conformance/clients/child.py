"""Programs that are started as the first of a session of their own, and ended with all that they
have started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue

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


class Child:
    """A program that answers lines with lines: one thread writes to it, so that a program that does
    not read blocks nothing else, and one reads what it writes.

    Args:
        receive: gets each line but the first one, and None at the end of the output, in a thread.

    Raises:
        OSError: the program cannot be started.
    """

    def __init__(
        self,
        command: Sequence[str],
        receive: Callable[[Child, bytes | None], None],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self._process = spawn(command, cwd=cwd, env=env)
        self._receive = receive
        self._first: SimpleQueue[bytes] = SimpleQueue()
        self._unwritten: SimpleQueue[bytes | None] = SimpleQueue()
        for work in (self._write_all, self._read_all):
            threading.Thread(target=work, name="mockllm-runner-pipe", daemon=True).start()

    def write(self, data: bytes) -> None:
        """Writes after what was written before; what a program that has ended misses is lost."""
        self._unwritten.put(data)

    def close_input(self) -> None:
        """Closes its input after what was written."""
        self._unwritten.put(None)

    def first_line(self, seconds: float) -> bytes:
        """The first line; b"" where the program ended before it.

        Raises:
            Empty: it did not come in time.
        """
        return self._first.get(timeout=seconds)

    def end(self, *, at_once: bool = False) -> int:
        """Closes the input after what was written, and ends the program; its exit code."""
        self.close_input()
        return end_process(self._process, at_once=at_once)

    def _write_all(self) -> None:
        assert self._process.stdin is not None
        stream = self._process.stdin
        # OSError: the process has ended; its output ends, too, and is noticed there.
        with suppress(OSError), stream:
            while (data := self._unwritten.get()) is not None:
                stream.write(data)
                if self._unwritten.empty():
                    stream.flush()

    def _read_all(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as stdout:
            self._first.put(stdout.readline())
            for line in stdout:
                self._receive(self, line)
        self._receive(self, None)
