"""The tutorials in docs/testing.md work as written."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.docs.running import run, write

PAGE = (Path(__file__).parents[2] / "docs" / "testing.md").read_text()
pytestmark = pytest.mark.slow


def section_of(title: str) -> str:
    """The text of a section."""
    return PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]


@pytest.mark.parametrize(
    "section",
    [
        "Check my accumulator",
        "Test my agent end to end",
        "Record a test's traffic once",
        "Test a client that is not written in Python",
    ],
)
def test_a_tutorial_works(tmp_path: Path, section: str) -> None:
    """The files of the page are written, its commands run, and their output has the lines of the
    page."""
    if section.endswith("Python"):
        if shutil.which("node") is None or shutil.which("curl") is None:
            pytest.skip("this tutorial needs node and curl")
        write(tmp_path, section_of("Test my agent end to end"))
    consoles = write(tmp_path, section_of(section))
    assert consoles
    for console in consoles:
        run(tmp_path, console)
