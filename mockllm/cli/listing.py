"""`mockllm list`: the scenarios."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from unicodedata import combining, east_asian_width

import click

from mockllm.cli.options.parameters import json_option, path_arguments, read_scenarios
from mockllm.cli.terminal.output import echo
from mockllm.core.text import printable
from mockllm.scenario.model import Scenario
from mockllm.wire.protocols import PROTOCOLS

_HEAD = ("NAME", "APIS", "TURNS", "TOOLS", "DESCRIPTION")
_TOOLS_SHOWN = 2


@click.command("list")
@path_arguments("[PATH]...")
@json_option
def list_scenarios(paths: tuple[Path, ...], as_json: bool) -> None:
    """List scenarios.

    Those of files and folders; without PATH, those that come with mockllm.

    \b
    Examples:
      mockllm list
      mockllm list scenarios/ --json | jq -r '.[].name'
    """
    scenarios = read_scenarios(paths)
    if as_json:
        from mockllm.serve.server.control.control_routes import scenario_summary

        listed = [scenario_summary(scenario) for scenario in scenarios]
        echo(json.dumps(listed, indent=2, ensure_ascii=False))
        return
    print_table([_HEAD, *map(_row, scenarios)])


def _row(scenario: Scenario) -> tuple[str, ...]:
    apis = "all" if set(scenario.apis or PROTOCOLS) == set(PROTOCOLS) else ",".join(scenario.apis)
    if scenario.route is not None:
        apis = str(scenario.route)
    return (
        scenario.name,
        apis,
        str(len(scenario.turns)),
        _tools([tool.name for tool in scenario.tools]),
        scenario.description,
    )


def _tools(names: list[str]) -> str:
    if len(names) <= _TOOLS_SHOWN:
        return ",".join(names) or "-"
    return f"{','.join(names[:_TOOLS_SHOWN])} +{len(names) - _TOOLS_SHOWN}"


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
