"""`mockllm serve --reload`: serves the files as they are now; broken files leave the last good ones
served."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mockllm.cli.params import read_scenarios
from mockllm.cli.reports import Report
from mockllm.errors import Problem, ScenarioError, UsageError

if TYPE_CHECKING:
    from mockllm.server.app import MockServer

__all__ = ["check_watchable", "follow"]


def check_watchable() -> None:
    """Fails with advice where watchfiles is not installed."""
    try:
        import watchfiles  # noqa: F401 - whether it is there
    except ImportError:
        raise UsageError(
            "--reload needs watchfiles: pip install 'mockllm-harness[reload]'"
        ) from None


async def follow(
    paths: tuple[Path, ...], server: MockServer, report: Report, stop: asyncio.Event
) -> None:
    """Loads the files anew after each change, until `stop` is set.

    A change that leaves the scenarios as they are is passed over; one that breaks them is
    reported, and the last good version stays.
    """
    from watchfiles import awatch

    served = server.player.served.scenarios
    problems: Sequence[Problem] = ()
    # The folder is watched, not the file: editors replace a file by a new one.
    folders = {path if path.is_dir() else path.parent for path in paths}
    deep = any(path.is_dir() for path in paths)
    async for _ in awatch(*folders, stop_event=stop, recursive=deep):
        try:
            scenarios = await asyncio.to_thread(read_scenarios, paths)
        except ScenarioError as error:
            if error.problems != problems:
                problems = error.problems
                report.broken(problems)
            continue
        if problems or scenarios != served:
            server.reload(scenarios)
            report.reloaded(scenarios)
        served, problems = scenarios, ()
