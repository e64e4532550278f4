"""The program of docs/quotas.md does what the page shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.pages import text_of
from tests.docs.running import run, write

pytestmark = pytest.mark.slow


def test_the_program(tmp_path: Path) -> None:
    """It counts down, and is refused."""
    (console,) = write(tmp_path, text_of("quotas"))
    run(tmp_path, console)
