"""docs/protocols.md agrees with the code; tests/clients/test_matrix.py measures its table."""

import pytest

from tests.docs.protocols_page import HEAD, PAGE, losses

pytestmark = pytest.mark.slow  # which imports the clients


def test_losses_are_on_the_page():
    """A loss that is added or fixed is on the page in the same commit."""
    assert PAGE.read_text().startswith(HEAD)
    assert losses() in PAGE.read_text(), "run: python -m tests.docs.protocols_page"
