"""Exchanges that are on the disk already and not yet scenarios.

What a scenario looks like takes its time to work out; that an exchange must not get lost does
not. So it is put aside first, as a tape without a turn, and taken away when its scenario is
written. What a recorder that was killed has put aside, the next one finds.

Each recorder has a hidden folder of its own, with a lock that the system frees when it dies.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp
from threading import Lock

from mockllm.errors import ScenarioError
from mockllm.recording.store.locks import alone, lock, synced, unlock
from mockllm.tapes.captured import Captured
from mockllm.tapes.conversion import captured_of, tape_of
from mockllm.tapes.dump import dump_tape
from mockllm.tapes.load import load_tape

__all__ = ["Pending"]

_PREFIX = ".recording-"
_LOCK = "lock"


class Pending:
    """What one recorder has put aside.

    Args:
        folder: that of the scenarios.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        with alone(folder):  # or another one takes what is not locked yet for left
            self._path = Path(mkdtemp(prefix=_PREFIX, dir=folder))
            self._lock = lock(self._path / _LOCK)
        self._count = 0
        self._counting = Lock()

    def put(self, captured: Captured) -> Path:
        """Puts an exchange aside; it is on the disk when this returns. Several threads may do so.

        Args:
            captured: without its secrets.
        """
        with self._counting:
            self._count += 1
            file = self._path / f"{self._count:08}.jsonl"
        try:
            synced(file, dump_tape(tape_of(captured)))
        except OSError:
            with suppress(OSError):
                file.unlink()  # a part of it would take the space of others
            raise
        return file

    def left(self) -> tuple[tuple[Captured, Path], ...]:
        """What recorders that are gone have put aside, in the order in which it came. It is this
        recorder's now: whoever takes an exchange removes its file."""
        with alone(self._folder):
            return tuple(self._taken())

    def _taken(self) -> Iterator[tuple[Captured, Path]]:
        for path in sorted(self._folder.glob(f"{_PREFIX}*"), key=_changed):
            if path == self._path or (held := lock(path / _LOCK, wait=False)) is None:
                continue
            for file in sorted(path.glob("*.jsonl")):
                self._count += 1
                own = file.replace(self._path / f"{self._count:08}.jsonl")
                try:
                    yield captured_of(load_tape(own.read_bytes(), own.name)), own
                except ScenarioError:  # it was not whole yet: the exchange was in flight
                    own.unlink()
            unlock(held)  # as in `close`
            shutil.rmtree(path, ignore_errors=True)

    def close(self) -> None:
        """Ends it; what has not become a scenario stays for another recorder."""
        empty = not any(self._path.glob("*.jsonl"))
        if self._lock is not None:
            unlock(self._lock)  # before the folder goes: Windows removes no open file
        if empty:
            shutil.rmtree(self._path, ignore_errors=True)


def _changed(path: Path) -> float:
    """When something was last put aside there."""
    try:
        return path.stat().st_mtime
    except FileNotFoundError:  # its recorder has just ended
        return 0.0
