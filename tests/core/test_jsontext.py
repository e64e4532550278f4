"""The reader of bodies: what msgspec reads it reads as `json` does, and `json` judges the rest."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mockllm.core.errors import RequestError
from mockllm.core.jsontext import MOST_VALUES, has_too_many_values, parse_object
from tests.cases import for_all

NUMBERS = st.one_of(
    st.integers(),
    st.integers(min_value=2**62, max_value=2**70),
    st.floats(allow_nan=False, allow_infinity=False),
)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, st.text("aé\u2028\0\ud83c🎉")),
    lambda inner: st.one_of(st.lists(inner), st.dictionaries(st.text("ab"), inner)),
    max_leaves=10,
)


@settings(max_examples=50)
@given(VALUES, st.booleans(), st.sampled_from([None, 1]))
def test_what_is_read_is_what_json_reads(value: object, ascii_only: bool, indent: int) -> None:
    """Large integers and half surrogate pairs among it."""
    text = json.dumps({"value": value}, ensure_ascii=ascii_only, indent=indent)
    body = text.encode("utf-8", "surrogatepass")
    assert repr(parse_object(body)) == repr(json.loads(body))


@for_all(
    "text",
    [
        '{"a": 1, "a": 2}',
        '{"a": {"b": 1, "b": 2}, "a": 3}',
        '{"a": -0, "b": -0.0}',
        '{"a": 18446744073709551616, "b": -9223372036854775809}',
        '{"a": 1234567890123456789012345678901234567890}',
        r'{"a": "\ud83c"}',
        r'{"a": "\ud83c\ud83d"}',
        r'{"\ud83c": 1}',
        r'{"a": "\ud83c\udf89 \u0000 \u2028"}',
        "\ufeff{}",
        " \n{}\r\t ",
        '{"a": 0.1e-400, "b": 1E5, "c": 123456789.123456789e-5}',
    ],
)
def test_odd_json_is_read_as_json_reads_it(text: str) -> None:
    """Also where msgspec refuses it."""
    body = text.encode("utf-8", "surrogatepass")
    assert repr(parse_object(body)) == repr(json.loads(body))


@for_all(
    "body",
    [
        *(b"", b"{", b"{}x", b"[]", b"null", b'"{}"', b"1", b"{'a': 1}", b'{"a": 01}'),
        *(b'{"a": "\x01"}', b'{"a": "\xff"}', b'{"a": 1,}', b'{"a": .5}', b'{"a": +1}'),
        *(b"[" * 5000, b'{"a":' * 5000, b'{"a": ' + b"1" * 5000 + b"}"),
        *(b'{"a": NaN}', b'{"a": [-Infinity]}', b'{"a": 1e400}'),
    ],
)
def test_what_is_no_object_is_refused(body: bytes) -> None:
    """With the reason that `json` finds."""
    with pytest.raises(RequestError) as refused:
        parse_object(body)
    assert "We could not parse the JSON body of your request (" in str(refused.value)


def test_it_works_without_msgspec() -> None:
    """`json` reads everything then."""
    program = (
        "import sys; sys.modules['msgspec'] = None\n"
        "from mockllm.core.jsontext import parse_object\n"
        "assert parse_object(b'{\"a\": [1, 2]}')['a'] == [1, 2]\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@settings(max_examples=50)
@given(VALUES)
def test_values_are_counted_outside_of_strings(value: object) -> None:
    """However many commas, quotes and backslashes strings have, they are no values."""
    text = json.dumps(',"\\' * 40)
    full = f'{{"value": {json.dumps(value)}, "many": [{text},'.encode()
    most = MOST_VALUES - _commas({"value": value, "many": [0]})
    few, many = b"0," * (most - 2), b"0," * (most + 1)
    assert not has_too_many_values(full + few + b"0]}")
    assert has_too_many_values(full + many + b"0]}")


def _commas(value: object) -> int:
    """The commas of a value's JSON text, outside of strings."""
    if isinstance(value, dict | list):
        inner = value.values() if isinstance(value, dict) else value
        return max(0, len(value) - 1) + sum(map(_commas, inner))
    return 0


def test_too_many_values_are_refused() -> None:
    """Reading them would take seconds in which no other request is answered."""
    body = b'{"value": [' + b"0," * (MOST_VALUES + 1) + b"0]}"
    with pytest.raises(RequestError, match="more than 300,000 values"):
        parse_object(body)
    assert len(parse_object(json.dumps({"text": ',"' * MOST_VALUES}).encode())["text"]) > 1
