"""Validation with JSON Schemas: as `jsonschema` does it, within bounds for those of clients."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from mockllm.core.later import NotDoneError, deferring
from mockllm.core.request import Request
from mockllm.play.matching.conditions import judged_expectations
from mockllm.scenario.model import Expect
from mockllm.scenario.schema_validation import SchemaGaveUpError, Steps, Validator, schema_flaw

VALUES = st.recursive(
    st.sampled_from([None, True, False, 0, 1, 1.0, 0.5, "", "a", "1"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abx"), inner, max_size=3)
    ),
    max_leaves=6,
)
SCHEMAS: tuple[Any, ...] = (
    {"uniqueItems": True},
    {"items": {"uniqueItems": True}},
    {"additionalProperties": False, "properties": {"a": True}, "patternProperties": {"^b": True}},
    {"additionalProperties": {"type": "string"}, "patternProperties": {"x|a": True}},
    {"patternProperties": {"[ab]": {"type": "number"}}},
    {"unevaluatedProperties": False, "patternProperties": {"^a": True}},
)


@given(st.sampled_from(SCHEMAS), st.lists(VALUES, max_size=4) | VALUES)
def test_a_value_is_judged_as_by_jsonschema(schema: Any, value: Any) -> None:
    """Keywords that search or compare are our own; what they accept is not."""
    assert schema_flaw(schema) is None
    right = Draft202012Validator(schema).is_valid(value)
    assert (Validator(schema).first_error(value, Steps(100_000)) is None) == right


@pytest.mark.slow
def test_many_items_are_compared_at_once() -> None:
    """Each with each other one, as `jsonschema` does it, would take minutes."""
    items = [{"number": number} for number in range(50_000)]
    validator = Validator({"uniqueItems": True})
    assert validator.errors(items, 1) == []
    assert len(validator.errors([*items, {"number": 7.0}], 1)) == 1


def test_steps_are_counted_where_they_are_given() -> None:
    """Schemas of clients are bounded, those of users are not."""
    schema = {"items": {"type": "integer"}}
    validator = Validator(schema)
    assert validator.errors(list(range(200)), 1) == []
    with pytest.raises(SchemaGaveUpError, match="it needs more than 100 steps"):
        validator.errors(list(range(200)), 1, Steps(100))


def problems_of(expect: Expect, request: Request) -> list[tuple[str, ...]]:
    return [condition.problems for condition in judged_expectations(expect, request, ())]


def test_a_large_body_is_validated_in_a_thread() -> None:
    """So that no stream waits for it; small ones are validated at once."""
    expect = Expect(schema={"properties": {"a": {"type": "integer"}}})
    small = Request("chat", "m", {"a": "x"})
    large = Request("chat", "m", {"a": "x" * 100_000})
    with deferring({}):
        ((problem,),) = problems_of(expect, small)
        assert problem == "request.schema: $.a: 'x' is not of type 'integer'"
        with pytest.raises(NotDoneError) as missing:
            problems_of(expect, large)
    errors = missing.value.read()
    with deferring({missing.value.key: lambda: errors}):
        ((problem,),) = problems_of(expect, large)
    assert problem.startswith("request.schema: $.a: 'xxx")
