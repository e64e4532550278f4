"""docs/coming-from.md works as written: its files are written, its commands run in their order."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.inner_pytest import ADDOPTS
from tests.plugin.routes_service import RoutesService

PAGE = (Path(__file__).parents[2] / "docs" / "coming-from.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
COMMENTS = {"python": "# ", "json": "// "}
RECORDS = "--record-mode=once"

pytestmark = pytest.mark.slow


def commands(console: str) -> list[tuple[str, list[str]]]:
    """The commands of a block, each with the lines of its output that the page shows."""
    found: list[tuple[str, list[str]]] = []
    for line in console.splitlines():
        if line.startswith("$ "):
            found.append((line.removeprefix("$ "), []))
        else:
            found[-1][1].append(line)
    return found


def run(folder: Path, command: str, **environment: str) -> str:
    done = subprocess.run(
        command,
        shell=True,
        cwd=folder,
        env={
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTEST_ADDOPTS": ADDOPTS,
            "OPENAI_API_KEY": "sk-live-4fQ9zTk2mVx7RbN1cYp8",
            **environment,
        },
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, f"{command} failed:\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def test_the_page_works(tmp_path: Path) -> None:
    """Every command of the page succeeds, and prints the lines of the page in their order. Only the
    recording with pytest-recording has a service. Its cassettes have the key of the client; what is
    converted from them has not."""
    recorded, recorded_from = 0, ""
    for language, text in BLOCKS:
        if language in COMMENTS:
            first, rest = text.split("\n", 1)
            (tmp_path / first.removeprefix(COMMENTS[language])).write_text(rest)
            continue
        if language == "text":
            continue
        assert language == "console", language
        for command, lines in commands(text):
            if RECORDS in command:
                recorded += 1
                with RoutesService() as service:
                    recorded_from = f"{service.url}/v1"
                    output = run(tmp_path, command, OPENAI_BASE_URL=recorded_from)
            elif "convert-tests" in command or "--mockllm-audit" in command:
                output = run(tmp_path, command, OPENAI_BASE_URL=recorded_from)
            else:
                output = run(tmp_path, command)
            for line in lines:
                assert line in output, f"{line!r} is not in the output of {command!r}:\n{output}"
                output = output.split(line, 1)[1]
    assert recorded == 1

    def with_key(folder: str) -> list[Path]:
        files = (file for file in (tmp_path / folder).rglob("*") if file.is_file())
        return [file for file in files if b"sk-live-" in file.read_bytes()]

    assert with_key("cassettes")
    assert with_key("recorded") == []
