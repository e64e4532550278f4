"""Lines to standard output that never hold up the server."""

from __future__ import annotations

import os
import select
import stat
import sys

_SLICE = 4096  # what a pipe that is ready takes without blocking (PIPE_BUF)
_MOST_PENDING = 1024 * 1024


class LineOutput:
    """Writes lines, each at once.

    A program that starts a server often reads the first line of its output and no more. So a
    pipe that is not read makes lines wait, then drops them (a line says so when it is read
    again), and a reader that has gone ends the output, not the server.
    """

    def __init__(self, descriptor: int | None = None) -> None:
        sys.stdout.flush()
        where = sys.stdout.fileno() if descriptor is None else descriptor
        self._descriptor: int | None = where
        self._pipe = stat.S_ISFIFO(os.fstat(where).st_mode)
        self._encoding = sys.stdout.encoding or "utf-8"
        self._pending = bytearray()
        self._lost = 0

    def line(self, text: str) -> None:
        """Writes a line, or keeps it until there is room."""
        self._push()
        if len(self._pending) > _MOST_PENDING:
            self._lost += 1
            return
        if self._lost:
            self._add(f"({self._lost} lines were lost: they were not read in time)")
            self._lost = 0
        self._add(text)
        self._push()

    def _add(self, text: str) -> None:
        self._pending += text.encode(self._encoding, "backslashreplace") + b"\n"

    def _push(self) -> None:
        while self._pending and self._descriptor is not None and self._ready(self._descriptor):
            try:
                sent = os.write(self._descriptor, self._pending[:_SLICE])
            except OSError:
                self._descriptor = None
                return
            del self._pending[:sent]
        if self._descriptor is None:
            self._pending.clear()

    def _ready(self, descriptor: int) -> bool:
        if not self._pipe:
            return True
        poll = select.poll()
        poll.register(descriptor, select.POLLOUT)
        return bool(poll.poll(0))
