"""`mockllm serve --reload`: serves the files as they are now; broken files leave the last good ones
served."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mockllm.cli.options.common import read_scenarios
from mockllm.cli.serving.server_log import Report
from mockllm.errors import Problem, ScenarioError

if TYPE_CHECKING:
    from mockllm.server.app import MockServer

__all__ = ["follow"]


def _changes(folders: Iterable[Path], stop: asyncio.Event, deep: bool) -> AsyncIterator[object]:
    """Yields after each change: at once where watchfiles is installed, else after half a second
    at most."""
    try:
        from watchfiles import awatch
    except ImportError:
        from mockllm.cli.serving.polling import poll

        return poll(folders, stop, deep=deep)
    return awatch(*folders, stop_event=stop, recursive=deep)


async def follow(
    paths: tuple[Path, ...], server: MockServer, report: Report, stop: asyncio.Event
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
    async for _ in _changes(folders, stop, deep):
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
