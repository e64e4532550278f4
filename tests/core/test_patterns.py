"""Regular expressions of others: Python's syntax, and searches that end."""

from __future__ import annotations

import re
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mockllm.core import patterns
from mockllm.core.later import NotDoneError, deferring
from mockllm.core.pattern_costs import cost_of
from mockllm.core.patterns import ForeignPattern, PatternError, PatternGaveUpError, compiled

SLOW = "(x+x+)+y"
"""Neither `re` nor `regex` has a short cut for it."""


@pytest.mark.parametrize(
    ("pattern", "degree"),
    [
        (r"(?i)^(hi|hello)\b", 1),
        ("^[0-9]+$", 1),
        (r"weather in \w+", 2),
        (r"\d{1,3}(?:,\d{3}){0,2}", 1),
        ("(?<=a)b(?!c)", 1),
        (r"(a)\1", 2),
        ("^a?$", 1),
        ("(a+)+", None),
        (r"^(\w+,?\s?)+;$", None),
        ("(a|ab)*c", None),
        ("(?:){1000}", None),
    ],
)
def test_costs(pattern: str, degree: int | None) -> None:
    """A repeat in a repeat has no bound; all else a polynomial of the length."""
    assert cost_of(pattern).degree == degree


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("(", "must be a regular expression of Python; missing )"),
        ("a{99999999999}", "must be a regular expression of Python"),
        ("(" * 5000, "must be a regular expression of Python"),
        ("((a{1000}){1000}){1000}", "cannot be bounded; make its counted repeats smaller"),
        ("(?i)" + "[\0-\U0010ffff]" * 5, "too many characters"),
    ],
)
def test_what_is_refused(pattern: str, message: str) -> None:
    """At once, so that a scenario with it is not loaded."""
    with pytest.raises(PatternError, match=re.escape(message)):
        ForeignPattern(pattern)


def test_exponential_patterns_have_their_result() -> None:
    """Where `re` would need years."""
    pattern = compiled(r"^(\w+,?\s?)+;$")
    assert not pattern.found_in("a" * 5000)
    assert pattern.found_in("a, b c;")


@pytest.mark.slow
def test_a_search_that_gives_up_is_an_error() -> None:
    """It is left to a thread first; its outcome is kept."""
    text = "x" * 20_001
    with deferring({}), pytest.raises(NotDoneError) as missing:
        compiled(SLOW).found_in(text)
    assert missing.value.read() == "gave up"
    with deferring({}), pytest.raises(PatternGaveUpError, match="in a text of 20001 characters"):
        compiled(SLOW).found_in(text)


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
def test_both_engines_agree(pattern: str, text: str) -> None:
    """A long text is searched by another engine than a short one, with the same result."""
    found = ForeignPattern(pattern)
    expected = re.search(pattern, text) is not None
    assert found.found_in(text) == expected
    assert (found._compile_guarded().search(text) is not None) == expected


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("^(a+)+{e}$", "aa{e}"),
        ("^(a+)*(b){i}$", "abx"),
        ("^(a+)*(?:foo){e<=1}$", "fooo"),
        ("^(a+)+[[:alpha:]]$", "aaz"),
        ("^(a+)+[[:alpha:]]$", "aa:]"),
        (r"^(\w+)+$", "e\u0301"),
        (r"^(\w+)+$", "\xb2"),
        (r"^(?:[^\W_]+)+$", "\u2460"),
        (r"^(\s+)+$", "\x1c"),
        (r"^(a+)+\b\u0301", "a\u0301"),
        (r"(?a)^(\w+)+$", "\xe9"),
        (r"^(?:\B)+$", ""),
        (r"(?i)^(?P<one>a+)+(?(one)b|c)(?-i:d)\1$", "aABda"),
    ],
)
def test_regex_reads_what_re_reads(pattern: str, text: str) -> None:
    """`regex` has more syntax than `re`, and other classes of characters."""
    found = ForeignPattern(pattern)
    assert not found.is_short(len(text))
    assert found.found_in(text) == (re.search(pattern, text) is not None)


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
    """Whichever engine searches: of each match the first group, unless it is empty."""
    pattern = ForeignPattern("".join(parts))
    python = re.compile(pattern.text)
    group = min(python.groups, 1)
    expected = [one.span(group) for one in python.finditer(text) if one[group]]
    for most in (patterns.MOST_STEPS, 0):
        with patch.object(patterns, "MOST_STEPS", most):
            assert pattern.spans(text) == expected
            assert pattern.is_whole(text) == bool(python.fullmatch(text))


def test_places_that_take_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search ends, and says so."""
    monkeypatch.setattr(patterns, "LIMIT", 0.05)
    pattern = compiled(SLOW)
    for search in (pattern.spans, pattern.is_whole):
        with pytest.raises(PatternGaveUpError, match=r"gave up the regular expression '\(x\+x"):
            search("x" * 5000)
