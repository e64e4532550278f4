"""Copies and builds the runners of examples/runners, as a user does."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from mockllm.cli import main
from tests.timeouts import GIVE_UP

NODE_MODULES = Path(__file__).parents[3] / "clients" / "typescript" / "node_modules"

TOOLS = {
    "c": ["make", "cc"],
    "go": ["go"],
    "java": ["javac", "java"],
    "javascript": ["node"],
    "python": ["python3"],
    "rust": ["cargo", "rustc"],
    "typescript": ["node", "npx"],
}


def copied(language: str, folder: Path) -> list[list[str]]:
    """Writes a runner with `mockllm init`; returns the commands that it prints for the folder.

    Skips the test where a tool of the language is missing.
    """
    missing = [tool for tool in TOOLS[language] if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} is not here (`make ready` installs Debian's packages)")
    if language == "typescript" and not (NODE_MODULES / ".installed").exists():
        pytest.skip("TypeScript's compiler is not here; `make ready` installs it with npm")
    result = CliRunner().invoke(main, ["init", "--runner", language, str(folder)])
    assert result.exit_code == 0, result.output
    lines = [line.strip() for line in result.output.splitlines() if line.startswith("  ")]
    assert lines[0] == f"cd {shlex.quote(str(folder))}"
    return [shlex.split(line) for line in lines[1:]]


def built(language: str, folder: Path) -> list[str]:
    """Writes and builds a runner; returns the command that starts it from the folder."""
    *building, checking = copied(language, folder)
    for command in building:
        if command == ["npm", "install"]:  # what it installs is there already
            (folder / "node_modules").symlink_to(NODE_MODULES)
        else:
            run(command, folder)
    assert checking[: checking.index("--") + 1] == ["mockllm", "check", "--api", "chat", "--"]
    command = checking[checking.index("--") + 1 :]
    if not (folder / command[0]).exists():
        return command
    return [str(folder / command[0]), *command[1:]]


def run(command: list[str], folder: Path) -> None:
    """Runs a command that must succeed; its words may be patterns of files."""
    words = [file for word in command for file in (_files(word, folder) if "*" in word else [word])]
    environment = {"CARGO_NET_OFFLINE": "true", **os.environ}
    environment.pop("CARGO_TARGET_DIR", None)
    done = subprocess.run(
        words,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=GIVE_UP,
        check=False,
    )
    assert done.returncode == 0, f"{shlex.join(words)} failed:\n{done.stdout}"


def _files(pattern: str, folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob(pattern))
