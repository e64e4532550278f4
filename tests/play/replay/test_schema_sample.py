"""Generated values satisfy their schemas."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from mockllm.play.replay.auto.schema_sample import UnsatisfiableError
from tests.cases import for_all
from tests.play.replay.sampling import sample

SCHEMAS = [
    {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
    {"type": "object"},
    {"type": "object", "properties": {"a": {"type": "string"}}},
    {"type": "string", "format": "date-time"},
    {"type": "string", "format": "email", "minLength": 3},
    {"type": "string", "minLength": 10, "maxLength": 12},
    {"type": "string", "maxLength": 2},
    {"type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}$"},
    {"type": "string", "pattern": r"^[A-Z]{3}$"},
    {"type": "string", "pattern": r"^[0-9a-f]{32}$"},
    {"type": "integer", "minimum": 5},
    {"type": "integer", "exclusiveMinimum": 5, "multipleOf": 4},
    {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
    {"type": "number", "maximum": -3},
    {"type": "array", "items": {"type": "integer"}, "minItems": 3, "uniqueItems": True},
    {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "minItems": 2},
    {"type": "array", "contains": {"const": 7}},
    {"enum": ["b", "c"]},
    {"const": None},
    {"type": ["null", "string"]},
    {"anyOf": [{"type": "integer", "minimum": 3}, {"type": "null"}]},
    {"oneOf": [{"type": "integer"}, {"type": "number", "multipleOf": 0.5}]},
    {"allOf": [{"required": ["a"]}, {"properties": {"a": {"type": "boolean"}}}]},
    {"type": "object", "minProperties": 2, "additionalProperties": {"type": "integer"}},
    {
        "$defs": {"answer": {"type": "object", "properties": {"n": {"type": "integer"}},
                             "required": ["n"]}},
        "type": "object",
        "properties": {"list": {"type": "array", "items": {"$ref": "#/$defs/answer"},
                                "minItems": 1}},
        "required": ["list"],
    },
    {
        "$defs": {"tree": {"type": "object", "properties": {
            "left": {"anyOf": [{"$ref": "#/$defs/tree"}, {"type": "null"}]}},
            "required": ["left"]}},
        "$ref": "#/$defs/tree",
    },
    {"properties": {"a": True}, "required": ["a"]},
    {},
]  # fmt: skip


@for_all("schema", SCHEMAS, ids=str)
def test_a_sample_satisfies_its_schema(schema):
    """The value is valid and always the same."""
    value = sample(schema)
    assert Draft202012Validator(schema).is_valid(value)
    assert sample(schema) == value


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"type": "string", "pattern": "^(?!)"}, "does not match"),
        ({"enum": []}, "nothing was tried"),
        ({"type": "integer", "minimum": 3, "maximum": 2}, "nothing was tried"),
        ({"type": "nonsense"}, "not valid"),
        ({"$ref": "#/$defs/none"}, "leads nowhere"),
        ({"$ref": "https://example.com/schema"}, "outside"),
        (
            {
                "$defs": {"a": {"properties": {"a": {"$ref": "#/$defs/a"}}, "required": ["a"]}},
                "$ref": "#/$defs/a",
            },
            "endless",
        ),
    ],
)
def test_a_schema_without_a_sample_is_an_error(schema, message):
    """A schema for which no value is found is an error, never a wrong value."""
    with pytest.raises(UnsatisfiableError, match=message):
        sample(schema)


simple = st.recursive(
    st.sampled_from(
        [{"type": t} for t in ("string", "integer", "number", "boolean", "null")]
        + [{"enum": [1, "x"]}, {"const": 3}, {"type": "string", "minLength": 6}]
    ),
    lambda inner: st.one_of(
        st.builds(
            lambda items, n: {"type": "array", "items": items, "minItems": n},
            inner,
            st.integers(0, 2),
        ),
        st.builds(
            lambda props: {"type": "object", "properties": props, "required": list(props)},
            st.dictionaries(st.text("abc", min_size=1, max_size=3), inner, max_size=3),
        ),
        st.builds(lambda a, b: {"anyOf": [a, b]}, inner, inner),
    ),
    max_leaves=8,
)


@given(simple)
def test_any_ordinary_schema_has_a_sample(schema):
    """Schemas of common keywords always get a valid value."""
    assert Draft202012Validator(schema).is_valid(sample(schema))
