"""Runs a job beside the event loop: in a process of its own, or in threads.

A job gets messages in their order, and sends others back. In a process it does not share the
interpreter with the streams of the server, so that no stream waits for it.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from queue import SimpleQueue
from typing import Any, BinaryIO, Protocol

__all__ = ["Ended", "Factory", "Fault", "Job", "ProcessWorker", "ThreadWorker", "Worker"]


class Job(Protocol):
    """Does the work, one message after the other, in one thread."""

    def handle(self, message: Any) -> None:
        """Does what a message asks for."""

    def close(self) -> None:
        """Finishes all work; no message comes afterwards."""


Emit = Callable[[Any], None]
Factory = Callable[[Any, Emit], Job]
"""Makes a job from its argument, and from the function that sends a message back. For a process it
must be a function of a module, and argument and messages must be picklable."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A message could not be handled because of a fault of mockllm.

    Args:
        message: the one that was being handled; None for the end of the job.
        error: the type of the exception and its text.
    """

    message: Any
    error: str


@dataclass(frozen=True, slots=True)
class Ended:
    """A process ended before its job was closed.

    Args:
        status: its exit status; negative for a signal.
    """

    status: int


class Worker(Protocol):
    """Where a job runs."""

    def send(self, message: Any) -> None:
        """Hands a message to the job; does not wait."""

    async def close(self) -> None:
        """Waits until the job has handled every message and everything that it sent is received."""


_Receive = Callable[[Any], None]


def _in_loop(receive: _Receive) -> Emit:
    """What calls a function in the running event loop, from any thread."""
    loop = asyncio.get_running_loop()

    def emit(message: Any) -> None:
        loop.call_soon_threadsafe(receive, message)

    return emit


class _Runner:
    """Runs a job in a thread; an exception is sent back as a `Fault`."""

    def __init__(self, factory: Factory, argument: Any, emit: Emit) -> None:
        self._emit = emit
        self._job = factory(argument, emit)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="mockllm-job")

    def send(self, message: Any) -> None:
        done = self._thread.submit(self._job.handle, message)
        done.add_done_callback(partial(self._check, message))

    def close(self) -> None:
        self._thread.submit(self._job.close).add_done_callback(partial(self._check, None))
        self._thread.shutdown()

    def _check(self, message: Any, done: Future[None]) -> None:
        error = done.exception()
        if error is not None:
            self._emit(Fault(message, f"{type(error).__name__}: {error}"))


class ThreadWorker:
    """Runs a job in a thread of this process.

    Args:
        receive: called in the event loop with each message of the job, and with each `Fault`.

    Raises:
        Exception: what `factory` raises.
    """

    def __init__(self, factory: Factory, argument: Any, receive: _Receive) -> None:
        self._runner = _Runner(factory, argument, _in_loop(receive))

    def send(self, message: Any) -> None:
        """Hands a message to the job."""
        self._runner.send(message)

    async def close(self) -> None:
        """Waits for the job."""
        await asyncio.to_thread(self._runner.close)
        await asyncio.sleep(0)  # what the job sent last is received in the loop


_CLOSE = None
_START = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
_START += "from mockllm.server.recording.worker import main; main()"


class ProcessWorker:
    """Runs a job in a process of its own.

    Where this process ends without `close`, the other one ends at once, too.

    Args:
        receive: called in the event loop with each message of the job, with each `Fault`, and with
            `Ended` if the process ends early.

    Raises:
        OSError: no process can be started.
    """

    def __init__(self, factory: Factory, argument: Any, receive: _Receive) -> None:
        self._receive = _in_loop(receive)
        self._process = _started()
        self._closed = False
        self._queue: SimpleQueue[Any] = SimpleQueue()
        self._queue.put((factory, argument))
        self._threads = [
            threading.Thread(target=target, name=f"mockllm-{name}", daemon=True)
            for name, target in (("sending", self._send), ("receiving", self._read))
        ]
        for thread in self._threads:
            thread.start()

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def send(self, message: Any) -> None:
        """Hands a message to the job."""
        self._queue.put(message)

    async def close(self) -> None:
        """Waits for the job, and for the end of its process."""
        self._closed = True
        self._queue.put(_CLOSE)
        try:
            await asyncio.to_thread(self._join)
        except asyncio.CancelledError:  # no one waits any more, so nothing may keep this process
            self._process.kill()
            raise
        await asyncio.sleep(0)  # what the job sent last is received in the loop

    def _join(self) -> None:
        for thread in self._threads:
            thread.join()

    def _send(self) -> None:
        stream = self._process.stdin
        assert stream is not None
        try:
            while True:
                message = self._queue.get()
                pickle.dump(message, stream, pickle.HIGHEST_PROTOCOL)
                if self._queue.empty():
                    stream.flush()
                if message is _CLOSE:
                    break
            stream.close()
        except OSError:  # the process has ended; `_read` reports it
            _close(stream)

    def _read(self) -> None:
        stream = self._process.stdout
        assert stream is not None
        finished = False
        for message in _messages(stream):
            finished = message is _CLOSE
            if not finished:
                self._receive(message)
        _close(stream)
        status = self._process.wait()
        if not finished:
            self._queue.put(_CLOSE)
            self._receive(Ended(status))


def _started() -> subprocess.Popen[bytes]:
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


def _close(stream: BinaryIO | Any) -> None:
    try:
        stream.close()
    except OSError:  # it cannot be flushed to a process that has ended
        return


def _messages(stream: BinaryIO | Any) -> Iterator[Any]:
    """The messages of a stream, up to its end; one that is cut is none."""
    while True:
        try:
            yield pickle.load(stream)  # noqa: S301  written by this package
        except (EOFError, pickle.UnpicklingError):
            return


# The other process


_SWITCH = 0.0005
"""Seconds after which a thread that computes gives way. An exchange that ends waits for another one
that is being drafted no longer than that, each time it needs the interpreter."""


_COLLECTION = 50_000
"""New objects after which garbage is looked for. An answer has tens of thousands that all stay."""


def main() -> None:
    """Runs the job that standard input names; what it sends goes to standard output."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.setswitchinterval(_SWITCH)
    gc.set_threshold(_COLLECTION)
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not get between the messages
    lock = threading.Lock()

    def emit(message: Any) -> None:
        data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
        with lock:
            out.write(data)
            out.flush()

    messages = _messages(sys.stdin.buffer)
    first = next(messages, None)
    if first is None:
        return
    factory, argument = first
    runner = _Runner(factory, argument, emit)
    for message in messages:
        if message is _CLOSE:
            runner.close()
            emit(_CLOSE)
            return
        runner.send(message)
    os._exit(1)  # the server was killed: another recorder finishes what is put aside
