"""The tutorials in docs/testing.md work as written."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.inner_pytest import ADDOPTS

PAGE = (Path(__file__).parents[2] / "docs" / "testing.md").read_text()
FILES = {"python": "# ", "yaml": "# ", "js": "// "}

pytestmark = pytest.mark.slow


def blocks(section: str) -> list[tuple[str, str]]:
    """The blocks of a section: language and text."""
    text = PAGE.split(f"\n## {section}\n")[1].split("\n## ")[0]
    return re.findall(r"^```(\w+)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def write(folder: Path, section: str) -> list[str]:
    """Writes the files of a section; returns its console blocks."""
    consoles = []
    for language, text in blocks(section):
        if language == "console":
            consoles.append(text)
            continue
        first, rest = text.split("\n", 1)
        assert first.startswith(FILES[language]), first
        (folder / first.removeprefix(FILES[language])).write_text(rest)
    return consoles


def run(folder: Path, console: str) -> None:
    """Runs a command and finds the lines of the page in its output, in their order."""
    command, *lines = console.strip().splitlines()
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTEST_ADDOPTS": ADDOPTS,
    }
    done = subprocess.run(
        command.removeprefix("$ "),
        shell=True,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    output = done.stdout + done.stderr
    for line in lines:
        assert line in output, f"{line!r} is not in the output of {command!r}:\n{output}"
        output = output.split(line, 1)[1]
    if any("FAILED" in line or "passed" in line for line in lines):
        assert "FAILED" not in output, f"more fails than the page shows:\n{output}"


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
        write(tmp_path, "Test my agent end to end")
    consoles = write(tmp_path, section)
    assert consoles
    for console in consoles:
        run(tmp_path, console)
