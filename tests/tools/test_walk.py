"""The files that a request passes are as many as the page says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.timeouts import GIVE_UP

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_a_request_passes_no_more_files_than_the_page_says() -> None:
    """From the socket, in a process in which nothing is cached yet."""
    done = subprocess.run(
        [sys.executable, "-m", "tools.walk"],
        cwd=ROOT, capture_output=True, text=True, timeout=GIVE_UP, check=True,
    )  # fmt: skip
    *passed, _ = map(int, re.findall(r": (\d+) files", done.stdout))
    page = " ".join((ROOT / "docs" / "architecture.md").read_text().split())
    sentence = re.search(
        r"the first request passes at most (\d+) files of mockllm, the second one (\d+), and a "
        r"repeated one (\d+); a recorded exchange passes (\d+) until it is written",
        page,
    )
    assert sentence is not None
    limits = map(int, sentence.groups())
    assert all(count <= limit for count, limit in zip(passed, limits, strict=True)), done.stdout
