"""A `Writer` in a process of its own, so that it does not share the interpreter with the streams of
the server: groups of exchanges go there, and the result of each comes back."""

from __future__ import annotations

import gc
import json
import os
import pickle
import signal
import subprocess
import sys
from contextlib import suppress
from typing import Any

from mockllm.core.errors import ScenarioError
from mockllm.serve.server.recording.writer import Group, GroupResult, Writer, WriterSetup, obstacle

_START = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
_START += "from mockllm.serve.server.recording.writer_process import main; main()"
_COLLECTION = 50_000
"""New objects after which garbage is looked for. An answer has tens of thousands that all stay."""


class WriterEndedError(Exception):
    """The process ended before it was closed.

    Args:
        status: its exit status; negative for a signal.
    """

    def __init__(self, status: int) -> None:
        super().__init__(f"the process that writes recordings ended with status {status}")


class WriterProcess:
    """Hands exchanges to a writer in another process. Where this process ends without `close`, the
    other one finishes the exchanges that it has, and ends too.

    Raises:
        OSError: no process can be started.
    """

    def __init__(self, setup: WriterSetup) -> None:
        self._process = _start_process()
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        self._stdin, self._stdout = stdin, stdout
        with suppress(BrokenPipeError):  # it has ended at once, which `write` reports
            pickle.dump(setup, stdin, pickle.HIGHEST_PROTOCOL)
            stdin.flush()

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def write(self, group: Group) -> GroupResult:
        """As `Writer.write`.

        Raises:
            WriterEndedError: the process has ended, and what became of the group is not known.
        """
        try:
            pickle.dump(group, self._stdin, pickle.HIGHEST_PROTOCOL)
            self._stdin.flush()
            result: GroupResult = pickle.load(self._stdout)  # noqa: S301  written by this package
        except (OSError, EOFError, pickle.UnpicklingError):
            raise WriterEndedError(self._wait_for_end()) from None
        return result

    def close(self) -> None:
        """Waits for the end of the process."""
        self._wait_for_end()

    def _wait_for_end(self) -> int:
        """Waits for the end of the process, which the end of its input is; its exit status."""
        with suppress(OSError):  # nothing can be flushed to a process that has ended
            self._stdin.close()
        self._stdout.close()
        return self._process.wait()

    def kill(self) -> None:
        """Ends the process at once."""
        self._process.kill()


def _start_process() -> subprocess.Popen[bytes]:
    """The process, with this one's search path; a key that interrupts this one must not end it."""
    if not sys.executable:
        raise OSError("this interpreter does not know its own path")
    own_group: dict[str, Any] = {"start_new_session": True}
    if sys.platform == "win32":
        own_group = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
    return subprocess.Popen(  # noqa: S603  this interpreter
        [sys.executable, "-c", _START, json.dumps(sys.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        **own_group,
    )


def main() -> None:
    """The other process: writes the groups of standard input, with results on standard output."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.set_threshold(_COLLECTION)
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not get between the results
    try:
        setup = pickle.load(sys.stdin.buffer)  # noqa: S301  written by this package
        writer = _writer(setup)  # before there is anything to write: its imports take a while
        while True:
            group = pickle.load(sys.stdin.buffer)  # noqa: S301
            if not isinstance(writer, Writer):
                writer = _writer(setup)
            result = writer.write(group) if isinstance(writer, Writer) else writer
            pickle.dump(result, out, pickle.HIGHEST_PROTOCOL)
            out.flush()
    except (EOFError, pickle.UnpicklingError, BrokenPipeError):
        os._exit(0)  # the server has closed its end, or was killed


def _writer(setup: WriterSetup) -> Writer | GroupResult:
    try:
        return Writer(setup)
    except (OSError, ScenarioError) as error:
        return GroupResult(0, obstacle=obstacle(error))
