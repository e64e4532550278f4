"""The commit of mockllm's source, where it runs from a checkout."""

from __future__ import annotations

import subprocess
from pathlib import Path

_LIMIT = 10.0


def source_commit(root: Path | None = None) -> str:
    """The commit, with `-dirty` where files differ from it; "" without git or a checkout."""
    root = Path(__file__).resolve().parents[2] if root is None else root
    if not (root / ".git").exists():
        return ""
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        done = subprocess.run(  # noqa: S603 - the words above alone
            [*command, "--exclude=*"], capture_output=True, text=True, timeout=_LIMIT, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()
