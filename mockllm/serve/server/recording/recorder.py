"""Records the exchanges of a server: one queue, which a thread empties into one writer.

The writer redacts and writes in a process of its own (`writer_process`), or in the thread.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from itertools import count, islice
from typing import TYPE_CHECKING

from mockllm.core.text import printable
from mockllm.play.tapes.socket_session import Recording, SocketSession
from mockllm.record.recording.drafting.draft import Line
from mockllm.record.recording.drafting.matches import MatchRule
from mockllm.record.recording.store.ended import EndedExchanges
from mockllm.record.recording.store.folder import Folder
from mockllm.record.redaction.rules import Rules
from mockllm.scenario.model import Scenario
from mockllm.serve.server.recording.writer import (
    Group,
    GroupResult,
    Writer,
    WriterSetup,
    lost_line,
    one_by_one,
)
from mockllm.serve.server.recording.writer_process import WriterEndedError, WriterProcess
from mockllm.wire.protocols import PROTOCOLS

if TYPE_CHECKING:
    from mockllm.serve.server.options import RecordOptions

_MOST_TOGETHER = 32
"""Exchanges that are written together. Other recorders of the folder wait that long."""


class ExchangeQueue:
    """Exchanges in the order in which they ended, each with its number.

    Args:
        most_bytes: if more wait, it is full.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._changed = threading.Condition()
        self._waiting: deque[tuple[int, Recording]] = deque()
        self._bytes = 0
        self._added = self._closed = self._tried_at_end = False
        self.obstacle = ""
        """Why nothing can be written at the moment, such as a full disk."""

    @property
    def is_full(self) -> bool:
        """Whether those who add should wait: not for a disk that takes nothing."""
        return self._bytes > self._most_bytes and not self.obstacle

    @property
    def count(self) -> int:
        """The number of exchanges that wait."""
        return len(self._waiting)

    def put(self, number: int, captured: Recording) -> bool:
        """Adds an exchange; False, and nothing else, if it cannot be kept: there is an obstacle,
        and too much waits for the end of it."""
        with self._changed:
            room = not self.obstacle or self._bytes <= self._most_bytes
            if room:
                self._waiting.append((number, captured))
                self._bytes += _size(captured)
            self._added = True
            self._changed.notify()
        return room

    def next_group(self) -> tuple[tuple[int, Recording], ...]:
        """Waits for exchanges; they stay until they are `done`. What met an obstacle is given again
        after the next exchange, and once at the end. Nothing is given after the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_ready() or self._closed)
            self._added = False
            if self._closed:
                if self.obstacle and self._tried_at_end:
                    return ()
                self._tried_at_end = True
            return tuple(islice(self._waiting, _MOST_TOGETHER))

    def mark_done(self, handled: int, obstacle: str) -> None:
        """The first exchanges are written or reported; the next one met an obstacle, if any."""
        with self._changed:
            self.obstacle = obstacle
            for _ in range(handled):
                _, captured = self._waiting.popleft()
                self._bytes -= _size(captured)

    def close(self) -> None:
        """Nothing is added any more."""
        with self._changed:
            self._closed = True
            self._changed.notify()

    def rest(self) -> tuple[tuple[int, Recording], ...]:
        """Takes out what still waits."""
        with self._changed:
            rest = tuple(self._waiting)
            self._waiting.clear()
            return rest

    def _is_ready(self) -> bool:
        return bool(self._waiting) and (self._added or not self.obstacle)


def _size(captured: Recording) -> int:
    if isinstance(captured, SocketSession):
        return len(captured.body) + sum(len(message.data) for message in captured.messages)
    return len(captured.request_body) + sum(len(chunk.data) for chunk in captured.chunks)


Written = Callable[[tuple[Scenario, ...]], Callable[[], None]]

_INTERVAL = 1.0
"""Seconds between two looks at how much waits."""


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
        self, options: RecordOptions, listener: Written | None = None, reserved: Iterable[str] = ()
    ) -> None:
        known = Folder(options.folder).scenarios()
        self.was_empty = not known
        self._scenarios = {scenario.name: scenario for scenario in known}
        self._report = options.report
        self._report_waiting = options.waiting
        self._listener = listener
        self._ended = EndedExchanges(options.folder)
        self._setup = WriterSetup(
            options.folder,
            self._ended.path,
            options.rules or Rules(),
            options.match or MatchRule(),
            options.mode == "all",
            frozenset({*reserved} - self._scenarios.keys()),
            sends_scenarios=listener is not None,
        )
        self._loop = asyncio.get_running_loop()
        self._loop.call_soon(
            self._report_lines, [_killed_line(exchange) for exchange in self._ended.missing]
        )
        self._numbers = count(1)
        self._queue = ExchangeQueue(options.most_waiting)
        self._room = asyncio.Event()
        self._given_up = False
        self._written, self._since = 0, time.monotonic()
        self._writer = self._start_writer(apart=options.apart)
        # A daemon: it must not keep a process whose event loop was cancelled.
        self._thread = threading.Thread(target=self._run, name="mockllm-recording", daemon=True)
        self._thread.start()

    def add(self, captured: Recording) -> None:
        """Takes an exchange that has ended; does not wait."""
        number = next(self._numbers)
        try:
            self._ended.add(number, captured.source)
        except OSError as error:
            _log(f"the end of an exchange is not noted: {error.strerror or error}")
        if not self._queue.put(number, captured):
            self._report_lines([lost_line(captured.source, self._queue.obstacle)])

    async def room(self) -> None:
        """Waits while too much waits to be written, so that the memory is bounded."""
        while self._queue.is_full:
            self._room.clear()
            await self._room.wait()

    def skip(self, source: str, reason: str, *, unwanted: bool = False) -> None:
        """Reports an exchange that is not recorded."""
        self._report_lines([Line(source, "skipped", reason, unwanted=unwanted)])

    async def close(self) -> None:
        """Waits until every exchange that was added has been written."""
        self._queue.close()
        try:
            await asyncio.to_thread(self._thread.join)
        except asyncio.CancelledError:  # no one waits any more, so nothing may keep this process
            self._given_up = True
            if isinstance(self._writer, WriterProcess):
                self._writer.kill()
            raise
        await asyncio.sleep(0)  # what the thread reported last is received in the loop

    def _report_lines(self, lines: Iterable[Line]) -> None:
        if self._report is not None:
            for line in lines:
                self._report(line)

    # The thread

    def _run(self) -> None:
        try:
            while group := self._queue.next_group():
                self._handle(group)
        finally:
            if not self._given_up:
                why = self._queue.obstacle or "a fault of mockllm: see above"
                rest = [lost_line(captured.source, why) for _, captured in self._queue.rest()]
                self._loop.call_soon_threadsafe(self._report_lines, rest)
                self._writer.close()
                self._ended.close()

    def _handle(self, group: Group) -> None:
        self._show_waiting()
        result = self._write(group)
        if self._given_up:
            self._queue.rest()
            return
        if result.obstacle and not self._queue.obstacle:
            _log(f"an exchange waits, for {result.obstacle}")
        self._queue.mark_done(result.handled, result.obstacle)
        self._written += result.handled
        self._loop.call_soon_threadsafe(self._report_lines, result.lines)
        self._loop.call_soon_threadsafe(self._room.set)
        if self._listener is not None and result.scenarios:
            self._scenarios |= result.scenarios
            self._loop.call_soon_threadsafe(self._listener(tuple(self._scenarios.values())))

    def _write(self, group: Group) -> GroupResult:
        """Writes a group. A process that ends is replaced, and of the group only the exchange is
        lost at which it ends again."""
        try:
            return self._writer.write(group)
        except WriterEndedError as error:
            self._replace_writer(error)
            return one_by_one(self._write_again, group)

    def _write_again(self, group: Group) -> GroupResult:
        """Writes one exchange after the end of a process that may have been its fault."""
        if self._given_up:
            return GroupResult(0)
        try:
            return self._writer.write(group)
        except WriterEndedError as error:
            self._replace_writer(error)
            return GroupResult(1, (lost_line(group[0][1].source, str(error)),))

    def _replace_writer(self, error: WriterEndedError) -> None:
        if not self._given_up:
            _log(f"{error}; another one is started")
            self._writer = self._start_writer(apart=True)

    def _start_writer(self, *, apart: bool) -> Writer | WriterProcess:
        if apart and _same_protocols():
            try:
                return WriterProcess(self._setup)
            except OSError as error:
                _log(f"no process can be started ({error}); recordings are written in a thread")
        return Writer(self._setup)

    def _show_waiting(self) -> None:
        """Reports how many exchanges wait, if that is more than a second's work."""
        if self._report_waiting is None:
            return
        waiting, passed = self._queue.count, time.monotonic() - self._since
        if passed >= _INTERVAL and waiting > self._written / passed:
            self._loop.call_soon_threadsafe(self._report_waiting, waiting)
        if passed >= _INTERVAL:
            self._written, self._since = 0, time.monotonic()


def _same_protocols() -> bool:
    """Whether another process knows the same protocols; one may have been registered here."""
    return all(address.package.startswith("mockllm.") for address in PROTOCOLS.addresses.values())


def _killed_line(exchange: str) -> Line:
    source = exchange.partition(",")[0]
    why = "has no recording: its recorder was killed before it was written"
    return Line(source, "skipped", f"{exchange}, {why}", lost=True)


def _log(message: str) -> None:
    print(printable(f"mockllm: {message}"), file=sys.stderr)
