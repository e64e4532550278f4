"""Makes a value that satisfies a JSON Schema: always the same one, and small.

It covers the keywords that schemas of tools and responses use. Each value is validated before it is
returned, so no wrong one is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from mockllm.errors import MockLLMError

__all__ = ["UnsatisfiableError", "sample"]

_MAX_DEPTH = 40

_FORMATS = {
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

_PATTERN_CANDIDATES = (
    "a", "A", "0", "1", "aa", "00", "abc", "ABC", "123", "0000", "1234", "12345", "a1", "A1",
    "a-b", "a_b", "abc-123", "2026-01-01", "12:00", "12:00:00", "1.0", "1.0.0", "v1.0.0",
    "user@example.com", "https://example.com/", "+15550100", "#000000", "/a", "a/b", "A-1",
    "AB", "AAA", "USD", "en", "en-US", "",
)  # fmt: skip


class UnsatisfiableError(MockLLMError):
    """No value was found for the schema."""


def sample(schema: Any) -> Any:
    """A value for `schema`.

    Raises:
        UnsatisfiableError: none was found; the message names the part of the schema.
    """
    # Imported here: importing jsonschema takes longer than starting the server.
    from jsonschema import Draft202012Validator, SchemaError

    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        raise UnsatisfiableError(f"the schema is not valid: {error.message}") from error
    validator = Draft202012Validator(schema)
    problem = "nothing was tried"
    for value in _candidates(schema, schema, 0):
        violation = next(iter(validator.iter_errors(value)), None)
        if violation is None:
            return value
        problem = f"{violation.json_path}: {violation.message}"
    raise UnsatisfiableError(problem)


def _candidates(schema: Any, root: Any, depth: int) -> Iterator[Any]:
    """Values to try, the most likely first. They are few, because callers combine them."""
    if depth > _MAX_DEPTH:
        raise UnsatisfiableError("the schema demands a value of endless depth")
    if schema is True or schema == {}:
        yield "text"
        return
    if schema is False:
        return
    if "$ref" in schema:
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        schema = {**_resolve(schema["$ref"], root), **rest}
        yield from _candidates(schema, root, depth + 1)
        return
    if "const" in schema:
        yield schema["const"]
    elif "enum" in schema:
        yield from schema["enum"]
    elif "allOf" in schema:
        merged = {key: value for key, value in schema.items() if key != "allOf"}
        for other in schema["allOf"]:
            merged = _merge(merged, _flat(other, root))
        yield from _candidates(merged, root, depth + 1)
    elif "anyOf" in schema or "oneOf" in schema:
        key = "anyOf" if "anyOf" in schema else "oneOf"
        rest = {name: value for name, value in schema.items() if name != key}
        for option in schema[key]:
            yield from _option(rest, option, root, depth)
    else:
        yield from _typed(schema, root, depth)


def _option(rest: dict[str, Any], option: Any, root: Any, depth: int) -> Iterator[Any]:
    """The candidates of one branch of `anyOf`; none where it recurses without end."""
    try:
        yield from _candidates(_merge(rest, _flat(option, root)), root, depth + 1)
    except UnsatisfiableError:
        return


def _flat(schema: Any, root: Any) -> Any:
    if isinstance(schema, dict) and "$ref" in schema:
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        return {**_flat(_resolve(schema["$ref"], root), root), **rest}
    return schema


def _merge(left: Any, right: Any) -> Any:
    if not isinstance(left, dict) or not isinstance(right, dict):
        return right if isinstance(right, dict) or right is False else left
    merged = {**left, **right}
    if "properties" in left and "properties" in right:
        merged["properties"] = {**left["properties"], **right["properties"]}
    if "required" in left and "required" in right:
        merged["required"] = [*left["required"], *right["required"]]
    return merged


def _resolve(reference: str, root: Any) -> Any:
    if not reference.startswith("#"):
        raise UnsatisfiableError(f"the reference {reference!r} points outside of the schema")
    node = root
    for step in reference[1:].split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        try:
            node = node[int(name)] if isinstance(node, list) else node[name]
        except (KeyError, IndexError, ValueError, TypeError) as error:
            raise UnsatisfiableError(f"the reference {reference!r} leads nowhere") from error
    return node


def _typed(schema: dict[str, Any], root: Any, depth: int) -> Iterator[Any]:
    kinds = schema.get("type") or _implied(schema)
    for kind in [kinds] if isinstance(kinds, str) else kinds:
        match kind:
            case "object":
                yield _object(schema, root, depth)
            case "array":
                yield _array(schema, root, depth)
            case "string":
                yield from _strings(schema)
            case "integer" | "number":
                yield from _numbers(schema, whole=kind == "integer")
            case "boolean":
                yield from (True, False)
            case "null":
                yield None


def _implied(schema: dict[str, Any]) -> str:
    if "properties" in schema or "required" in schema or "additionalProperties" in schema:
        return "object"
    if "items" in schema or "minItems" in schema or "prefixItems" in schema:
        return "array"
    if "minimum" in schema or "maximum" in schema or "multipleOf" in schema:
        return "number"
    return "string"


def _first(schema: Any, root: Any, depth: int) -> Any:
    """The first candidate that satisfies a schema on its own; else the last one."""
    from jsonschema import Draft202012Validator

    wrapped = schema
    if isinstance(schema, dict) and isinstance(root, dict):
        shared = {key: root[key] for key in ("$defs", "definitions") if key in root}
        wrapped = {**shared, **schema}
    validator = Draft202012Validator(wrapped)
    last: Any = None
    for value in _candidates(schema, root, depth + 1):
        last = value
        if validator.is_valid(value):
            return value
    return last


def _object(schema: dict[str, Any], root: Any, depth: int) -> dict[str, Any]:
    properties = schema.get("properties", {})
    required = schema.get("required", [])
    names = [name for name in properties if name in required]
    names += [name for name in required if name not in properties]
    other = schema.get("additionalProperties", True)
    value = {name: _first(properties.get(name, other), root, depth) for name in names}
    for name in [*properties, *(f"key{i}" for i in range(schema.get("minProperties", 0)))]:
        if len(value) >= schema.get("minProperties", 0):
            break
        if name not in value:
            value[name] = _first(properties.get(name, other), root, depth)
    return value


def _array(schema: dict[str, Any], root: Any, depth: int) -> list[Any]:
    prefix = schema.get("prefixItems", [])
    least = schema.get("minItems", 0)
    items = schema.get("items", True)
    value = [_first(item, root, depth) for item in prefix]
    if schema.get("contains") is not None:
        value.append(_first(schema["contains"], root, depth))
    if schema.get("uniqueItems") and len(value) < least:
        for candidate in _distinct(items, root, depth):
            if candidate not in value:
                value.append(candidate)
            if len(value) >= least:
                break
    while len(value) < least:
        value.append(_first(items, root, depth))
    return value[: schema.get("maxItems", len(value))]


def _distinct(schema: Any, root: Any, depth: int) -> Iterator[Any]:
    for value in _candidates(schema, root, depth + 1):
        yield value
        if isinstance(value, str):
            yield from (f"{value}{i}" for i in range(2, 1000))
        elif isinstance(value, int) and not isinstance(value, bool):
            yield from range(value + 1, value + 1000)


def _strings(schema: dict[str, Any]) -> Iterator[str]:
    least, most = schema.get("minLength", 0), schema.get("maxLength", math.inf)
    if "format" in schema and schema["format"] in _FORMATS:
        yield _FORMATS[schema["format"]]
    if "pattern" in schema:
        yield from _PATTERN_CANDIDATES
        yield from (char * max(1, least) for char in "a0A1x")
        for size in (2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 36, 40, 64):
            yield from (char * size for char in "a0A")
    text = "text"
    if len(text) < least:
        text = (text * (int(least) // 4 + 1))[: int(least)]
    yield text[: int(most)] if most != math.inf else text


def _numbers(schema: dict[str, Any], *, whole: bool) -> Iterator[float]:
    step = schema.get("multipleOf", 1)
    low = schema.get("minimum", -math.inf)
    above = schema.get("exclusiveMinimum", -math.inf)
    high = schema.get("maximum", math.inf)
    below = schema.get("exclusiveMaximum", math.inf)

    def fits(value: float) -> bool:
        return bool(low <= value <= high and above < value < below)

    floor, ceiling = max(low, above), min(high, below)
    tries: list[float] = [1, 0, step]
    if floor > -math.inf:
        first = math.ceil(floor / step) * step
        tries += [floor, first, first + step, floor + 1]
    if ceiling < math.inf:
        first = math.floor(ceiling / step) * step
        tries += [ceiling, first, first - step, ceiling - 1]
    if floor > -math.inf and ceiling < math.inf:
        tries.append((floor + ceiling) / 2)
    for value in tries:
        if fits(value):
            yield int(value) if whole or float(value).is_integer() else value
