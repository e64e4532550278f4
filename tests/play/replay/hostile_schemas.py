"""JSON Schemas that ask for too much: of work, of memory, of depth."""

from __future__ import annotations

from typing import Any


def nested(levels: int) -> dict[str, Any]:
    """Objects in objects."""
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}, "required": ["a"]}
    return schema


def lists(levels: int, items: float) -> dict[str, Any]:
    """Lists of lists, each with many items."""
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "array", "items": schema, "minItems": items}
    return schema


def doubled(levels: int) -> dict[str, Any]:
    """A few references that ask for 2 ** levels validations."""
    parts = {
        f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n + 1}"}, {"$ref": f"#/$defs/a{n + 1}"}]}
        for n in range(levels)
    }
    return {"$defs": {**parts, f"a{levels}": {"type": "integer"}}, "$ref": "#/$defs/a0"}


def spread(levels: int) -> dict[str, Any]:
    """A few references that ask for 10 ** levels fields."""
    names = list("abcdefghij")
    parts = {
        f"a{n}": {
            "type": "object",
            "properties": {name: {"$ref": f"#/$defs/a{n + 1}"} for name in names},
            "required": names,
        }
        for n in range(levels)
    }
    return {"$defs": {**parts, f"a{levels}": {"type": "integer"}}, "$ref": "#/$defs/a0"}


def field(schema: dict[str, Any]) -> dict[str, Any]:
    """An object with one field, as the parameters of a tool are."""
    return {"type": "object", "properties": {"a": schema}, "required": ["a"]}


MANY_STEPS = {"$defs": doubled(30)["$defs"], **field({"$ref": "#/$defs/a0"})}

GIVES_UP: dict[str, dict[str, Any]] = {
    "minLength": field({"type": "string", "minLength": 1e9}),
    "minItems": field(lists(3, 300)),
    "minItems of one list": field(lists(1, 1e9)),
    "minProperties": {"type": "object", "minProperties": 1e9},
    "depth": nested(400),
    "many values": field({"enum": list(range(6000))}),
    "many steps": MANY_STEPS,
    "many fields": spread(12),
    "branches": field({"anyOf": [{"$ref": "#/properties/a"}] * 2, "minItems": 3}),
    "names": field({"patternProperties": {"(x+x+)+y": {}}, "unevaluatedProperties": False}),
    "unique": field({"type": "array", "uniqueItems": True, "minItems": 5000}),
}
"""The value is empty, and the reason is reported."""

HAS_NO_VALUE: dict[str, tuple[dict[str, Any], str]] = {
    "pattern": (field({"type": "string", "pattern": r"^(\w+,?\s?)+;$"}), "does not match"),
    "counted repeats": (field({"pattern": "((a{1000}){1000}){1000}"}), "would be too large"),
    "long pattern": (field({"pattern": "a?" * 6000}), "is longer than"),
    "itself": ({"$ref": "#"}, "endless depth"),
    "endless": (field({"$ref": "#"}), "endless depth"),
    "remote": (field({"$ref": "http://127.0.0.1:1/x"}), "points outside of the schema"),
    "no schema": (field({"$ref": "#/required"}), "leads to no schema"),
    "numbers": (
        field({"type": "integer", "minimum": 10**400, "multipleOf": 1e-300}),
        "is not of type .integer.",
    ),
    "no anchor": (field({"$ref": "#here"}), "leads nowhere"),
}
"""No value is found; the message says why."""
