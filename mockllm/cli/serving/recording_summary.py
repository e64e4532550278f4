"""What `mockllm record` and `mockllm serve --record` report of a whole recording."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from mockllm.cli.serving.server_log import ServerLog, summary_text

if TYPE_CHECKING:
    from mockllm.recording.drafting.reporting import Line


class RecordingSummary:
    """Counts the exchanges of a recording."""

    def __init__(self, report: ServerLog) -> None:
        self._report = report
        self._early: list[Line] | None = []
        """Lines from before the line with the address, which is the first one."""
        self.recorded = 0
        """How many were written."""
        self.not_found = 0
        """How many of those are not found by their own requests."""
        self.skipped = 0
        """How many are not recorded."""
        self.lost = 0
        """How many of those could not be written, or were lost by an earlier recorder."""

    def line(self, line: Line) -> None:
        self.recorded += line.outcome != "skipped"
        self.skipped += line.outcome == "skipped"
        self.not_found += bool(line.not_found)
        self.lost += line.lost
        if self._early is None:
            self._report.recorded(line)
        else:
            self._early.append(line)

    def started(self, _stop: Callable[[], None]) -> None:
        """The server listens, and its address has been printed."""
        early, self._early = self._early or [], None
        for line in early:
            self._report.recorded(line)

    def finish(self) -> int:
        """Prints the summary; the exit status: 1 if anything is missing."""
        missing = bool(self.skipped or self.not_found)
        self._report.summary(self.recorded, self.not_found, self.skipped, self.lost)
        if missing:
            click.echo(f"mockllm: {self}", err=True)
        return int(missing)

    def __str__(self) -> str:
        return summary_text(self.recorded, self.not_found, self.skipped, self.lost)
