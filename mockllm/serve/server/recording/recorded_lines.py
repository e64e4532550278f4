"""The report of a recorder, for the live page: what it wrote, and where."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from mockllm.core.text import shorten
from mockllm.record.redaction.credentials import masked_url

if TYPE_CHECKING:
    from mockllm.record.recording.drafting.draft import Line
    from mockllm.serve.server.options import RecordOptions

_MOST = 500


class RecordedLines:
    """The lines of a recorder, the newest ones, and how many of each kind there were.

    Args:
        options: of the recorder; `options` of this object hands the lines on to those.
    """

    def __init__(self, options: RecordOptions) -> None:
        self._given = options
        self.options = replace(options, report=self._line, waiting=self._waits)
        self.publish: Callable[[dict[str, Any]], None] | None = None
        """Is called with each line while a page is open."""
        self._lines: deque[dict[str, Any]] = deque(maxlen=_MOST)
        self._totals: Counter[str] = Counter()
        self._waiting = 0

    def about(self) -> dict[str, Any]:
        """The services that are recorded, as JSON values."""
        given = self._given
        return {
            "mode": given.mode,
            "folder": str(given.folder),
            "upstreams": {api: masked_url(url) for api, url in given.upstreams.items()},
        }

    def as_json(self) -> dict[str, Any]:
        """All that is known."""
        names = ("recorded", "skipped", "not_found", "lost")
        return {
            **self.about(),
            "waiting": self._waiting,
            "lines": list(self._lines),
            "dropped": max(0, self._totals["all"] - len(self._lines)),
            "totals": {name: self._totals[name] for name in names},
        }

    def _line(self, line: Line) -> None:
        if self._given.report is not None:
            self._given.report(line)
        self._totals["all"] += 1
        self._totals["skipped" if line.outcome == "skipped" else "recorded"] += 1
        self._totals["not_found"] += bool(line.not_found)
        self._totals["lost"] += line.lost
        entry = {
            "at": time.time(),
            **asdict(line),
            "source": shorten(line.source, 500),
            "description": shorten(line.description, 2000),
            "not_found": shorten(line.not_found, 2000),
        }
        self._lines.append(entry)
        if self.publish is not None:
            self.publish(entry)

    def _waits(self, count: int) -> None:
        self._waiting = count
        if self._given.waiting is not None:
            self._given.waiting(count)
