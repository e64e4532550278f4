"""The files that git has of this checkout."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def tracked_modes() -> dict[str, str]:
    """Modes of the tracked files as git writes them, such as `100644`, by paths below the root.

    Skips the test where the files are no checkout, such as those of an sdist.
    """
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("this folder is no checkout of git")
    listed = subprocess.run(
        ["git", "-c", f"safe.directory={ROOT}", "ls-files", "--stage", "-z"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    entries = (entry.split("\t", 1) for entry in listed.split("\0") if entry)
    return {path: stage.split()[0] for stage, path in entries}
