"""The values that are made up for each keyword of JSON Schema: the same ones, in every process."""

from __future__ import annotations

from typing import Any

import pytest

from mockllm.play.replay.auto.schema_sample import UnsatisfiableError
from tests.cases import for_all
from tests.play.replay.sampling import sample


def checked(schema: Any, expected: Any) -> None:
    """Checks value and type: `True == 1` and `1 == 1.0` are not enough."""
    value = sample(schema)
    assert (value, repr(value)) == (expected, repr(expected))


KINDS = [
    (True, "text"),
    ({}, "text"),
    ({"type": "string"}, "text"),
    ({"type": "integer"}, 1),
    ({"type": "number"}, 1),
    ({"type": "boolean"}, True),
    ({"type": "null"}, None),
    ({"type": "object"}, {}),
    ({"type": "array"}, []),
    ({"type": ["null", "string"]}, None),
    ({"type": ["string", "null"]}, "text"),
    ({"type": ["string", "integer"], "minimum": 3, "maxLength": 2}, "te"),
    ({"type": ["boolean", "string"], "not": {"const": True}}, False),
    ({"type": ["boolean", "string"], "not": {"type": "boolean"}}, "text"),
    ({"const": 5}, 5),
    ({"const": None}, None),
    ({"enum": ["b", "a"]}, "b"),
    ({"enum": [3, 4], "minimum": 4}, 4),
    ({"description": "of no kind"}, "text"),
]


@for_all(("schema", "expected"), KINDS)
def test_a_value_of_each_kind(schema: Any, expected: Any) -> None:
    """The smallest value of the first type; `const` and the values of `enum` as they are."""
    checked(schema, expected)


