"""The blocks of docs/interception.md work as written."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from mockllm.cli import main

PAGE = (Path(__file__).parents[2] / "docs" / "interception.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.slow
def test_the_test_passes(tmp_path: Path) -> None:
    """The URL that the test asserts is that of the service."""
    (block,) = blocks("python")
    (tmp_path / "test_url.py").write_text(block, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "mockllm_pytest.plugin", tmp_path],
        cwd=tmp_path,
        env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout


def test_the_commands_have_the_options_that_the_page_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each command line of the first block is one that the program takes."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "recorded").mkdir()
    lines = blocks("sh")[0].splitlines()
    commands = [shlex.split(line, comments=True)[1:] for line in lines if "mockllm " in line]
    with main.make_context("mockllm", ["--version"], resilient_parsing=True) as context:
        for name, *arguments in commands:
            command = main.get_command(context, name)
            assert command is not None
            command.make_context(name, arguments, parent=context)
    assert [name for name, *_ in commands] == ["run", "record", "record", "run"]
