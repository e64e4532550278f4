"""docs/interactions.md works as written: its files are written, its command runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.running import run, write

PAGE = Path(__file__).parents[2] / "docs" / "interactions.md"


@pytest.mark.slow
def test_the_page_works(tmp_path: Path) -> None:
    """Both tests of the page pass."""
    (console,) = write(tmp_path, PAGE.read_text())
    run(tmp_path, console)
