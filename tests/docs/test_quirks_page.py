"""The quirks: their table, their page, and their lookup by name."""

from __future__ import annotations

import re

import pytest

from mockllm.checking import INVARIANTS
from mockllm.errors import UsageError
from mockllm.quirks import QUIRKS, find
from tests.docs.quirks_page import PAGE, page


def test_the_page_is_up_to_date() -> None:
    """docs/quirks.md is as generated: `python -m tests.docs.quirks_page` writes it."""
    assert PAGE.read_text() == page()


@pytest.mark.parametrize("quirk", QUIRKS.values(), ids=list(QUIRKS))
def test_a_quirk_is_described_in_full(quirk) -> None:
    """Each quirk has the servers that send it, the correct behaviour, and the fault."""
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", quirk.name)
    assert quirk.invariant in INVARIANTS
    assert all(quirk.sample.plays_over(api) for api in quirk.apis)
    assert len({variant.name for variant in quirk.variants}) == len(quirk.variants)
    for text in (quirk.title, quirk.servers, quirk.correct, quirk.faults):
        assert text.strip() == text != ""
        assert "\n" not in text
    for source in quirk.sources:
        assert re.fullmatch(r"[\w.-]+/[\w.-]+#\d+", source)


def test_an_unknown_quirk_gets_suggestions() -> None:
    """The message names what was probably meant, or how to list them all."""
    with pytest.raises(UsageError, match="did you mean chat-index-missing"):
        find("chat-index-mising")
    with pytest.raises(UsageError, match="`mockllm quirks` lists them"):
        find("zzz")
    with pytest.raises(UsageError, match="has no variant 'cl'; it has: crlf, split, cr, mixed"):
        find("sse-crlf:cl")
