"""The page about how fresh the encoders are."""

import pytest

from tests.corpus import CORPUS, needs_corpus
from tests.docs.freshness_page import PAGE, page, print_page, recordings


@pytest.mark.slow
@needs_corpus
def test_the_page_is_up_to_date() -> None:
    """docs/freshness.md is as generated: `python -m tests.docs.freshness_page` writes it."""
    assert PAGE.read_text() == page(recordings([CORPUS]))


def test_what_services_are_known_to_send_is_sent() -> None:
    """What the page found once, in recordings of 2026, is in none of its lists any more."""
    lines = PAGE.read_text().splitlines()
    text = "\n".join(line for line in lines if line.startswith("- The service sends"))
    for name in ("obfuscation", "namespace`", "candidatesTokensDetails", "page_age"):
        assert name not in text


@needs_corpus
def test_other_recordings_are_shown(capsys) -> None:
    """The page of any folder, and what is sent that neither it nor the table has."""
    print_page([CORPUS / "wires" / "cohere"])
    shown = capsys.readouterr().out
    assert "## Cohere Chat" in shown
    assert "cohere: body logprobs array" in shown
