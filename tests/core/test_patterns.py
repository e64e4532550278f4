"""Regular expressions of others: Python's syntax, and searches that end."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mockllm.core import patterns
from mockllm.core.patterns import PatternError, PatternGaveUpError, TimedPattern, compile_pattern

SLOW = "(x+x+)+y"
"""Neither `re` nor `regex` has a short cut for it."""


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("(", "must be a regular expression of Python; missing )"),
        ("a{99999999999}", "must be a regular expression of Python"),
        ("(" * 5000, "must be a regular expression of Python"),
        ("((a{1000}){1000}){1000}", "would be too large; make its counted repeats smaller"),
        ("((?:[a-z]b){200}c){200}", "would be too large"),
        ("^a{e}$", "has '{e}'; put a backslash before its bracket"),
        ("(?:foo){e<=1}", "has '{e<'; put a backslash"),
        ("(b){i}", "has '{i}'; put a backslash"),
        ("^[[:alpha:]]$", "Possible nested set"),
    ],
)
def test_what_is_refused(pattern: str, message: str) -> None:
    """At once, so that a scenario with it is not loaded: what is wrong, too large to compile, or
    means something else to `regex` than to `re`."""
    with pytest.raises(PatternError, match=re.escape(message)):
        TimedPattern(pattern)


def test_exponential_patterns_have_their_result() -> None:
    """Where `re` would need years."""
    pattern = compile_pattern(r"^(\w+,?\s?)+;$")
    assert not pattern.found_in("a" * 5000)
    assert pattern.found_in("a, b c;")


def test_a_search_that_gives_up_is_an_error() -> None:
    """It says how long it took, and how long the text is."""
    message = r"after 0\.01 s, in a text of 20001 characters"
    with pytest.raises(PatternGaveUpError, match=message):
        compile_pattern(SLOW).found_in("x" * 20_001, 0.01)


_PIECES = st.sampled_from(
    ["a", "b", ".", "[ab]", "a|b", "(a)", "(?:ab)", "^", "$", r"\b", "a*", "b+?", "a{1,3}", "(?=a)"]
)
_PATTERNS = st.recursive(
    _PIECES,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("".join),
        inner.map("(?:{})*".format),
        inner.map("({})?".format),
        st.lists(inner, min_size=2, max_size=2).map("|".join),
    ),
    max_leaves=5,
)


@settings(max_examples=50, deadline=None)
@given(_PATTERNS, st.text("ab\n", max_size=8))
def test_searches_find_what_python_finds(pattern: str, text: str) -> None:
    """The documentation promises Python's syntax."""
    assert TimedPattern(pattern).found_in(text) == (re.search(pattern, text) is not None)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"^a\{e}$", "a{e}"),
        ('{"city": "(\\w+)"}', '{"city": "Rome"}'),
        ("^[a-z]{2}{name}$", "ab{name}"),
        (r"(?a)^(\w+)+$", "\xe9"),
        (r"(?i)^(?P<one>a+)+(?(one)b|c)(?-i:d)\1$", "aABda"),
        (r"^(?:[a-z]{1,1000}-){1000}$", "a-" * 1000),
        ("(?i)" + "[\0-\U0010ffff]" * 50, "\xe9" * 50),
    ],
)
def test_python_syntax(pattern: str, text: str) -> None:
    """`regex` has more syntax than `re`; what is common means the same."""
    assert TimedPattern(pattern).found_in(text) == (re.search(pattern, text) is not None)


_PARTS = [
    "a",
    "b",
    "c?",
    "(a|b)",
    "(a)|b",
    "[ab]+",
    "a*?b",
    ".",
    "^",
    "$",
    r"\b",
    "(?=b)",
    "(?:ab)+",
]


@given(st.lists(st.sampled_from(_PARTS), min_size=1, max_size=4), st.text("abc \n", max_size=20))
def test_places_are_those_of_python(parts: list[str], text: str) -> None:
    """Of each match the first group, unless it is empty."""
    pattern = TimedPattern("".join(parts))
    python = re.compile(pattern.text)
    group = min(python.groups, 1)
    expected = [one.span(group) for one in python.finditer(text) if one[group]]
    assert pattern.spans(text) == expected
    assert pattern.is_whole(text) == bool(python.fullmatch(text))


def test_places_that_take_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search ends, and says so."""
    monkeypatch.setattr(patterns, "LIMIT", 0.05)
    pattern = compile_pattern(SLOW)
    for search in (pattern.spans, pattern.is_whole):
        with pytest.raises(PatternGaveUpError, match=r"gave up the regular expression '\(x\+x"):
            search("x" * 5000)


@given(_PATTERNS)
def test_what_python_reads_compiles(pattern: str) -> None:
    """A pattern is refused when a scenario is loaded, or never: the first search refuses none."""
    assert TimedPattern(pattern).spans("") == []
