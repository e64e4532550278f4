"""Finds changed files by looking at them again and again, where watchfiles is not installed."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

__all__ = ["PERIOD", "poll"]

PERIOD = 0.5
"""Seconds between two looks."""

_State = dict[str, tuple[int, int, int]]


async def poll(
    folders: Iterable[Path], stop: asyncio.Event, *, deep: bool, period: float = PERIOD
) -> AsyncIterator[None]:
    """Yields after each change of the files in some folders, until `stop` is set.

    A change is another time, size or inode of a file, a new file, or one that is gone.

    Args:
        deep: look into subfolders, too.
        period: in seconds.
    """
    folders = tuple(folders)
    before = _state(folders, deep)  # before anything else runs: no change is missed
    while not stop.is_set():
        try:
            await asyncio.wait_for(stop.wait(), period)
        except TimeoutError:
            now = await asyncio.to_thread(_state, folders, deep)
            if now != before:
                before = now
                yield


def _state(folders: Iterable[Path], deep: bool) -> _State:
    """Time of change, size and inode of each file, by its path."""
    state: _State = {}
    for folder in folders:
        for name, below, files in os.walk(folder):
            if not deep:
                below.clear()
            for file in files:
                path = os.path.join(name, file)  # noqa: PTH118 - a `Path` takes ten times as long
                try:
                    found = os.stat(path)  # noqa: PTH116 - as above
                except OSError:  # it went away in between
                    continue
                state[path] = (found.st_mtime_ns, found.st_size, found.st_ino)
    return state
