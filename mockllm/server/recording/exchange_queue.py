"""The exchanges that have ended and wait to be written: a queue that threads share."""

from __future__ import annotations

import threading
from collections import deque
from itertools import islice

from mockllm.tapes.captured import Captured

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
        self._waiting: deque[tuple[int, Captured]] = deque()
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
        """How many wait."""
        return len(self._waiting)

    def put(self, number: int, captured: Captured) -> bool:
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

    def next_group(self) -> tuple[tuple[int, Captured], ...]:
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

    def done(self, handled: int, obstacle: str) -> None:
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

    def rest(self) -> tuple[tuple[int, Captured], ...]:
        """Takes out what still waits."""
        with self._changed:
            rest = tuple(self._waiting)
            self._waiting.clear()
            return rest

    def _is_ready(self) -> bool:
        return bool(self._waiting) and (self._added or not self.obstacle)


def _size(captured: Captured) -> int:
    return len(captured.request_body) + sum(len(chunk.data) for chunk in captured.chunks)
