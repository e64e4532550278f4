"""Runs the pages whose blocks are files and commands, as their reader would."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.inner_pytest import ADDOPTS

FILES = {"python": "# ", "yaml": "# ", "js": "// "}
"""By the language of a block, what stands before the name of its file."""

SOME_FILES = {"json": "// ", "markdown": "<!-- "}
"""The same of languages in which other blocks are no files."""


def write(folder: Path, text: str) -> list[str]:
    """Writes the files of a text, each a block that begins with its name; returns its console
    blocks. Shell blocks are for other machines."""
    consoles = []
    for language, block in re.findall(r"^```(\w+)\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        if language == "console":
            consoles.append(block)
        first, rest = block.split("\n", 1)
        mark = FILES.get(language) or SOME_FILES.get(language)
        if mark is None or (language in SOME_FILES and not first.startswith(mark)):
            continue
        assert first.startswith(mark), first
        file = folder / first.removeprefix(mark).removesuffix(" -->")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(rest)
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
        skipped, output = output.split(line, 1)
        assert not line.startswith("FAILED") or "\nFAILED" not in skipped, f"left out:\n{skipped}"
    if any("FAILED" in line or "passed" in line for line in lines):
        assert "FAILED" not in output, f"more fails than the page shows:\n{output}"
