"""Runs Node, and says where it cannot."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.timeouts import GIVE_UP

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "packages" / "js"
MODULES = Path(__file__).parent / "node_modules"

with_node = pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed")
with_npm = pytest.mark.skipif(
    not (MODULES / ".package-lock.json").exists(),
    reason="the packages are not installed: run `npm install` in tests/js",
)

ENVIRONMENT = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
"""Finds the `mockllm` of this checkout first."""


def run(
    *command: str | Path, cwd: Path, environment: Mapping[str, str] = ENVIRONMENT
) -> subprocess.CompletedProcess[str]:
    """Runs a command to its end, whatever its exit code is."""
    return subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=5 * GIVE_UP
    )


def succeed(*command: str | Path, cwd: Path) -> str:
    """The output of a command that must succeed."""
    done = run(*command, cwd=cwd)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def link_modules(folder: Path) -> None:
    """Makes the packages of tests/js those of a folder."""
    (folder / "node_modules").symlink_to(MODULES)
