"""Shapes of JSON values, and what differs between two."""

from hypothesis import given
from hypothesis import strategies as st

from mockllm.conformance.drift.shapes import (
    JsonPlace,
    Shape,
    missing_fields,
    retyped_fields,
    unknown_fields,
    unknown_kinds,
)
from tests.strategies import json_values


def shape(*values, free=()):
    """The shape of values without types of events."""
    made = Shape(free)
    for value in values:
        made.add(value)
    return made


def paths(places):
    """The paths, in order."""
    return sorted(place.path for place in places)


def test_indexes_are_left_out_and_types_are_in_paths():
    """Items of a list are one place, but for objects that have a type."""
    made = shape({"a": [{"b": 1}, {"c": 2}], "d": [{"type": "text", "e": 3}], "f": {"type": "x"}})
    expected = ["a", "a[].b", "a[].c", "d", "d[text].e", "d[text].type", "f", "f[x].type"]
    assert paths(made.fields) == expected


def test_what_a_model_writes_has_no_shape():
    """The object of arguments is one value; a list of that name is looked into."""
    made = shape({"args": {"city": 1}}, {"args": [{"type": "t"}]}, free=["args"])
    assert paths(made.fields) == ["args", "args[t].type"]


def test_differences():
    """Only of objects that both know: an unknown object is one difference, and not its fields."""
    before = shape({"a": 1, "b": {"c": "x"}, "gone": 1, "never": []}, {"a": 2, "b": {"c": "y"}})
    before.add({"a": 1, "gone": 1})
    after = shape({"a": "1", "b": {"c": None}, "new": {"deep": 1}, "never": [{"d": 1}]})
    assert paths(unknown_fields(before, after)) == ["new"]
    assert paths(retyped_fields(before, after)) == ["a"]
    assert paths(missing_fields(before, after)) == []  # one of the objects had no `gone`
    before = shape({"a": 1, "gone": 1})
    assert paths(missing_fields(before, after)) == ["gone"]


def test_new_types_of_objects():
    """An item of a known list whose type nobody knows."""
    before = shape({"items": [{"type": "text"}]})
    after = shape({"items": [{"type": "text"}, {"type": "video", "url": "u"}]})
    assert paths(unknown_kinds(before, after)) == ["items[video]"]
    assert paths(unknown_fields(before, after)) == []


@given(st.lists(json_values))
def test_a_shape_is_that_of_its_values_together(values):
    """Merging shapes gives the shape of all values, and a shape has no difference to itself."""
    whole, merged = shape(*values), Shape()
    for value in values:
        merged.merge(shape(value))
    assert whole.objects == merged.objects
    assert {place: (f.types, f.count) for place, f in whole.fields.items()} == {
        place: (f.types, f.count) for place, f in merged.fields.items()
    }
    for differences in (unknown_fields, unknown_kinds, missing_fields, retyped_fields):
        assert not list(differences(whole, merged))


def test_places_are_written_with_their_event():
    """As messages show them."""
    assert str(JsonPlace("delta", "a.b")) == "delta: a.b"
    assert str(JsonPlace("", "a.b")) == "a.b"
