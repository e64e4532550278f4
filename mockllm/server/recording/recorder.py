"""Records the exchanges of a server: hands them to a job that redacts and writes them, chunk by
chunk as they arrive, so that the end of an answer waits for little.

The job runs in a process of its own or in threads (`worker`, `recording_job`).
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import count
from typing import TYPE_CHECKING, Any

from mockllm.core.timed_bytes import TimedBytes
from mockllm.protocols import PROTOCOLS
from mockllm.recording.drafting.drafts import Line, MatchRule
from mockllm.recording.store.folder import Folder
from mockllm.recording.store.pending import Pending
from mockllm.redaction.redact import Rules
from mockllm.scenario.model import Scenario
from mockllm.server.recording.recording_job import recording_job
from mockllm.server.recording.recording_messages import (
    Add,
    Begin,
    Consumed,
    Drop,
    End,
    Reported,
    Saved,
    ScenariosWritten,
    Setup,
    Waiting,
)
from mockllm.server.recording.worker import Ended, Fault, ProcessWorker, ThreadWorker, Worker
from mockllm.tapes.captured import Captured

if TYPE_CHECKING:
    from mockllm.server.options import RecordOptions

__all__ = ["Recorder", "Recording", "Written"]

Written = Callable[[tuple[Scenario, ...]], Callable[[], None]]

_BATCH = 0.002
"""Seconds that chunks wait for others: a message for each chunk would cost more than its search."""
_BATCH_SIZE = 1 << 14
_MOST_WAITING = 0.005
"""Seconds of work of one stream that may wait for the job; after that the stream waits. It bounds
the memory, and the time that the end of any answer waits for what came before."""
_LEAST, _MOST = 1 << 15, 1 << 20
"""In bytes, whatever the job can do in that time."""


class Recorder:
    """Writes exchanges as scenarios, one after the other, in the order in which they ended.

    Args:
        options: the folder, what is secret, and where the work is done.
        listener: called in a thread with all scenarios of the folder after each change; the
            function that it returns is called in the event loop.
        reserved: the names of the scenarios that are served beside those of the folder.

    Raises:
        ScenarioError: the folder has scenarios that cannot be loaded.
        OSError: the folder cannot be written to.
    """

    def __init__(
        self,
        options: RecordOptions,
        listener: Written | None = None,
        reserved: Iterable[str] = (),
    ) -> None:
        known = Folder(options.folder).scenarios()
        self.was_empty = not known
        self._scenarios = {scenario.name: scenario for scenario in known}
        self._report = options.report
        self._report_waiting = options.waiting
        self._listener = listener
        self._setup = Setup(
            options.folder,
            options.rules or Rules(),
            options.match or MatchRule(),
            options.mode == "all",
            frozenset({*reserved} - self._scenarios.keys()),
            sends_scenarios=listener is not None,
        )
        self._loop = asyncio.get_running_loop()
        self._indexing = ThreadPoolExecutor(1, thread_name_prefix="mockllm-indexing")
        self._is_indexing = self._to_index = False
        self._keys = count()
        self._open: dict[int, Recording] = {}
        self._batch: list[tuple[int, int, bytes]] = []
        self._batch_size = 0
        self._timer: asyncio.TimerHandle | None = None
        self.most_waiting = _LEAST
        """Bytes of one exchange that may wait for the job."""
        self._worker: Worker = self._started(apart=options.apart)

    def begin(self, head: Captured) -> Recording:
        """Begins to record an exchange.

        Args:
            head: all that is known of it before the body of its answer.
        """
        key = next(self._keys)
        recording = self._open[key] = Recording(self, key, head.source)
        self._send(Begin(key, head))
        return recording

    def skip(self, source: str, reason: str) -> None:
        """Reports an exchange that is not recorded."""
        self._report_lines([Line(source, "skipped", reason)])

    async def close(self) -> None:
        """Waits until every exchange that was handed over has been written."""
        self._flush()
        await self._worker.close()
        await asyncio.to_thread(self._indexing.shutdown)
        await asyncio.sleep(0)

    # The worker

    def _started(self, *, apart: bool) -> Worker:
        if not apart or not _same_protocols():
            return ThreadWorker(recording_job, self._setup, self._receive)
        Pending(self._setup.folder).close()  # a folder that cannot be written to is found here
        try:
            return ProcessWorker(recording_job, self._setup, self._receive)
        except OSError as error:
            _log(f"no process can be started ({error}); recordings are written in a thread")
            return ThreadWorker(recording_job, self._setup, self._receive)

    def _send(self, message: Any) -> None:
        self._flush()
        self._worker.send(message)

    def _flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._batch:
            self._worker.send(Add(tuple(self._batch)))
            self._batch = []
            self._batch_size = 0

    def _receive(self, message: Any) -> None:
        match message:
            case Consumed(sizes, seconds):
                self._is_consumed(sizes, seconds)
            case Saved(key):
                self._is_saved(key)
            case Reported(lines):
                self._report_lines(lines)
            case ScenariosWritten(scenarios):
                self._scenarios |= {scenario.name: scenario for scenario in scenarios}
                self._index()
            case Waiting(waiting, closing):
                if self._report_waiting is not None:
                    self._report_waiting(waiting, closing)
            case Fault(of, error):
                self._report_lines([Line(self._source(of), "skipped", _fault(error), lost=True)])
            case Ended(status):
                self._replace_worker(status)

    def _source(self, of: Any) -> str:
        """The exchange that a message is about."""
        match of:
            case str():
                return of
            case Begin(key) | End(key):
                return self._open[key].source if key in self._open else ""
        return ""

    def _is_consumed(self, sizes: Mapping[int, int], seconds: float) -> None:
        size = sum(sizes.values())
        if size > _LEAST // 4 and seconds > 0:
            possible = int(size / seconds * _MOST_WAITING)
            self.most_waiting = max(_LEAST, min(_MOST, (possible + self.most_waiting) // 2))
        for key, consumed in sizes.items():
            if key in self._open:
                self._open[key].consumed(consumed)

    def _is_saved(self, key: int) -> None:
        recording = self._open.pop(key, None)
        if recording is not None:
            recording.over()

    def _index(self) -> None:
        """Hands all scenarios to the listener, once at a time: what is written while it works on
        some is handed over with the next ones."""
        if self._listener is None:
            return
        self._to_index = True
        if self._is_indexing:
            return
        self._to_index, self._is_indexing = False, True
        done = self._indexing.submit(self._listener, tuple(self._scenarios.values()))
        done.add_done_callback(lambda swap: self._loop.call_soon_threadsafe(self._indexed, swap))

    def _indexed(self, swap: Future[Callable[[], None]]) -> None:
        self._is_indexing = False
        swap.result()()
        if self._to_index:
            self._index()

    def _replace_worker(self, status: int) -> None:
        """Goes on in threads after the process has ended early. What it had put aside is written;
        what it was reading is lost, and reported."""
        reason = f"the process that writes recordings ended with status {status}"
        _log(f"{reason}; recordings are written in a thread from now on")
        for key, recording in tuple(self._open.items()):
            self._report_lines([Line(recording.source, "skipped", reason, lost=True)])
            self._is_saved(key)
        self._worker = ThreadWorker(recording_job, self._setup, self._receive)

    def _report_lines(self, lines: Iterable[Line]) -> None:
        if self._report is not None:
            for line in lines:
                self._report(line)

    # For `Recording`

    def add(self, key: int, chunk: TimedBytes) -> None:
        """Hands a chunk over, together with others."""
        self._batch.append((key, chunk.at, chunk.data))
        self._batch_size += len(chunk.data)
        if self._batch_size >= _BATCH_SIZE:
            self._flush()
        elif self._timer is None:
            self._timer = self._loop.call_later(_BATCH, self._flush)

    def end(self, key: int, whole: Captured) -> None:
        """Hands the rest of an exchange over."""
        self._send(End(key, whole))

    def drop(self, key: int) -> None:
        """Forgets an exchange."""
        self._is_saved(key)
        self._send(Drop(key))


class Recording:
    """One exchange that is being recorded.

    Args:
        source: the exchange, for messages.
    """

    def __init__(self, recorder: Recorder, key: int, source: str) -> None:
        self.source = source
        self._recorder = recorder
        self._key = key
        self._over = False
        self._waiting = 0
        self._room = asyncio.Event()
        self._saved: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def add(self, chunk: TimedBytes) -> None:
        """Adds a chunk of the answer's body."""
        if not self._over:
            self._waiting += len(chunk.data)
            self._recorder.add(self._key, chunk)

    async def room(self) -> None:
        """Waits while too much of it is still to be searched, so that the backlog is bounded."""
        while self._waiting > self._recorder.most_waiting and not self._over:
            self._room.clear()
            await self._room.wait()

    def end(self, whole: Captured) -> asyncio.Future[None]:
        """Hands over the rest; once the future is done, the exchange cannot be lost.

        Args:
            whole: the exchange; its chunks are those that were added.
        """
        if not self._over:
            self._recorder.end(self._key, whole)
        return self._saved

    def drop(self) -> None:
        """Records nothing of the exchange."""
        if not self._over:
            self._recorder.drop(self._key)

    def consumed(self, size: int) -> None:
        """So many bytes of it have been searched."""
        self._waiting -= size
        self._room.set()

    def over(self) -> None:
        """It is saved, or will not be recorded."""
        self._over = True
        self._room.set()
        if not self._saved.done():
            self._saved.set_result(None)


def _same_protocols() -> bool:
    """Whether another process knows the same protocols; one may have been registered here."""
    return all(one.parse.__module__.startswith("mockllm.") for one in PROTOCOLS.values())


def _fault(error: str) -> str:
    return f"a fault of mockllm: {error}"


def _log(message: str) -> None:
    print(f"mockllm: {message}", file=sys.stderr)
