"""Load-test tools report what our server delivers, and the page shows what was measured."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from measurements.load_tools import SCENARIOS, TOOLS, LoadTool, report_of, streams_of
from measurements.measure_load import FIXED, LOAD_RESULTS, PAGE, PICTURE, picture, table
from tests.cases import for_all
from tools.served import served

COUNT = 20


def test_the_page_shows_what_was_measured() -> None:
    """Table and picture are those that `python -m measurements.measure_load --page` writes."""
    results = json.loads(LOAD_RESULTS.read_text("utf-8"))
    assert table(results) in PAGE.read_text("utf-8")
    assert picture(results) == PICTURE.read_text("utf-8")


@for_all("tool", TOOLS, ids=lambda tool: tool.name)
def test_the_version_of_each_tool_is_fixed(tool: LoadTool) -> None:
    """What `make load-ready` installs is in the table."""
    assert tool.version
    results = json.loads(LOAD_RESULTS.read_text("utf-8"))
    assert (tool.title, tool.version) in [
        (one["title"], one["version"]) for one in results["tools"]
    ]


@pytest.mark.heavy
@for_all("tool", TOOLS, ids=lambda tool: tool.name)
def test_a_tool_reports_what_was_delivered(tool: LoadTool, tmp_path: Path) -> None:
    """The tool sees every stream that the server sent, and no error. Its times are those that the
    server says it delivered, and no shorter than those that were planned. The bound is wide: it
    holds where a slow machine makes both late."""
    if not tool.program.exists():
        pytest.skip(f"{tool.title} is not here: `make .venv-load-{tool.name}/.installed`")
    with served(str(SCENARIOS), "--latency", FIXED) as url:
        reported = tool.run(url, COUNT, 4, tmp_path)
        streams = streams_of(url)
    planned = report_of(streams, lambda one: one.planned)
    delivered = report_of(streams, lambda one: one.delivered)
    assert reported.errors == 0
    assert reported.streams == len(streams)
    if tool.is_exact:
        assert reported.streams == COUNT
    assert delivered.ttft >= planned.ttft
    # Locust rounds to milliseconds.
    assert delivered.ttft - 0.001 <= reported.ttft <= 3 * delivered.ttft + 0.5
    assert delivered.itl / 2 <= reported.itl <= 2 * delivered.itl + 0.001
