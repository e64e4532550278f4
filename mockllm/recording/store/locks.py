"""Files that are whole, and locks that end with the process that holds them.

The locks are those of the system (`flock`, `LockFileEx`), through `filelock`. They belong to an
open file, so the system frees them when it closes the files of a process that was killed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["alone", "is_unfinished", "lock", "put", "synced", "unlock"]

_LOCK = ".recording.lock"
_UNFINISHED = ".unfinished"
_POLL = 0.005
"""How often a lock is tried that another holds, in seconds; locks are held for milliseconds."""


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Alone among the recorders of a folder; not to be entered twice at a time."""
    handle = lock(folder / _LOCK)
    try:
        yield
    finally:
        if handle is not None:
            unlock(handle)


def lock(file: Path, *, wait: bool = True) -> int | None:
    """A descriptor that holds the lock of a file until `unlock`; None where the file's folder is
    gone, or where another has the lock and `wait` is False.

    Raises:
        OSError: the file cannot be opened, or its file system has no locks.
    """
    # Imported late: it takes 35 ms, and most who import this module take no lock. Its `FileLock`
    # would make folders that are gone, and fall back to files that a killed process leaves.
    from filelock import lock_descriptor

    try:
        handle = os.open(file, os.O_CREAT | os.O_RDWR, 0o644)  # not inherited, see PEP 446
    except FileNotFoundError:
        return None
    held = False
    try:
        held = lock_descriptor(handle, blocking=wait, poll_interval=_POLL)
    finally:
        if not held:
            os.close(handle)
    return handle if held else None


def unlock(handle: int) -> None:
    """Frees a lock, and closes its file."""
    from filelock import unlock_descriptor

    try:
        unlock_descriptor(handle)  # Windows frees a lock some time after its file is closed
    finally:
        os.close(handle)


def synced(file: Path, content: bytes) -> None:
    """Writes a file; content and name are on the disk when this returns."""
    with file.open("wb") as opened:
        opened.write(content)
        opened.flush()
        os.fsync(opened.fileno())
    _sync_names(file.parent)


def _sync_names(folder: Path) -> None:
    """Brings the names in a folder to the disk, where the system opens folders."""
    if sys.platform == "win32":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def put(file: Path, content: bytes) -> None:
    """Writes a file so that it is there whole or not at all, whatever happens."""
    unfinished = file.with_name(f".{file.name}{_UNFINISHED}")
    with unfinished.open("wb") as opened:
        opened.write(content)
        opened.flush()
        os.fsync(opened.fileno())
    unfinished.replace(file)
    _sync_names(file.parent)


def is_unfinished(name: str) -> bool:
    """Whether a file is an unfinished one of `put`, which nothing reads."""
    return name.startswith(".") and name.endswith(_UNFINISHED)
