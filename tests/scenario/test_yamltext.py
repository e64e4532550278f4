"""The YAML text is that of PyYAML's emitter in Python, character by character."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.scenario.yamltext import Flow, FlowMap, TextFile, write
from tests.cases import for_all
from tests.scenario.pyyaml_text import pyyaml_text

ODD = (
    *(
        "",
        " ",
        "\n",
        "\r",
        "a\nb",
        "a\nb\n",
        "a\n\nb",
        "a\n b",
        "a \nb",
        "it's",
        "it's\nso",
        "a\rb",
    ),
    *("yes", "y", "null", "~", "1e3", "0x1f", "1_000", "1:30", ".5", "+1", "<<", "=", "2020-01-01"),
    *("---", "... a", "-", "- a", "-a", "?", "? a", "?a", ":", "a: b", "a:", "a:b", "a #b", "a#b"),
    *("!a", "&a", "*a", "[a", "a]", "{a", "a, b", "%a", "@a", "`a", ">a", "|", "'a", '"a'),
    *("\x00", "\x85", "a\u2028", "\ufeff", "\ufffe", "\ud800", "\U0010ffff", "😀", "\xa0a\nb"),
    *("k" * 122, "k" * 123, "k" * 200),
)
strings = st.sampled_from(ODD) | st.text(st.sampled_from(" \n\r\t:#-?,[]{}'\"ab0.😀\u2028\x07"))
leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | strings
    | st.builds(TextFile, strings, strings)
)
values = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(Flow),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(strings, inner, max_size=4),
        st.dictionaries(strings, inner, max_size=4).map(FlowMap),
    ),
    max_leaves=12,
)


@given(values)
def test_the_text_of_any_value(value: object) -> None:
    """Any value has the text that PyYAML writes for it."""
    assert write(value) == pyyaml_text(value)


@for_all("text", ODD, ids=ascii)
def test_the_text_of_odd_strings(text: str) -> None:
    """A string that YAML could read as something else is the same alone, as an item, as a key, as a
    value, and on one line."""
    for value in (text, [text], [[text]], {text: text}, {"a": {text: [text]}}, FlowMap({text: 1})):
        assert write(value) == pyyaml_text(value)


@pytest.mark.parametrize("value", [{1: "a"}, {"a": b"b"}, [object()], {"a": {1, 2}}])
def test_what_is_no_json_is_refused(value: object) -> None:
    """A value that is no JSON, or a key that is no string, is an error and not another text."""
    with pytest.raises(TypeError, match=r"no JSON value|must be a string"):
        write(value)
