"""The string values of a JSON text: their texts, positions, paths, and what they belong to."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.record.redaction.walk.documents import complete_json
from mockllm.record.redaction.walk.json_strings import Field, Reader, StringValue
from mockllm.wire.protocols import PROTOCOLS
from tests.cases import for_all


def read(source: str, *, every: bool = False, base: int = 0) -> list[StringValue] | None:
    return Reader(every=every).read(source, base)


def facts(found: list[StringValue] | None) -> list[tuple[str, Any, str, str]]:
    """Text, path, name and kind of each value."""
    assert found is not None
    return [(one.text, one.field.path, one.field.name, one.field.kind) for one in found]


SOURCE = '{"a": "x", "b": [1, "y", {"c": "z", "d": null}], "e": {"f": -1.5e3, "g": true}}'


def test_the_strings_of_a_document() -> None:
    """Their paths lead to them; the name is that of the nearest field."""
    assert facts(read(SOURCE)) == [
        ("x", ("a",), "a", "string"),
        ("y", ("b", 1), "b", "string"),
        ("z", ("b", 2, "c"), "c", "string"),
    ]
    assert facts(read('["x", ["y"]]')) == [("x", (0,), "", "string"), ("y", (1, 0), "", "string")]
    assert facts(read('"x"')) == [("x", (), "", "string")]
    assert read("[1, true, null]") == []


def test_names_and_numbers_on_request() -> None:
    """In the order of the text; constants are neither."""
    assert facts(read(SOURCE, every=True)) == [
        ("a", (), "", "name"),
        ("x", ("a",), "a", "string"),
        ("b", (), "", "name"),
        ("1", ("b", 0), "b", "number"),
        ("y", ("b", 1), "b", "string"),
        ("c", ("b", 2), "b", "name"),
        ("z", ("b", 2, "c"), "c", "string"),
        ("d", ("b", 2), "b", "name"),
        ("e", (), "", "name"),
        ("f", ("e",), "e", "name"),
        ("-1.5e3", ("e", "f"), "f", "number"),
        ("g", ("e",), "e", "name"),
    ]


@pytest.mark.parametrize("every", [False, True])
def test_the_positions_of_values(every: bool) -> None:
    """Counted from the beginning of the document that the JSON is a part of."""
    before = "data: "
    found = read(SOURCE, every=every, base=len(before))
    assert found
    for one in found:
        assert (before + SOURCE)[one.start : one.end] == one.text
        assert one.written is None
        assert one.span(0, 1) == (one.start, one.start + 1)


@pytest.mark.parametrize("every", [False, True])
def test_escapes(every: bool) -> None:
    """The text is without them, and a part of it is where it was written."""
    source = r'{"k\"": "a\u0041\n\ud83d\ude00z", "l": ["\\"]}'
    found = read(source, every=every)
    assert found is not None
    strings = [one for one in found if one.field.kind == "string"]
    assert [string.text for string in strings] == ["aA\n😀z", "\\"]
    assert strings[0].field == Field(('k"',), 'k"')
    assert [source[slice(*strings[0].span(n, n + 1))] for n in range(5)] == [
        "a",
        r"\u0041",
        r"\n",
        r"\ud83d\ude00",
        "z",
    ]
    start, end = strings[0].span(0, 5)
    assert source[start - 1] == source[end] == '"'


@pytest.mark.parametrize(
    "source",
    [
        "",
        "{",
        '{"a": "b"',
        '{"a" "b"}',
        "no",
        '{"a": "\\x"}',
        "[1,]",
        '{"a": "b"} x',
        '{"a": "b"}\\',
        '"a\\',
        "[" * 100_000,
    ],
)
def test_what_is_no_json(source: str) -> None:
    """It has no values, whatever strings are in it."""
    assert read(source) is None


@pytest.mark.parametrize("number", ["800-555-0199", "01", "1.", "-", "1e", "+1", "1.2.3", "--1"])
def test_a_number_that_is_none_is_no_json(number: str) -> None:
    """Whatever was read before: JSON with a number at its place makes it none."""
    source = '{"zz": %s, "b": "x"}'
    assert read(source % 1) is not None
    assert read(source % number) is None


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.text(max_size=4) | st.sampled_from(["type", "index"]), inner, max_size=3
        )
    ),
    max_leaves=8,
)


def strings_of(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[str, tuple[Any, ...]]]:
    if isinstance(value, str):
        return [(value, path)]
    if isinstance(value, dict):
        return [one for name, inner in value.items() for one in strings_of(inner, (*path, name))]
    if isinstance(value, list):
        return [one for n, inner in enumerate(value) for one in strings_of(inner, (*path, n))]
    return []


@given(json_values, st.booleans(), st.sampled_from([None, 1]), st.booleans())
def test_all_strings_of_any_document(
    value: Any, ascii_only: bool, indent: int | None, every: bool
) -> None:
    """However it is written, each string value is found once, with its path and its position."""
    source = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    found = read(source, every=every)
    assert found is not None
    values = [one for one in found if one.field.kind == "string"]
    assert [(one.text, one.field.path) for one in values] == strings_of(value)
    for one in values:
        start, end = one.span(0, len(one.text))
        assert json.loads(f'"{source[start:end]}"') == one.text


def test_a_string_may_look_like_a_name() -> None:
    """Names are what a colon follows, with white space between or not."""
    reader = Reader()
    for name in ("a", "b"):
        assert facts(reader.read(f'{{"{name}"\n :"x", "l": ["a", "b"]}}')) == [
            ("x", (name,), name, "string"),
            ("a", ("l", 0), "l", "string"),
            ("b", ("l", 1), "l", "string"),
        ]


def ids(source: str) -> list[tuple[str, ...]]:
    found = read(source)
    assert found is not None
    return [one.ids for one in found]


def test_what_identifies_the_item_of_a_stream() -> None:
    """The type of the event first, then the ids and indexes of all objects around a string."""
    event = (
        '{"type": "delta", "index": 3, "item_id": "i1", "other": "y", '
        '"delta": {"index": 4, "text": "x"}}'
    )
    assert ids(event) == [
        ("delta", "3", "i1"),
        ("delta", "3", "i1"),
        ("delta", "3", "i1"),
        ("delta", "3", "i1", "4"),
    ]
    assert ids('{"a": {"type": "no"}, "b": "x"}') == [("",), ("",)]
    assert ids('{"type": 5, "b": "x"}') == [("",)]
    assert ids('{"b": "x", "type": "t"}') == [("t",), ("t",)]
    assert ids('{"choices": [{"index": 0, "d": "x"}, {"index": 1, "d": "y"}]}') == [
        ("", "0"),
        ("", "1"),
    ]
    assert ids('{"type": "a", "type": "b", "c": "x"}') == [("a",)] * 3


def test_the_fields_that_identify_an_item() -> None:
    """Of all APIs, as numbers and as strings."""
    for name in {name for protocol in PROTOCOLS.values() for name in protocol.fields.item_ids}:
        assert ids(f'{{"{name}": 7, "x": "y"}}') == [("", "7")]
        assert ids(f'{{"{name}": "7", "x": "y"}}') == [("", "7"), ("", "7")]
        assert ids(f'{{"{name}": null, "x": "y"}}') == [("",)]


@for_all(
    ("text", "whole"),
    [
        ('{"a": "b', '{"a": "b"}'),
        ('{"a": ["b", "c', '{"a": ["b", "c"]}'),
        ('[{"a": 1}, {"b": "c"', '[{"a": 1}, {"b": "c"}]'),
        ('{"a": "b",', '{"a": "b"}'),
        ('{"a": "b", \n', '{"a": "b"}'),
        ('{"a":', '{"a":null}'),
        ('{"a": ', '{"a":null}'),
        ('{"a', '{"a":null}'),
        ('{"a"', '{"a":null}'),
        ('{"a": "b\\', '{"a": "b"}'),
        ('{"a": "b\\u00', '{"a": "b"}'),
        ('{"a": "b\\u0041', '{"a": "b\\u0041"}'),
        ('{"a": "}', '{"a": "}"}'),
        ('{"a": "\\"}', '{"a": "\\"}"}'),
        ("[", "[]"),
        ("{", "{}"),
        ('"a', '"a"'),
        ('{"a": 1', '{"a": 1}'),
    ],
)
def test_json_that_breaks_off(text: str, whole: str) -> None:
    """It is closed so that all of its strings can be read."""
    assert complete_json(text) == whole
    assert Reader().read(whole) is not None


@for_all("text", ["", "no", "{}", '{"a": "b"}', '"a"', '{"a": tr', "[1 2", "}", '{"a" "b"', "]["])
def test_what_cannot_be_completed(text: str) -> None:
    """What is whole, and what is no JSON so far."""
    assert complete_json(text) is None


@given(json_values, st.data())
def test_any_beginning_of_a_document_in_a_string(value: Any, data: st.DataObject) -> None:
    """Broken off inside of a string or right after one, a document can always be completed."""
    source = json.dumps({"a": [value, "end"]})
    at = data.draw(st.sampled_from([n for n, char in enumerate(source) if char == '"'][-2:]))
    whole = complete_json(source[: at + 1])
    assert whole is not None
    assert json.loads(whole)["a"][0] == value


def test_a_field_after_a_nested_object_has_the_ids_of_its_own_object() -> None:
    """An id in an object that ended before does not identify what comes after it."""
    source = '{"a": {"item_id": "inner", "x": "1"}, "item_id": "own", "delta": "2"}'
    found = read(source)
    assert found is not None
    ids = {one.field.name: one.ids for one in found}
    assert ids["delta"] == ("", "own")
    assert ids["x"] == ("", "own", "inner")


@pytest.mark.parametrize(
    ("broken", "text"),
    [
        (r'{"a": "b\\', "b\\"),
        (r'{"a": "b\\\\', "b\\\\"),
        (r'{"a": "b\\\n', "b\\\n"),
        ('{"a": "b\\', "b"),
        (r'{"a": "b\\\u00', "b\\"),
        (r'{"a": "b\u00', "b"),
    ],
)
def test_json_that_breaks_off_after_backslashes(broken: str, text: str) -> None:
    """A pair of backslashes is whole; one alone begins an escape."""
    whole = complete_json(broken)
    assert whole is not None
    (found,) = read(whole) or ()
    assert found.text == text


def test_lists_of_numbers_change_no_position() -> None:
    """Embeddings are passed over, and the strings around them are where they were."""
    numbers = ", ".join(f"-0.{n}e-5" for n in range(1000))
    source = f'{{"a": "x", "data": [{{"embedding": [{numbers}], "b": ["y", 1]}}], "c": "z"}}'
    found = read(source)
    assert found is not None
    assert [(one.field.path, one.text, source[one.start : one.end]) for one in found] == [
        (("a",), "x", "x"),
        (("data", 0, "b", 0), "y", "y"),
        (("c",), "z", "z"),
    ]


@pytest.mark.slow
def test_a_long_string_that_breaks_off_takes_linear_time() -> None:
    """JSON that breaks off in a string with many quotation marks takes about as long as the same
    JSON with its end."""
    whole = json.dumps({"a": 'a "quoted" word, ' * 10_000})

    def seconds(source: str) -> float:
        times = []
        for _ in range(3):
            began = time.process_time()
            Reader().read(source)
            times.append(time.process_time() - began)
        return min(times)

    assert Reader().read(whole[:-10]) is None
    assert seconds(whole[:-10]) < 20 * seconds(whole) + 0.05
