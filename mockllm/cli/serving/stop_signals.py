"""SIGINT and SIGTERM: the first one asks a server to stop, the second one ends it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from itertools import count
from types import FrameType

FORCED = 130
"""The exit code after a second signal."""

_PATIENCE = 0.5
"""Seconds that a second signal leaves for closing connections in order."""

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def count_signals(received: Callable[[int], None]) -> None:
    """Calls a function at each signal from now on, with how many came.

    The signals are handled by Python itself, between two instructions, and not by the event loop
    alone: so the second one ends a program also where the loop is busy, a thread does not end, or
    the loop is closed already.
    """
    numbers = count(1)
    for number in _SIGNALS:
        signal.signal(number, lambda *_: received(next(numbers)))


class StopSignals:
    """Receives the signals of a server from now on.

    Args:
        stop: set by the first signal.
        cut: set by the second one. After half a second, or at a third one, the process ends.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.stop, self.cut = asyncio.Event(), asyncio.Event()
        self._loop = loop
        count_signals(self._on_signal)

    def _on_signal(self, number: int) -> None:
        if number > 2:
            os._exit(FORCED)
        if number == 2:
            signal.signal(signal.SIGALRM, lambda *_: os._exit(FORCED))
            signal.setitimer(signal.ITIMER_REAL, _PATIENCE)
        event = self.stop if number == 1 else self.cut
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(event.set)


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
