"""docs/protocols.md agrees with the code and the clients."""

import pytest

from tests.docs.protocols_page import HEAD, PAGE, losses, page


def test_losses_are_on_the_page():
    """A loss that is added or fixed is on the page in the same commit."""
    assert PAGE.read_text().startswith(HEAD)
    assert losses() in PAGE.read_text(), "run: python -m tests.docs.protocols_page"


@pytest.mark.slow
def test_the_table_is_measured():
    """Every cell is measured again."""
    generated = page()
    if generated is None:
        pytest.skip("Node or tests/clients/vercel/node_modules is missing")
    assert generated == PAGE.read_text(), "run: python -m tests.docs.protocols_page"
