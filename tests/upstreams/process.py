"""A service in a process of its own, which prints its URL."""

from __future__ import annotations

import os
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from mockllm.wire.protocols.environment import proxy_exemptions

ROOT = Path(__file__).parents[2]
_GIVE_UP = 240.0
"""Seconds until the first line, after which the process is killed."""


class Service:
    """Runs while the `with` block lasts, or until `stop`.

    The program chooses a port, prints its URL as the first line, and ends when its standard input
    ends.
    """

    def __init__(self, command: Sequence[str | Path]) -> None:
        self._command = [str(part) for part in command]
        self.url = ""

    def __enter__(self) -> Self:
        self._errors = tempfile.TemporaryFile("w+")  # closed by `stop`
        self._process = subprocess.Popen(
            self._command,
            cwd=ROOT,
            env={**os.environ, **proxy_exemptions(os.environ)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )
        watchdog = threading.Timer(_GIVE_UP, self._process.kill)
        watchdog.start()
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().strip()
        watchdog.cancel()
        if not self.url:
            self._errors.seek(0)
            errors = self._errors.read()[-2000:]
            self.stop()
            raise RuntimeError(f"{self._command[-1]} printed no URL: {errors}")
        return self

    def stop(self) -> None:
        """Kills the process."""
        with self._process as process:
            process.kill()
        self._errors.close()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
