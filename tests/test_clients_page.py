"""docs/clients.md says what the clients do today."""

from __future__ import annotations

import pytest

from tests.clients_page import PAGE, installed, page

pytestmark = pytest.mark.slow


def test_the_page_is_what_is_measured() -> None:
    """Every cell of the tables, measured again; `python -m tests.clients_page` writes the page."""
    here, missing = installed()
    if missing:
        pytest.skip("; ".join(missing))
    written = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    for _ in range(2):  # a machine that stalls makes clients give up; once more tells
        told = [line for line in page(here).splitlines() if line.startswith("| ")]
        if told == written:
            return
    assert told == written
