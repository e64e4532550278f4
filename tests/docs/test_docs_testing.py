"""The tutorials about tests work as written."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.docs.pages import text_of
from tests.docs.running import run, write
from tests.js.node import PACKAGE

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    "page", ["accumulators", "testing", "recorded-tests", "any-language", "unittest", "gates"]
)
def test_a_tutorial_works(tmp_path: Path, page: str) -> None:
    """The files of the page are written, its commands run, and their output has the lines of the
    page."""
    if page == "gates":
        if shutil.which("node") is None:
            pytest.skip("this tutorial needs node")
        (tmp_path / "node_modules").mkdir()
        (tmp_path / "node_modules" / "mockllm-harness").symlink_to(PACKAGE)
        (tmp_path / "package.json").write_text('{"type": "module"}')
    if page == "any-language":
        if shutil.which("node") is None or shutil.which("curl") is None:
            pytest.skip("this tutorial needs node and curl")
        write(tmp_path, text_of("testing"))
    consoles = write(tmp_path, text_of(page))
    assert consoles
    for console in consoles:
        run(tmp_path, console)
