"""Templates: what an expression may be, what it stands for, and how mistakes are told."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.scenario.templates import (
    MAX_LENGTH,
    TemplateError,
    as_text,
    parse,
    render,
    render_json,
)
from tests.cases import for_all

VALUES = {
    "request": lambda: {
        "user": 'Say "hi"',
        "body": {"n": 3, "list": [1, {"a b": None}], "none": None},
    },
    "call": lambda: {"name": "f", "arguments": {"city": "Oslo"}},
    "result": lambda: None,
    "turn": lambda: 2,
}

RENDERED: list[tuple[str, Any]] = [
    ("plain { text } }}", "plain { text } }}"),
    ("{{ request.user }}", 'Say "hi"'),
    ("{{request.user}}!", 'Say "hi"!'),
    ("{{ request.user | json }}", '"Say \\"hi\\""'),
    ("{{ turn }}", 2),
    ("turn {{ turn }}", "turn 2"),
    ("{{ request.body.list }}", [1, {"a b": None}]),
    ("list {{ request.body.list }}", 'list [1,{"a b":null}]'),
    ("{{ request.body.list[0] }}{{ request.body.list[-1] | json }}", '1{"a b":null}'),
    ('{{ request.body["list"][1]["a b"] }}', None),
    ("{{ request.body.list | length }} {{ request.user | length }}", "2 8"),
    ("{{ call.arguments.city }}", "Oslo"),
    ('{{ call.arguments.country | default("?") }}', "?"),
    ("{{ request.body.none | default(0) }}", 0),
    ("{{ request.body.none | default(-1.5) }}", -1.5),
    ("{{ result.text | default(null) | json }}", "null"),
    ("{{ result | default('it\\'s \\n gone') }}", "it's \n gone"),
    ('{{ "{{" }} {{ "x" }}', "{{ x"),
]


@for_all("text, value", RENDERED)
def test_rendered(text: str, value: Any) -> None:
    """A text that is one expression is its value; in a longer one, values stand as text or JSON."""
    assert render(text, VALUES) == value


MALFORMED = [
    ("{{", "a '{{' has no '}}' after it"),
    ("{{ }}", "needs a path, which begins with one of request, call, calls"),
    ("{{ user }}", "begins with 'user'; a path begins with one of"),
    ("{{ reqeust.user }}", "did you mean 'request'?"),
    ("{{ request.usr }}", "asks 'request' for 'usr'; did you mean 'user'?"),
    ("{{ request.user.upper() }}", "has '(' where it should end"),
    ("{{ request.user + 1 }}", "cannot be read from '+ 1' on"),
    ("{{ request. }}", "needs a name after '.'"),
    ("{{ calls[1.5] }}", "has an index that is no whole number"),
    ("{{ calls[0 }}", "needs ']'"),
    ("{{ turn | upper }}", "has no filter 'upper'; there are default, json, length"),
    ("{{ turn | default }}", "needs a value in brackets after 'default'"),
    ("{{ turn | default(x) }}", "needs quotes around 'x'"),
    ("{{ turn" + "[0]" * 60 + " }}", "has more than 50 steps"),
    ("{{ turn }}" * 1001, "has more than 1,000 expressions"),
]


@for_all("text, message", MALFORMED)
def test_malformed(text: str, message: str) -> None:
    """An expression that cannot be read is an error that says what to write."""
    with pytest.raises(TemplateError) as error:
        parse(text)
    assert message in str(error.value)


MISSING = [
    ("{{ result.text }}", "this request has no 'result'; write | default(...) behind it"),
    ("{{ results }}", "this request has no 'results'"),
    ("{{ call.arguments.zip }}", "call.arguments has no 'zip'"),
    ("{{ request.body.list[2] }}", "request.body.list has 2 items, and no [2]"),
    ("{{ request.body.list.a }}", "request.body.list is no object, but [1, {'a b': None}]"),
    ("{{ turn[0] }}", "turn is no list, but 2"),
    ("{{ turn | length }}", "2 has no length"),
]


@for_all("text, message", MISSING)
def test_missing(text: str, message: str) -> None:
    """A value that is not there is an error, never an empty text."""
    with pytest.raises(TemplateError) as error:
        render(text, VALUES)
    assert message in str(error.value)


def test_bounded() -> None:
    """A text may not grow without a bound."""
    values = {"request": lambda: {"user": "x" * (MAX_LENGTH // 2)}}
    assert len(render("{{ request.user }}" * 2, values)) == MAX_LENGTH
    with pytest.raises(TemplateError, match="is longer than 1,048,576 characters"):
        render("{{ request.user }}" * 3, values)


@given(st.text().filter(lambda text: "{{" not in text))
def test_other_texts_stay(text: str) -> None:
    """A text without an expression is itself."""
    assert render(text, {}) == text


@given(st.text(max_size=40), st.text(max_size=40))
def test_values_are_not_read_again(before: str, user: str) -> None:
    """What a client sends is never read as an expression."""
    before = before.replace("{", "(")
    values = {"request": lambda: {"user": user}}
    assert render(f"{before}:{{{{ request.user }}}}", values) == f"{before}:{user}"
    assert render("{{ request.user }}", values) == user


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(json_values)
def test_types_stay(value: Any) -> None:
    """In JSON, an expression alone becomes the value with its type, wherever it stands."""
    values = {"request": lambda: {"body": value}}
    if value is not None:
        written = {"a": ["{{ request.body }}", "x{{ request.body }}"]}
        assert render_json(written, values) == {"a": [value, f"x{as_text(value)}"]}
