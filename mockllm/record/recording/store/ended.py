"""Which exchanges have ended, and which of these have been written: a short line each, no content.

A recorder writes an exchange some time after its end. One that is killed in between loses it; by
these lines the next recorder of the folder tells which ones.

Each recorder has a hidden folder of its own, with a lock that the system frees when it dies.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import mkdtemp

from mockllm.record.recording.store.locks import alone, lock, unlock

_PREFIX = ".recording-"
_ENDED = "ended"
_WRITTEN = "written"
_LOCK = ".lock"


class _Log:
    """A file of lines that belongs to a process as long as that lives."""

    def __init__(self, path: Path) -> None:
        self._lock = lock(path.with_suffix(_LOCK))
        self._file = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o644)

    def add(self, text: str) -> None:
        os.write(self._file, text.encode("utf-8", "replace"))

    def close(self) -> None:
        os.close(self._file)
        if self._lock is not None:
            unlock(self._lock)


class EndedExchanges:
    """The exchanges of a recorder that have ended.

    Args:
        folder: that of the scenarios.

    Raises:
        OSError: the folder cannot be written to.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        with alone(folder):  # or another recorder takes this one for dead: it has no lock yet
            paths = sorted(folder.glob(f"{_PREFIX}*"))
            locks = [lock(path / f"{_ENDED}{_LOCK}", wait=False) for path in paths]
            self.path = Path(mkdtemp(prefix=_PREFIX, dir=folder))
            self._log = _Log(self.path / _ENDED)
        found = zip(paths, locks, strict=True)
        self._dead = [(path, held) for path, held in found if held is not None]
        self.missing = tuple(line for path, _ in self._dead for line in _unwritten(path))
        """The exchanges that ended and were not written before their recorder was killed, each as
        `POST /v1/chat/completions, which ended at 2026-11-23 18:04:05`. They are told by every
        recorder up to the first that ends by itself."""

    def add(self, number: int, source: str) -> None:
        """Notes that an exchange has ended.

        Args:
            source: its method and path, without anything secret.

        Raises:
            OSError: the disk is full.
        """
        moment = time.strftime("%Y-%m-%d %H:%M:%S")
        self._log.add(f"{number} {moment} {source}\n")

    def close(self) -> None:
        """Ends the log: nothing is missing."""
        with alone(self._folder):  # or another recorder takes them for dead
            self._log.close()  # before the folders go: Windows removes no open file
            for path, held in self._dead:
                unlock(held)
                shutil.rmtree(path, ignore_errors=True)
            shutil.rmtree(self.path, ignore_errors=True)


class WrittenExchanges:
    """The exchanges of a recorder that are written, or reported as not recorded.

    Args:
        path: the folder of its `EndedExchanges`.
    """

    def __init__(self, path: Path) -> None:
        self._log = _Log(path / _WRITTEN)

    def add(self, numbers: Iterable[int]) -> None:
        """Notes exchanges.

        Raises:
            OSError: the disk is full.
        """
        self._log.add("".join(f"{number}\n" for number in numbers))

    def close(self) -> None:
        """Ends the log."""
        self._log.close()


def _unwritten(path: Path) -> Iterator[str]:
    writing = lock(path / f"{_WRITTEN}{_LOCK}")  # it may be at the last ones that it was given
    written = set(_lines(path / _WRITTEN))
    if writing is not None:
        unlock(writing)
    for line in _lines(path / _ENDED):
        number, day, moment, source = line.split(" ", 3)
        if number not in written:
            yield f"{source}, which ended at {day} {moment}"


def _lines(file: Path) -> list[str]:
    whole = file.read_text("utf-8").rpartition("\n")[0] if file.exists() else ""
    return whole.split("\n") if whole else []
