"""The behaviour of mockllm equals the golden record."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.corpus import needs_corpus
from tests.golden.record import GROUPS, OF_CORPUS
from tests.timeouts import GIVE_UP

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.parametrize(
    "group", [pytest.param(one, marks=needs_corpus if one in OF_CORPUS else ()) for one in GROUPS]
)
def test_nothing_has_changed(group: str, tmp_path: Path) -> None:
    """Every text of the group has the digest that was committed. The group is made in a process of
    its own, so that no state and no thread that other tests left has a part in it."""
    command = [sys.executable, "-m", "tests.golden.record", "--check", "--only", group]
    done = subprocess.run(
        [*command, "--dump", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=10 * GIVE_UP,
        check=False,
    )
    shown = [tmp_path / f"{key}.txt" for key in done.stdout.splitlines()[:3]]
    texts = [f"== {one.name}\n{one.read_text()[:2000]}" for one in shown if one.exists()]
    assert done.returncode == 0, "\n".join([done.stdout[:4000], done.stderr[-4000:], *texts])
