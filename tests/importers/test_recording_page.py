"""docs/recording.md tells what becomes of the recorded corpus today."""

import pytest

from tests.importers.corpus import needs_corpus
from tests.recording_page import PAGE, between, page


@needs_corpus
@pytest.mark.slow
def test_the_table_is_what_an_import_gives():
    """Every cassette and stream was imported just now."""
    assert between(PAGE.read_text(encoding="utf-8")) == page(), (
        "run: python -m tests.recording_page"
    )
