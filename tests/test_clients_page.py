"""docs/clients.md says what the clients do today."""

from __future__ import annotations

import pytest

from tests.clients_page import PAGE, installed, page

pytestmark = pytest.mark.slow


def test_the_page_is_what_is_measured() -> None:
    """Every cell, measured again; `python -m tests.clients_page` writes the page."""
    here, missing = installed()
    if missing:
        pytest.skip("; ".join(missing))
    told = page(here).splitlines()
    written = PAGE.read_text().splitlines()
    assert [line for line in told if line not in written] == []
    assert len(told) == len(written)