NUMBERS = [
    ({"minimum": 1}, 1),
    ({"minimum": 3}, 3),
    ({"maximum": -2}, -2),
    ({"maximum": 0.5}, 0),
    ({"multipleOf": 7}, 0),
    ({"multipleOf": 7, "minimum": 1}, 7),
    ({"type": "integer", "minimum": 2.5}, 3),
    ({"type": "integer", "maximum": -2.5}, -3),
    ({"type": "number", "minimum": 2.5}, 2.5),
    ({"type": "number", "maximum": -2.5}, -2.5),
    ({"type": "number", "minimum": 2.0, "maximum": 2.0}, 2),
    ({"type": "integer", "minimum": 10, "multipleOf": 7}, 14),
    ({"type": "integer", "exclusiveMinimum": 14, "multipleOf": 7}, 21),
    ({"type": "integer", "maximum": -10, "multipleOf": 7}, -14),
    ({"type": "integer", "exclusiveMaximum": -14, "multipleOf": 7}, -21),
    ({"type": "number", "exclusiveMinimum": 3.5}, 4),
    ({"type": "number", "exclusiveMaximum": -3.5}, -4),
    ({"type": "number", "exclusiveMinimum": 3}, 4),
    ({"type": "number", "exclusiveMaximum": -3}, -4),
    ({"type": "number", "exclusiveMinimum": 3, "multipleOf": 0.5}, 3.5),
    ({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 0.5}, 0.25),
    ({"type": "number", "exclusiveMinimum": 1, "exclusiveMaximum": 2}, 1.5),
    ({"type": "number", "exclusiveMinimum": 1, "maximum": 1.5}, 1.5),
    ({"type": "number", "minimum": 0.25, "maximum": 0.75}, 0.25),
    ({"type": "number", "minimum": 1.5, "exclusiveMinimum": 1.25, "maximum": 1.75}, 1.5),
    ({"type": "number", "maximum": -1.5, "exclusiveMaximum": -1.25}, -1.5),
    ({"type": "integer", "exclusiveMinimum": 1, "maximum": 5}, 2),
    ({"type": "integer", "minimum": -5, "exclusiveMaximum": 0}, -5),
    ({"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 2}, 1),
    ({"type": "integer", "minimum": 0, "maximum": 0}, 0),
]


@for_all(("schema", "expected"), NUMBERS)
def test_a_number_within_bounds(schema: Any, expected: Any) -> None:
    """1, 0 or the step where they fit, else the value nearest to a bound, else the middle."""
    checked(schema, expected)


TEXTS = [
    ({"minLength": 4}, "text"),
    ({"minLength": 5}, "textt"),
    ({"minLength": 8}, "texttext"),
    ({"minLength": 9}, "texttextt"),
    ({"minLength": 6.0}, "textte"),
    ({"maxLength": 4}, "text"),
    ({"maxLength": 3}, "tex"),
    ({"maxLength": 0}, ""),
    ({"minLength": 4, "maxLength": 4}, "text"),
    ({"minLength": 5, "maxLength": 5}, "textt"),
    ({"format": "other"}, "text"),
    ({"format": "date", "maxLength": 4}, "text"),
    ({"pattern": "^[A-Z]{3}$"}, "ABC"),
    ({"pattern": "^[A-Z]{5}$"}, "AAAAA"),
    ({"pattern": "^[0-9]{8}$"}, "00000000"),
    ({"pattern": "^[0-9]+$", "minLength": 7}, "0000000"),
    ({"pattern": "^A+$", "minLength": 3}, "AAA"),
    ({"pattern": "^x+$"}, "x"),
    ({"pattern": "^x+$", "minLength": 9}, "x" * 9),
    ({"pattern": "^[1]+$", "minLength": 9}, "1" * 9),
    ({"pattern": "^$"}, ""),
    *[
        ({"pattern": f"^[a-z]{{{n}}}$"}, "a" * n)
        for n in (6, 8, 10, 12, 16, 20, 24, 32, 36, 40, 64)
    ],
    *[({"pattern": f"^[A-Z]{{{n}}}$"}, "A" * n) for n in (4, 5, 6)],
]


@for_all(("schema", "expected"), TEXTS)
def test_a_text_within_bounds(schema: Any, expected: str) -> None:
    """`text` as often as it takes, cut to the length; for a pattern one of a few usual forms."""
    checked(schema, expected)


FORMATS = {
    "date-time": "2026-01-01T00:00:00Z",
    "date": "2026-01-01",
    "time": "00:00:00Z",
    "duration": "P1D",
    "email": "user@example.com",
    "hostname": "example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uri": "https://example.com/",
    "uri-reference": "https://example.com/",
    "uuid": "00000000-0000-4000-8000-000000000000",
    "json-pointer": "/a",
    "regex": "a",
}


@for_all("name", FORMATS)
def test_a_text_of_each_format(name: str) -> None:
    """Every format of the specification has a value that nothing real has."""
    checked({"type": "string", "format": name}, FORMATS[name])


ONE, TWO = {"const": 1}, {"const": 2}
OBJECTS = [
    ({"properties": {"a": ONE}}, {}),
    ({"properties": {"a": ONE, "b": TWO}, "required": ["b", "a"]}, {"a": 1, "b": 2}),
    ({"required": ["x"]}, {"x": "text"}),
    ({"required": ["x"], "additionalProperties": ONE}, {"x": 1}),
    ({"additionalProperties": {"type": "integer"}}, {}),
    ({"properties": {"a": ONE}, "required": ["z", "a"], "additionalProperties": TWO},
     {"a": 1, "z": 2}),
    ({"additionalProperties": {"type": "integer"}, "minProperties": 2}, {"key0": 1, "key1": 1}),
    ({"properties": {"a": ONE, "b": TWO}, "minProperties": 1}, {"a": 1}),
    ({"properties": {"a": ONE, "b": TWO}, "minProperties": 1, "required": ["b"]}, {"b": 2}),
    ({"properties": {"a": ONE, "b": TWO}, "minProperties": 2, "required": ["b"]}, {"b": 2, "a": 1}),
    ({"properties": {"a": ONE}, "minProperties": 3, "required": ["a"]},
     {"a": 1, "key0": "text", "key1": "text"}),
    ({"type": "object", "properties": {"a": True}, "required": ["a"]}, {"a": "text"}),
]  # fmt: skip


@for_all(("schema", "expected"), OBJECTS)
def test_an_object(schema: Any, expected: Any) -> None:
    """What is required, in the order of the properties, and more where a number is demanded."""
    checked(schema, expected)


ARRAYS = [
    ({"items": {"type": "integer"}}, []),
    ({"items": {"type": "integer"}, "minItems": 2}, [1, 1]),
    ({"minItems": 1}, ["text"]),
    ({"prefixItems": [ONE, {"type": "string"}]}, [1, "text"]),
    ({"prefixItems": [ONE], "minItems": 3, "items": TWO}, [1, 2, 2]),
    ({"type": "array", "prefixItems": [ONE, TWO], "maxItems": 1}, [1]),
    ({"type": "array", "contains": {"const": 4}}, [4]),
    ({"type": "array", "contains": {"const": 4}, "minItems": 2, "items": {"type": "integer"}},
     [4, 1]),
    ({"type": "array", "prefixItems": [ONE], "contains": TWO}, [1, 2]),
    ({"type": "array", "uniqueItems": True}, []),
    ({"type": "array", "uniqueItems": True, "minItems": 1}, ["text"]),
    ({"type": "array", "uniqueItems": True, "minItems": 3}, ["text", "text2", "text3"]),
    ({"type": "array", "uniqueItems": True, "minItems": 3, "items": {"type": "integer"}},
     [1, 2, 3]),
    ({"type": "array", "uniqueItems": True, "minItems": 2, "items": {"type": "boolean"}},
     [True, False]),
    ({"type": "array", "uniqueItems": True, "minItems": 3, "items": {"enum": [None, [], {}]}},
     [None, [], {}]),
    ({"type": "array", "uniqueItems": True, "minItems": 2, "items": {"type": "integer"},
      "prefixItems": [ONE]}, [1, 2]),
]  # fmt: skip


@for_all(("schema", "expected"), ARRAYS)
def test_an_array(schema: Any, expected: Any) -> None:
    """What is demanded and no more; where the items have to differ they are counted on."""
    checked(schema, expected)


def test_a_long_array_of_different_items() -> None:
    """A value can be counted on 999 times."""
    items: dict[str, Any] = {"type": "array", "uniqueItems": True, "minItems": 999}
    assert sample(items) == ["text", *(f"text{n}" for n in range(2, 1000))]
    items |= {"items": {"type": "integer", "minimum": 5}}
    assert sample(items) == list(range(5, 1004))
    assert len(sample({**items, "minItems": 1000})) == 1000


COMBINED = [
    ({"allOf": [{"properties": {"a": ONE}, "required": ["a"]},
                {"properties": {"b": TWO}, "required": ["b"]}]}, {"a": 1, "b": 2}),
    ({"type": "integer", "allOf": [{"minimum": 3}, {"maximum": 3}]}, 3),
    ({"allOf": [True, TWO]}, 2),
    ({"allOf": [{"required": ["a"]}, {"properties": {"a": ONE}}]}, {"a": 1}),
    ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, 1),
    ({"oneOf": [{"type": "string"}, {"type": "integer"}]}, "text"),
    ({"anyOf": [ONE, TWO], "minimum": 2}, 2),
    ({"oneOf": [ONE, TWO], "minimum": 2}, 2),
    ({"oneOf": [{"minimum": 0}, {"minimum": 5}], "type": "integer"}, 1),
    ({"anyOf": [{"type": "string"}], "oneOf": [{"type": "string"}]}, "text"),
    ({"anyOf": [False, ONE]}, 1),
    ({"anyOf": [True, ONE], "type": "integer"}, 1),
    ({"properties": {"k": ONE}, "required": ["k"],
      "anyOf": [{"properties": {"v": TWO}, "required": ["v"]}]}, {"k": 1, "v": 2}),
    ({"required": ["k"], "anyOf": [{"properties": {"v": TWO}}]}, {"k": "text"}),
]  # fmt: skip


@for_all(("schema", "expected"), COMBINED)
def test_combined_schemas(schema: Any, expected: Any) -> None:
    """`allOf` is merged; of `anyOf` and `oneOf` the first branch that gives a valid value."""
    checked(schema, expected)


LIST = {
    "properties": {"v": ONE, "next": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/n"}]}},
    "required": ["v", "next"],
}
REFERENCES = [
    ({"$ref": "#/$defs/a", "$defs": {"a": {"type": "integer"}}}, 1),
    ({"$ref": "#/$defs/a", "$defs": {"a": {"type": "integer", "minimum": 2}}, "minimum": 4}, 4),
    ({"$defs": {"a/b": ONE, "c~d": TWO, "e~1f": {"const": 3}},
      "properties": {"x": {"$ref": "#/$defs/a~1b"}, "y": {"$ref": "#/$defs/c~0d"},
                     "z": {"$ref": "#/$defs/e~01f"}},
      "required": ["x", "y", "z"]}, {"x": 1, "y": 2, "z": 3}),
    ({"definitions": {"a": TWO}, "properties": {"x": {"$ref": "#/definitions/a"}},
      "required": ["x"]}, {"x": 2}),
    ({"allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}],
      "$defs": {"a": {"$ref": "#/$defs/c", "minimum": 3}, "b": {"maximum": 3},
                "c": {"type": "integer", "minimum": 1}}}, 3),
    ({"anyOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": TWO}}, 2),
    ({"$ref": "#/$defs/n", "$defs": {"n": LIST}}, {"v": 1, "next": None}),
    ({"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/a"}, "$defs": {"a": ONE}}, [1]),
    ({"$ref": "#/prefixItems/1", "prefixItems": [ONE, TWO]}, 2),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "expected"), REFERENCES)
