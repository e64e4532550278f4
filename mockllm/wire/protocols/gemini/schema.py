"""Gemini's own schemas, a subset of OpenAPI 3.0's, as JSON Schema.

https://ai.google.dev/api/caching#Schema
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from mockllm.wire.protocols.records import Json

_COUNTS = ("minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties")
_MOST_DIGITS = 19
"""Of a count, which is an int64."""

_SAME = ("title", "description", "enum", "required", "minimum", "maximum", "pattern", "default")


def get(value: object, name: str) -> Any:
    """A field by its camelCase name, or by its snake_case name: protocol buffers accept both in
    JSON."""
    if not isinstance(value, Mapping):
        return None
    item = value.get(name)
    return value.get(snake(name)) if item is None else item


@lru_cache(maxsize=256)
def snake(name: str) -> str:
    """`systemInstruction` as `system_instruction`."""
    return "".join(f"_{char.lower()}" if char.isupper() else char for char in name)


def json_schema(schema: object) -> Json:
    """A schema with lower-case types, `nullable` as a type, and counts as numbers. Keywords that
    JSON Schema does not have (`propertyOrdering`, `example`) are left out."""
    if not isinstance(schema, Mapping):
        return {}
    out: Json = {name: schema[name] for name in _SAME if schema.get(name) is not None}
    for name in _COUNTS:
        count = get(schema, name)
        digits = str(count) if isinstance(count, (int, str)) else ""
        if digits.isdecimal() and len(digits) <= _MOST_DIGITS:
            out[name] = int(digits)
    properties, items, any_of = schema.get("properties"), schema.get("items"), get(schema, "anyOf")
    if isinstance(properties, Mapping):
        out["properties"] = {name: json_schema(value) for name, value in properties.items()}
    if isinstance(items, Mapping):
        out["items"] = json_schema(items)
    if isinstance(any_of, list):
        out["anyOf"] = [json_schema(item) for item in any_of]
    kind = schema.get("type")
    if isinstance(kind, str) and kind.upper() != "TYPE_UNSPECIFIED":
        out["type"] = kind.lower()
    return _nullable(out) if schema.get("nullable") is True else out


def _nullable(schema: Json) -> Json:
    if "type" in schema:
        schema["type"] = [schema["type"], "null"]
    if "anyOf" in schema:
        schema["anyOf"] = [*schema["anyOf"], {"type": "null"}]
    if "enum" in schema and None not in schema["enum"]:
        schema["enum"] = [*schema["enum"], None]
    return schema
