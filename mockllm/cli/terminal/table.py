"""Tables in columns."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Iterator
from unicodedata import combining, east_asian_width

from mockllm.cli.terminal.output import echo
from mockllm.core.text import printable


def print_table(rows: Iterable[tuple[str, ...]]) -> None:
    """Prints rows in columns, on a terminal cut to its width."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 0
    for line in _table(tuple(map(printable, row)) for row in rows):
        echo(fit(line, width) if width else line)


def fit(line: str, width: int) -> str:
    """A line that a terminal shows in one row; an ellipsis stands for what does not fit."""
    if sum(map(_columns, line)) <= width:
        return line
    shown, used = 0, 1
    while shown < len(line) and used + _columns(line[shown]) <= width:
        used += _columns(line[shown])
        shown += 1
    return f"{line[:shown].rstrip()}…"


def _columns(character: str) -> int:
    if combining(character):
        return 0
    return 2 if east_asian_width(character) in "WF" else 1


def _table(rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    rows = list(rows)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        yield "  ".join(cells).rstrip()
