"""The line that shows progress."""

import io

import pytest

from mockllm.cli.terminal.progress import ProgressLine
from mockllm.record.importers.batch import with_progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock():
    """A clock that a test sets: `clock.now = 5`."""

    def clock():
        return clock.now

    clock.now = 0.0
    return clock


def test_a_terminal_has_one_line(clock):
    """On a terminal the line changes, at most ten times a second, and is gone at the end."""
    out = Terminal()
    line = ProgressLine(out, clock)
    for now, done in ((0.0, 100), (0.05, 200), (0.2, 7)):
        clock.now = now
        line("files read", done, 1000)
    assert out.getvalue() == (
        "\rmockllm: 100 of 1,000 files read" + "\rmockllm: 7 of 1,000 files read  "
    )
    line.close()
    assert out.getvalue().endswith("\r" + " " * len("mockllm: 7 of 1,000 files read") + "\r")


def test_elsewhere_only_long_runs_show_progress(clock):
    """Where standard error is no terminal there is a line every ten seconds, and none before."""
    out = io.StringIO()
    line = ProgressLine(out, clock)
    for now in range(0, 32, 3):
        clock.now = float(now)
        line("files read", now, 32)
    line.close()
    assert out.getvalue() == "mockllm: 12 of 32 files read\nmockllm: 24 of 32 files read\n"


def test_counting():
    """Items are reported as done when the next one is requested, and at the end."""
    seen = []
    items = with_progress(["a", "b"], "files read", lambda *values: seen.append(values))
    assert list(items) == ["a", "b"]
    assert seen == [("files read", 0, 2), ("files read", 1, 2), ("files read", 2, 2)]
