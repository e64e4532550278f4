"""Processes that tests wait for by their output, and kill."""

from __future__ import annotations

import random
import signal
import socket
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path

from tests.timeouts import GIVE_UP

_PORTS = range(12_000, 32_000)
"""Below those that systems give to clients: no connection of another process takes one of these
while its server is down."""


def free_ports(count: int) -> list[int]:
    """Different ports of loopback on which nothing listens."""
    found: list[int] = []
    for port in random.sample(_PORTS, len(_PORTS)):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        found.append(port)
        if len(found) == count:
            break
    return found


class Process:
    """A child whose output is read line by line.

    Args:
        ready: a part of the line by which it shows that it serves.
    """

    def __init__(self, command: Sequence[str | Path], folder: Path, ready: str) -> None:
        self._ready = ready
        self._lines: list[str] = []
        self._changed = threading.Condition()
        self._over = False
        self._child = subprocess.Popen(
            [str(word) for word in command],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._child.stdout is not None
        for line in self._child.stdout:
            with self._changed:
                self._lines.append(line)
                self._changed.notify_all()
        with self._changed:
            self._over = True
            self._changed.notify_all()

    @property
    def output(self) -> str:
        """Everything that it printed."""
        with self._changed:
            return "".join(self._lines)

    @property
    def is_alive(self) -> bool:
        """Whether it has not ended."""
        return self._child.poll() is None

    def wait_for(self, text: str) -> None:
        """Waits until a line with a text was printed."""

        def is_there() -> bool:
            return self._over or any(text in line for line in self._lines)

        with self._changed:
            in_time = self._changed.wait_for(is_there, GIVE_UP)
            found = any(text in line for line in self._lines)
        assert in_time, f"no line with {text!r} in time:\n{self.output}"
        assert found, f"it ended without a line with {text!r}:\n{self.output}"

    def wait_until_ready(self) -> Process:
        """Waits until it serves."""
        self.wait_for(self._ready)
        return self

    def kill(self) -> None:
        """kill -9: it can write nothing any more."""
        self._child.kill()
        self._end()

    def stop(self) -> int:
        """SIGTERM; the exit code. A process that does not end is killed, which is an error."""
        if self._child.poll() is None:
            self._child.send_signal(signal.SIGTERM)
            try:
                self._child.wait(GIVE_UP)
            except subprocess.TimeoutExpired:
                self.kill()
                raise AssertionError(f"it did not end after SIGTERM:\n{self.output}") from None
        self._end()
        return self._child.returncode

    def _end(self) -> None:
        self._child.wait(GIVE_UP)
        self._reader.join(GIVE_UP)
        if self._child.stdout is not None:
            self._child.stdout.close()
