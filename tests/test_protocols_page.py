"""docs/protocols.md is what the code and the clients say, today."""

import pytest

from tests.protocols_page import HEAD, PAGE, losses, page


def test_what_protocols_cannot_say_is_on_the_page():
    """A loss that is added or mended is on the page in the same commit."""
    assert PAGE.read_text().startswith(HEAD)
    assert losses() in PAGE.read_text(), "run: python -m tests.protocols_page"


@pytest.mark.slow
def test_the_table_is_what_the_clients_get():
    """Every cell was played just now."""
    made = page()
    if made is None:
        pytest.skip("Node or tests/clients/vercel/node_modules is missing")
    assert made == PAGE.read_text(), "run: python -m tests.protocols_page"
