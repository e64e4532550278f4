"""Files that are whole, and locks that end with the process that holds them.

The locks are those of the system (`flock`, `LockFileEx`), through `filelock`. They belong to an
open file, so the system frees them when it closes the files of a process that was killed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

_LOCK = ".recording.lock"
_UNFINISHED = ".unfinished"
_MOST_OPEN = 64
"""Files that are open at a time; a process may often have 256."""
_AT_ONCE = 4
"""Files that are brought to the disk at a time."""
_POLL = 0.005
"""How often a lock is tried that another holds, in seconds; locks are held for milliseconds."""


@contextmanager
def alone(folder: Path, holder: bytes = b"") -> Iterator[bool]:
    """Alone among the recorders of a folder; not to be entered twice at a time.

    Args:
        holder: who enters, different for each that writes; b"" if that does not matter to anyone.

    Yields:
        whether the last one who entered had the same `holder`.
    """
    handle = lock(folder / _LOCK)
    if handle is None:
        yield False
        return
    try:
        yield _was_held_by(handle, holder)
    finally:
        unlock(handle)


def _was_held_by(handle: int, holder: bytes) -> bool:
    """Whether the file of a lock names a holder; it does so afterwards."""
    last = os.read(handle, len(holder) + 1)
    os.lseek(handle, 0, os.SEEK_SET)
    if last == holder:
        return bool(holder)
    os.ftruncate(handle, 0)
    if holder:
        with suppress(OSError):  # on a full disk it names none
            os.write(handle, holder)
        os.lseek(handle, 0, os.SEEK_SET)  # Windows unlocks the bytes from there
    return False


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
    except (FileNotFoundError, NotADirectoryError):
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


def _write(file: Path, content: bytes, mode: int | None) -> int:
    """Writes a file; its descriptor, whose content may not be on the disk yet."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0)
    handle = os.open(file, flags, 0o666 if mode is None else 0o600)
    try:
        if mode is not None:  # before there is anything to read
            file.chmod(mode)
        unwritten = memoryview(content)
        while unwritten:
            unwritten = unwritten[os.write(handle, unwritten) :]
    except OSError:
        os.close(handle)
        raise
    return handle


def _write_all(files: Mapping[Path, bytes], mode: int | None) -> None:
    """Writes files; their contents are on the disk when this returns, and their names perhaps not.

    They are brought to the disk at the same time: what several threads wait for, a file system puts
    into its journal at once. To wait for one file after the other takes several times as long.
    """
    handles: list[int] = []
    try:
        for file, content in files.items():
            handles.append(_write(file, content, mode))
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            list(threads.map(os.fsync, handles))
    finally:
        for handle in handles:
            os.close(handle)


def _sync_names(folder: Path) -> None:
    """Brings the names in a folder to the disk, where the system opens folders."""
    if sys.platform == "win32":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def put(file: Path, content: bytes, mode: int | None = None) -> None:
    """Writes a file so that it is there whole or not at all, whatever happens."""
    put_all(file.parent, {file.name: content}, mode=mode)


def put_all(folder: Path, *groups: Mapping[str, bytes], mode: int | None = None) -> None:
    """Writes files so that each is there whole or not at all, whatever happens.

    Args:
        groups: contents by name. Those of a group are there only if all before it are. Many files
            in one group cost far less than each in a call of its own.
        mode: the permissions of the files; None: those of the process.
    """
    contents = [(name, data) for group in groups for name, data in group.items()]
    try:
        for first in range(0, len(contents), _MOST_OPEN):
            some = contents[first : first + _MOST_OPEN]
            _write_all({folder / _unfinished_name(name): data for name, data in some}, mode)
        for group in groups:
            for name in group:
                (folder / _unfinished_name(name)).replace(folder / name)
            if group:
                _sync_names(folder)
    except OSError:
        _remove_unfinished(folder, (name for name, _ in contents))
        raise


def _unfinished_name(name: str) -> str:
    return f".{name}{_UNFINISHED}"


def _remove_unfinished(folder: Path, names: Iterable[str]) -> None:
    """Removes what was not finished: it would take the space of others."""
    for name in names:
        with suppress(OSError):
            (folder / _unfinished_name(name)).unlink()


def is_unfinished(name: str) -> bool:
    """Whether a file is an unfinished one of `put`, which nothing reads."""
    return name.startswith(".") and name.endswith(_UNFINISHED)
