"""SIGINT and SIGTERM: the first one asks a server to stop, the second one ends it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from types import FrameType

FORCED = 130
"""The exit code after a second signal."""

_PATIENCE = 0.5
"""Seconds that a second signal leaves for closing connections in order."""

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopSignals:
    """Receives the signals of a program from now on.

    The signals are handled by Python itself, between two instructions, and not by the event loop
    alone: so the second one ends the program also where the loop is busy, a thread does not end, or
    the loop is closed already.

    Python calls a handler once for all signals of a number that came since the last instruction,
    but writes a byte for each of them, so the bytes are counted, too. Only where the system itself
    has not delivered the first one yet, two of the same number are one.

    Args:
        stop: set by the first signal.
        cut: set by the second one. After half a second, or at a third one, the process ends.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.stop, self.cut = asyncio.Event(), asyncio.Event()
        self._loop = loop
        self._calls: list[int] = []
        self._bytes = bytearray()
        self._done = 0
        self._source, target = os.pipe()
        os.set_blocking(self._source, False)
        os.set_blocking(target, False)
        self._before = signal.set_wakeup_fd(target, warn_on_full_buffer=False)
        loop.add_reader(self._source, self._read)  # a signal wakes the loop
        for number in _SIGNALS:
            signal.signal(number, self._received)

    def _received(self, number: int, frame: FrameType | None) -> None:
        self._calls.append(number)
        self._read()

    def _read(self) -> None:
        with contextlib.suppress(BlockingIOError):
            data = os.read(self._source, 4096)
            self._bytes += bytes(number for number in data if number in _SIGNALS)
            if self._before != -1:
                with contextlib.suppress(OSError):
                    os.write(self._before, data)  # the loop may have handlers of its own
        while self._done < max(len(self._calls), len(self._bytes)):
            self._done += 1
            self._count(self._done)

    def _count(self, count: int) -> None:
        if count > 2:
            _end(0, None)
        if count == 2:
            signal.signal(signal.SIGALRM, _end)
            signal.setitimer(signal.ITIMER_REAL, _PATIENCE)
        event = self.stop if count == 1 else self.cut
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(event.set)


def _end(number: int, frame: FrameType | None) -> None:
    os._exit(FORCED)


@contextlib.contextmanager
def ended_at_once() -> Iterator[None]:
    """SIGINT ends a program that only loads. The usual `KeyboardInterrupt` can be raised where
    Python ignores it, such as in the callback of a weak reference: the program would go on."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, _abort)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _abort(number: int, frame: FrameType | None) -> None:
    with contextlib.suppress(OSError):
        os.write(2, b"Aborted!\n")
    os._exit(FORCED)
