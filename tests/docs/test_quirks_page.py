"""The quirks: their table, their page, and their lookup by name."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import get_args

import pytest

from mockllm.checking import INVARIANTS
from mockllm.core.errors import UsageError
from mockllm.play.quirks import QUIRKS, find
from mockllm.play.quirks.base import Right, prose
from tests.docs.quirks_page import PAGE, page


def test_the_page_is_up_to_date() -> None:
    """docs/quirks.md is as generated: `python -m tests.docs.quirks_page` writes it."""
    assert PAGE.read_text() == page()


def test_quirks_are_described_in_full() -> None:
    """Each quirk has the servers that send it, the correct behaviour, the fault, and what each of
    its variants looks like in the bytes; nothing is described that does not exist."""
    assert set(prose()) == set(QUIRKS)
    groups = {"anthropic": "H", "responses": "I", "gemini": "J", "agui": "K", "ollama": "L"}
    groups["bedrock"] = "M"
    for name, quirk in QUIRKS.items():
        about = quirk.prose
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", name)
        assert about.right in get_args(Right)
        assert about.invariant in INVARIANTS
        assert all(quirk.sample.plays_over(api) for api in quirk.apis)
        assert list(about.variants) == [variant.name for variant in quirk.variants]
        for text in (about.title, about.servers, about.correct, about.faults):
            assert text.strip() == text != "", name
        assert all(text.strip() == text != "" for text in about.variants.values()), name
        assert not any("\n" in text for text in (about.title, *about.variants.values())), name
        assert all(re.fullmatch(_SOURCE, source) for source in about.sources), name
        named = (*about.unsourced, *(about.invalid if isinstance(about.invalid, tuple) else ()))
        assert set(named) <= set(about.variants), name
        if len(quirk.apis) == 1 and quirk.apis[0] in groups:
            assert about.group == groups[quirk.apis[0]]


_SOURCE = r"[\w.-]+/[\w.-]+#\d+|https://[\w.-]+/\S*"


def test_playing_reads_no_prose() -> None:
    """A server that plays quirks does not pay for their descriptions."""
    script = (
        "from mockllm.play.quirks import QUIRKS, base, find\n"
        "assert find('chat-index-missing')[0] is QUIRKS['chat-index-missing']\n"
        "assert base.prose.cache_info().currsize == 0"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_an_unknown_quirk_gets_suggestions() -> None:
    """The message names what was probably meant, or how to list them all."""
    with pytest.raises(UsageError, match="did you mean 'chat-index-missing'"):
        find("chat-index-mising")
    with pytest.raises(UsageError, match="`mockllm list quirks` lists them"):
        find("zzz")
    with pytest.raises(UsageError, match="has no variant 'cl'; it has: crlf, split, cr, mixed"):
        find("sse-crlf:cl")
