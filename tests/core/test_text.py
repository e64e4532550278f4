"""Texts and values as messages quote them."""

import pytest

from mockllm.core.text import display, shorten


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, "abcdef…"),
        ({"mark": "..."}, "abcdef..."),
        ({"keep": 3}, "abc…"),
        ({"keep": 2, "tail": 3, "mark": "..."}, "ab...ghi"),
    ],
)
def test_a_long_text_is_shortened(options, expected):
    """The beginning, the mark and the end are exactly as long as requested."""
    assert shorten("abcdefghi", 6, **options) == expected


@pytest.mark.parametrize("text", ["", "abc", "abcdef"])
def test_a_short_text_is_whole(text):
    """A text of at most `limit` characters does not change."""
    assert shorten(text, 6, keep=1, tail=1) == text


def test_display():
    """A value is its `repr`; a long one is cut after 80 characters and has its length."""
    assert display({"a": "b\n"}) == "{'a': 'b\\n'}"
    assert display("x" * 78) == "'" + "x" * 78 + "'"
    assert display("x" * 79) == "'" + "x" * 79 + "… (81 characters)"