def test_references(schema: Any, expected: Any) -> None:
    """References within the schema are followed (RFC 6901 escapes and all); keywords beside one
    hold too."""
    checked(schema, expected)


ENDLESS = {"properties": {"next": {"$ref": "#/$defs/n"}}, "required": ["next"]}
PROBLEMS = [
    (False, "nothing was tried"),
    ({"type": "nope"},
     "the schema is not valid: 'nope' is not valid under any of the given schemas"),
    ({"const": 1, "type": "string"}, "$: 1 is not of type 'string'"),
    ({"enum": [1, 2], "minimum": 3}, "$: 2 is less than the minimum of 3"),
    ({"minimum": 3, "maximum": 2}, "nothing was tried"),
    ({"pattern": "^never-this$"}, "$: 'text' does not match '^never-this$'"),
    ({"$ref": "#/$defs/x"}, "the reference '#/$defs/x' leads nowhere"),
    ({"$ref": "other.json"}, "the reference 'other.json' points outside of the schema"),
    ({"$ref": "#/a/b", "a": [1]}, "the reference '#/a/b' leads nowhere"),
    ({"$ref": "#/a/5", "a": [1]}, "the reference '#/a/5' leads nowhere"),
    ({"$ref": "#/a/b", "a": 1}, "the reference '#/a/b' leads nowhere"),
    ({"$ref": "#/$defs/n", "$defs": {"n": ENDLESS}},
     "the schema demands a value of endless depth"),
    ({"properties": {"a": False}, "required": ["a"]}, "$: False schema does not allow None"),
    ({"properties": {"a": {"const": 1, "type": "string"}}, "required": ["a"]},
     "$.a: 1 is not of type 'string'"),
    ({"not": {}}, "$: 'text' should not be valid under {}"),
    ({"minLength": 3, "maxLength": 2}, "$: 'te' is too short"),
    ({"type": "array", "minItems": 2, "maxItems": 1}, "$: ['text'] is too short"),
    ({"type": "array", "uniqueItems": True, "minItems": 2, "items": ONE}, "$[1]: 1 was expected"),
    ({"anyOf": [False]}, "nothing was tried"),
    ({"anyOf": [ONE], "minimum": 2}, "$: 1 is less than the minimum of 2"),
]  # fmt: skip


@for_all(("schema", "message"), PROBLEMS)
def test_what_has_no_value(schema: Any, message: str) -> None:
    """The message has the part of the schema that the last value tried does not satisfy."""
    with pytest.raises(UnsatisfiableError) as caught:
        sample(schema)
    assert str(caught.value) == message


def test_a_first_value_that_fits_is_used() -> None:
    """A field has the first value that its own schema allows, not the first one tried."""
    fields = {"properties": {"a": {"enum": [1, 2, 3], "minimum": 2}}, "required": ["a"]}
    assert sample(fields) == {"a": 2}


def test_depth_is_bounded() -> None:
    """Forty levels of references are followed, and no more."""

    def nested(levels: int) -> dict[str, Any]:
        names = {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(levels)}
        return {"$ref": "#/$defs/d0", "$defs": {**names, f"d{levels}": ONE}}

    assert sample(nested(39)) == 1
    with pytest.raises(UnsatisfiableError, match="endless depth"):
        sample(nested(40))
