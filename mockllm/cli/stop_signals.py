"""SIGINT and SIGTERM: the first one asks a server to stop, the second one ends it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from types import FrameType

__all__ = ["FORCED", "StopSignals"]

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

    Args:
        stop: set by the first signal.
        cut: set by the second one. After half a second, or at a third one, the process ends.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.stop, self.cut = asyncio.Event(), asyncio.Event()
        self._loop = loop
        self._count = 0
        for number in _SIGNALS:
            # The loop's handler does nothing, but makes a signal wake the loop.
            loop.add_signal_handler(number, _nothing)
            signal.signal(number, self._received)

    def _received(self, number: int, frame: FrameType | None) -> None:
        self._count += 1
        if self._count > 2:
            _end(number, frame)
        if self._count == 2:
            signal.signal(signal.SIGALRM, _end)
            signal.setitimer(signal.ITIMER_REAL, _PATIENCE)
        event = self.stop if self._count == 1 else self.cut
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(event.set)


def _nothing() -> None:
    return


def _end(number: int, frame: FrameType | None) -> None:
    os._exit(FORCED)
