"""Typed netstrings: what is written is read again, and nothing else is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.core.errors import WireError
from mockllm.record.importers.flows import MAX_DEPTH, IncompleteError, values
from tests.cases import for_all
from tests.record.importers.tnetstrings import dumps

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(10**19), 10**19)
    | st.floats(allow_nan=False)
    | st.binary()
    | st.text()
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def loads(data):
    """The value in data that have nothing else."""
    read = list(values(data))
    if len(read) != 1:
        raise WireError(f"{len(read)} values")
    return read[0]


EXAMPLES = {
    b"0:~": None,
    b"4:true!": True,
    b"5:12345#": 12345,
    b"3:2.5^": 2.5,
    b"11:hello world,": b"hello world",
    b"2:\xc3\xa9;": "\u00e9",
    b"19:5:12345#4:true!1:0#]": [12345, True, 0],
    b"11:1:a;4:true!}": {"a": True},
    b"11:1:a,4:true!}": {"a": True},
    b"0:]": [],
    b"0:}": {},
}

INVALID = {
    b"x": "byte 0: not a length and a colon",
    b"05:hello,": "byte 0: not a length and a colon",
    b"1234567890123:": "byte 0: not a length and a colon",
    b"5:hello?": "byte 7: there is no type '\\?'",
    b"4:trux!": "byte 2: b'trux' is no value of the type '!'",
    b"1:a#": "byte 2: b'a' is no value of the type '#'",
    b"4:1_.0^": "byte 2: b'1_.0' is no value of the type '\\^'",
    b"1:a~": "byte 2: b'a' is no value of the type '~'",
    b"6:9:abc,]": "byte 2: a value is longer than what holds it",
    b"4:1:a;}": "byte 2: a mapping is no list of names and values",
    b"8:1:1#1:2#}": "byte 2: a mapping is no list of names and values",
}


@for_all("data", EXAMPLES)
def test_examples(data):
    """Every type is read as its value."""
    assert loads(data) == EXAMPLES[data]


@for_all("data", INVALID)
def test_malformed_data(data):
    """Malformed data are an error with their offset."""
    with pytest.raises(WireError, match=INVALID[data]) as caught:
        loads(data)
    assert not isinstance(caught.value, IncompleteError)


@given(st.lists(VALUES, max_size=4))
def test_values_are_read_as_written(given_values):
    """Values one after the other are read as they were written."""
    assert list(values(b"".join(map(dumps, given_values)))) == given_values


@given(VALUES, st.data())
def test_data_that_end_early(value, data):
    """Data that end inside a value are incomplete, wherever that is."""
    written = dumps(value)
    cut = data.draw(st.integers(1, len(written) - 1))
    with pytest.raises(IncompleteError):
        loads(written[:cut])


@given(st.binary() | st.text("0123456789:,;#^!~]}trufalse", max_size=30).map(str.encode))
def test_any_bytes(data):
    """Any bytes are a value, or an error of the format."""
    try:
        loads(data)
    except WireError:
        return
    assert data[-1:] in b",;#^!~]}"


@given(VALUES)
def test_nesting_is_bounded(value):
    """Deep nesting is an error, and no overflow of the stack."""
    data = dumps(value)
    for _ in range(MAX_DEPTH + 1):
        data = b"%d:%b]" % (len(data), data)
    with pytest.raises(WireError, match="nested more than"):
        loads(data)
