"""Files that are whole, and locks that end with the process that holds them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

try:
    import fcntl
except ImportError:  # without flock, recorders are not kept apart
    fcntl = None  # type: ignore[assignment]

__all__ = ["alone", "is_unfinished", "lock", "put", "synced"]

_LOCK = ".recording.lock"
_UNFINISHED = ".unfinished"


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Alone among the recorders of a folder; not to be entered twice at a time."""
    handle = lock(folder / _LOCK)
    try:
        yield
    finally:
        if handle is not None:
            os.close(handle)


def lock(file: Path, *, wait: bool = True) -> int | None:
    """A descriptor that holds the lock of a file until it is closed.

    Args:
        wait: until nobody else has it; otherwise None where somebody has, or the file's folder
            is gone.
    """
    try:
        handle = os.open(file, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o644)
    except FileNotFoundError:
        return None
    if fcntl is not None:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            return None
    return handle


def synced(file: Path, content: bytes) -> None:
    """Writes a file; content and name are on the disk when this returns."""
    with file.open("wb") as opened:
        opened.write(content)
        opened.flush()
        os.fsync(opened.fileno())
    _sync_names(file.parent)


def _sync_names(folder: Path) -> None:
    """Brings the names in a folder to the disk."""
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
    """Whether a file is what `put` began and, if nobody is writing, has not ended."""
    return name.startswith(".") and name.endswith(_UNFINISHED)
