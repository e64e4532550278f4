"""The scalars of YAML, and YAML in which some have another value."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from mockllm.record.redaction.find.bodies import Edit
from mockllm.record.redaction.walk.yaml_strings import Scalars, between, edit_yaml, scalars


def read(text: str) -> Scalars:
    found = scalars(text)
    assert found is not None
    return found


def test_the_scalars_of_a_text() -> None:
    """Keys and values, each with the name of its field; all documents; an alias is no other one."""
    found = read("a: x\nb: [y, {c: z}]\nd: &e w\nf: *e\n--- # two\n- 1\n")
    facts = [(one.text, one.field.name, one.field.kind) for one in found.document.values]
    assert facts == [
        ("a", "", "string"),
        ("x", "a", "string"),
        ("b", "", "string"),
        ("y", "b", "string"),
        ("c", "", "string"),
        ("z", "c", "string"),
        ("d", "", "string"),
        ("w", "d", "string"),
        ("f", "", "string"),
        ("1", "", "string"),
    ]
    assert found.text.split() == list("axbyczdwf1")
    assert [found.text[one.start : one.end] for one in found.document.values] == [
        one.text for one in found.document.values
    ]
    assert [node.value for node in found.nodes] == [one.text for one in found.document.values]


@pytest.mark.slow
@pytest.mark.parametrize("text", ["a: [", "\t- x", "a: 'x", "[" * 5_000, "a: \x00"])
def test_what_is_no_yaml(text: str) -> None:
    """It has no scalars, and no comments either."""
    assert scalars(text) is None
    assert [one.text for one in between(text).values] == [text]


def test_the_fragments_of_a_value() -> None:
    """A `split` is a channel, if it is a list of scalars."""
    found = read("split: [a, b]\nother: [c, d]\nx: {split: [e, {g: f}]}\ny: {split: words}")
    channels = [([one.text for one in c.values], c.exact, c.whole) for c in found.document.channels]
    assert channels == [(["a", "b"], True, True)]


def test_what_is_between_the_scalars() -> None:
    """Comments and punctuation, in order."""
    text = "# one\na: x # two\nb: 'y'\n# three\n"
    found = between(text)
    assert [one.text for one in found.values] == ["# one\n", ": ", " # two\n", ": ", "\n# three\n"]
    assert {one.field.kind for one in found.values} == {"plain"}
    assert [text[one.start : one.end] for one in found.values] == [one.text for one in found.values]
    assert between("").values == ()
    assert [one.text for one in between("a").values] == []


def replaced(text: str, **values: str) -> str:
    """A text in which scalars with these values have others, made by edits of the whole value."""
    found = read(text)
    changes = [
        Edit(one.start, one.end, values[one.text])
        for one in found.document.values
        if one.text in values
    ]
    return edit_yaml(text, found, changes)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: secret # c\n", "a: hidden # c\n"),
        ("a: 'secret'\n", "a: 'hidden'\n"),
        ('a: "secret"\nb: 1', 'a: "hidden"\nb: 1'),
        ("secret: a\n", "hidden: a\n"),
        ("[secret, b, secret]", "[hidden, b, hidden]"),
        ("a: &x secret\nb: *x\n", "a: &x hidden\nb: *x\n"),
        ('a: "sec\\u0072et"\n', 'a: "hidden"\n'),
        ("a: b", "a: b"),
    ],
)
def test_a_scalar_with_another_value(text: str, expected: str) -> None:
    """The way it is written, comments and layout stay."""
    assert replaced(text, secret="hidden") == expected


def edit_in(text: str, old: str, new: str) -> str:
    """A text in which a part of a scalar is another."""
    found = read(text)
    at = found.text.index(old)
    return edit_yaml(text, found, [Edit(at, at + len(old), new)])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: |\n  one old\n  two\nb: 1\n", "a: |\n  one new\n  two\nb: 1\n"),
        ("a: >\n  one old\n  two\n", "a: >\n  one new\n  two\n"),
        ("a: 'it''s old'\n", "a: 'it''s new'\n"),
        ('a: "x\\nold"\n', 'a: "x\\nnew"\n'),
        ("a: one\n  old\n", "a: one\n  new\n"),
        ("a: old old\n", "a: new old\n"),
    ],
)
def test_a_part_of_a_scalar(text: str, expected: str) -> None:
    """It is changed where it is written."""
    assert edit_in(text, "old", "new") == expected
    before, after = yaml.safe_load(text)["a"], yaml.safe_load(edit_in(text, "old", "new"))["a"]
    assert after == before.replace("old", "new", 1)


@pytest.mark.parametrize(
    ("text", "new", "expected"),
    [
        ("a: old\n", "x: y", 'a: "x: y"\n'),
        ("a: old # c\n", "# x", 'a: "# x" # c\n'),
        ("a: old\n", "", "a: \n"),
        ("a: old\n", "é: y", 'a: "é: y"\n'),
        ("a: old\n", "x: \ud800", 'a: "x: \\ud800"\n'),
        ("a: 'old'\n", "it's", 'a: "it\'s"\n'),
        ('a: "\\x6fld"\n', "new", 'a: "new"\n'),
        ("a: |\n  old\nb: 1\n", "x\ty\n\n\nz", 'a: "x\\ty\\n\\n\\nz\\n"\nb: 1\n'),
    ],
)
def test_a_value_that_must_be_written_in_another_way(text: str, new: str, expected: str) -> None:
    """In quotation marks, as JSON."""
    assert edit_in(text, "old", new) == expected


@given(
    st.dictionaries(
        st.text("ab", min_size=1, max_size=3), st.text("xy: #'\"\n-", max_size=8), max_size=4
    ),
    st.text("uv: #'\"\n-", max_size=6),
)
def test_any_value_may_be_any_other(document: dict[str, str], new: str) -> None:
    """What is loaded afterwards has the new value, and all else as before."""
    text = yaml.safe_dump(document, allow_unicode=True)
    found = read(text)
    for name, value in document.items():
        if not value:
            continue
        index = next(n for n, one in enumerate(found.document.values) if one.field.name == name)
        one = found.document.values[index]
        after = edit_yaml(text, found, [Edit(one.start, one.end, new)])
        loaded = yaml.load(after, Loader=yaml.BaseLoader)
        assert loaded[name] == new
        assert {key: loaded[key] for key in document if key != name} == {
            key: document[key] for key in document if key != name
        }
