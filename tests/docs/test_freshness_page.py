"""The page about how fresh the encoders are."""

import pytest

from tests.corpus import needs_corpus
from tests.docs.freshness_page import PAGE, page


@pytest.mark.slow
@needs_corpus
def test_the_page_is_up_to_date() -> None:
    """docs/freshness.md is as generated: `python -m tests.docs.freshness_page` writes it."""
    assert PAGE.read_text() == page()


def test_what_services_are_known_to_send_is_sent() -> None:
    """What the page found once, in recordings of 2026, is in none of its lists any more."""
    text = PAGE.read_text()
    for name in ("obfuscation", "namespace`", "candidatesTokensDetails", "page_age"):
        assert name not in text
