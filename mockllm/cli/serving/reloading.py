"""`mockllm serve --reload`: serves the files as they are now; broken files leave the last good ones
served."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mockllm.cli.options.parameters import read_scenarios
from mockllm.cli.serving.server_log import ServerLog
from mockllm.errors import Problem, ScenarioError

if TYPE_CHECKING:
    from mockllm.server.app import MockServer

_PERIOD = 0.5
"""Seconds between two looks."""

_State = dict[str, tuple[int, int, int]]


async def poll(
    folders: Iterable[Path], stop: asyncio.Event, *, deep: bool, period: float = _PERIOD
) -> AsyncIterator[None]:
    """Yields after each change of the files in some folders, until `stop` is set.

    A change is another time, size or inode of a file, a new file, or one that is gone.

    Args:
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
                    status = os.stat(path)  # noqa: PTH116 - as above
                except OSError:  # it went away in between
                    continue
                state[path] = (status.st_mtime_ns, status.st_size, status.st_ino)
    return state


async def follow(
    paths: tuple[Path, ...], server: MockServer, report: ServerLog, stop: asyncio.Event
) -> None:
    """Loads the files anew after each change, until `stop` is set.

    A change that leaves the scenarios as they are is passed over; one that breaks them is
    reported, and the last good version stays.
    """
    served = server.player.served.scenarios
    problems: Sequence[Problem] = ()
    # The folder is watched, not the file: editors replace a file by a new one.
    folders = {path if path.is_dir() else path.parent for path in paths}
    deep = any(path.is_dir() for path in paths)
    async for _ in poll(folders, stop, deep=deep):
        try:
            scenarios = await asyncio.to_thread(read_scenarios, paths)
        except ScenarioError as error:
            if error.problems != problems:
                problems = error.problems
                report.broken(problems)
                server.note_problems(problems)
            continue
        if problems or scenarios != served:
            server.reload(scenarios)
            report.reloaded(scenarios)
        served, problems = scenarios, ()
