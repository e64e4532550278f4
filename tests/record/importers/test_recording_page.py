"""docs/importing.md has the results of importing the recorded corpus."""

import pytest

from tests.corpus import needs_corpus
from tests.docs.recording_page import PAGE, between, page


@needs_corpus
@pytest.mark.slow
def test_the_tables_are_those_of_an_import():
    """The tables on the page are the result of importing every cassette and stream."""
    assert between(PAGE.read_text(encoding="utf-8")) == page(), (
        "run: python -m tests.docs.recording_page"
    )
