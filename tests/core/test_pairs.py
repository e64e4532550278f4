"""Options with keys and values: one grammar."""

from __future__ import annotations

import pytest

from mockllm.core.pairs import read_pair, read_pairs, split_pairs
from tests.cases import for_all

KEYS = ("ttft", "itl", "ignore", "after", "end")


@for_all(
    ("text", "pairs"),
    [
        ("ttft=1s itl=2s", {"ttft": "1s", "itl": "2s"}),
        ("ttft=1s,itl=2s", {"ttft": "1s", "itl": "2s"}),
        (" ttft = 1s", None),
        ("ttft=lognormal(300ms, p99=2s) itl=1s", {"ttft": "lognormal(300ms, p99=2s)", "itl": "1s"}),
        ("ignore=usage,role, ttft=1s", {"ignore": "usage,role", "ttft": "1s"}),
        ("after=3 events,end=reset", {"after": "3 events", "end": "reset"}),
        ("after=a=b", {"after": "a=b"}),
        ("", None),
        ("ttft", None),
        ("ttft=", None),
        ("ttft=lognormal(1s", {"ttft": "lognormal(1s"}),
        ("after=) arguments end=reset", {"after": ") arguments", "end": "reset"}),
        ("ttft=1s ttft=2s", None),
    ],
)
def test_pairs(text: str, pairs: dict[str, str] | None) -> None:
    """Spaces or commas are between them; a value goes to the next key, and has any in brackets."""
    if pairs is not None:
        assert read_pairs(text, KEYS, "ttft=1s") == pairs
        return
    with pytest.raises(ValueError, match=r"must be KEY=VALUE, such as ttft=1s|has 'ttft' twice"):
        read_pairs(text, KEYS, "ttft=1s")


def test_an_unknown_key_is_named_with_those_that_there_are() -> None:
    """And with the one that was meant."""
    with pytest.raises(
        ValueError, match=r"no 'tftt'; did you mean 'ttft'\? There are: ttft, itl, "
    ):
        read_pairs("tftt=1s", KEYS, "ttft=1s")
    with pytest.raises(ValueError, match="there is no 'x'; there are: ttft, itl, "):
        read_pairs("x=1s", KEYS, "ttft=1s")


def test_the_time_grows_with_the_text() -> None:
    """Clients send such texts in a header: a million characters are read, not tried again."""
    for part in ("(", "a(", "a,", ", ", "=", "()"):
        with pytest.raises(ValueError, match="KEY=VALUE"):
            split_pairs(part * 500_000, "a=b")


def test_one_pair_has_all_the_rest_as_its_value() -> None:
    """Its key is a name of the user's."""
    assert read_pair("authorization = Bearer a, b=c", "k=v") == ("authorization", "Bearer a, b=c")
    for text in ("", "a", "a=", "=a", "a b=c", "x-key: a=b"):
        with pytest.raises(ValueError, match="must be KEY=VALUE, such as k=v, got"):
            read_pair(text, "k=v")
