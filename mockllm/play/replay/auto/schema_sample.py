"""Makes a value that satisfies a JSON Schema: always the same one, and small.

It covers the keywords that schemas of tools and responses use. Each value is validated before it is
returned, so no wrong one is. Schemas come from clients, so work and value are bounded; beyond the
bounds the value is empty, and the sample says that it gave up. Nothing is fetched.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import Any

from mockllm.core.errors import MockLLMError
from mockllm.core.jsontext import compact
from mockllm.core.patterns import PatternGaveUpError
from mockllm.scenario.schema_validation import SchemaGaveUpError, Steps, Validator, schema_flaw

MAX_BYTES = 64 * 1024
"""Of a value, as JSON."""

MAX_NODES = 5_000
"""The objects, lists and other values in a schema."""

MAX_LEVELS = 100
"""How deep they may be nested."""

MAX_STEPS = 40_000
"""Of building values and of validating them: about a second."""

_MAX_DEPTH = 40
_MOST_DISTINCT = 1_000
_STEP_BYTES = 64
"""So many bytes of a value, as JSON, count as a step of building it."""


class UnsatisfiableError(MockLLMError):
    """No value was found for the schema."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A value made for a schema.

    Args:
        gave_up: why the value is `{}`: which bound was reached; "" where it satisfies the schema.
    """

    value: Any
    gave_up: str = ""


def measure(schema: Any) -> tuple[int, int]:
    """The nodes of a schema, and its levels; it stops where there are too many."""
    nodes, levels, level = 0, 0, [schema]
    while level and nodes <= MAX_NODES and levels <= MAX_LEVELS:
        nodes, levels = nodes + len(level), levels + 1
        deeper: list[Any] = []
        for node in level:
            if isinstance(node, dict):
                deeper += node.values()
            elif isinstance(node, list):
                deeper += node
        level = deeper
    return nodes, levels


def bounded_sample(schema: Any, most_steps: int = MAX_STEPS) -> Sample:
    """A value for `schema`, or `{}` where that cannot be made within the bounds.

    Args:
        most_steps: of building values and of validating them.

    Raises:
        UnsatisfiableError: none was found; the message names the part of the schema.
    """
    nodes, levels = measure(schema)
    if nodes > MAX_NODES:
        return Sample({}, f"the schema has more than {MAX_NODES} values")
    if levels > MAX_LEVELS:
        return Sample({}, f"the schema is nested deeper than {MAX_LEVELS} levels")
    text = compact(schema)
    if "unevaluatedProperties" in text and "patternProperties" in text:
        # `jsonschema` searches for these patterns with `re`, which has no time limit.
        return Sample({}, "the schema has patternProperties beside unevaluatedProperties")
    flaw = schema_flaw(schema)
    if flaw is not None:
        raise UnsatisfiableError(f"the schema is not valid: {flaw[1]}")
    return _Sampler(schema, Steps(most_steps)).sample()


class _Sampler:
    """Makes values for one schema."""

    def __init__(self, root: Any, steps: Steps) -> None:
        from referencing import Registry
        from referencing.jsonschema import DRAFT202012

        registry: Registry[Any] = Registry()
        self._resolver = registry.resolver_with_root(DRAFT202012.create_resource(root))
        self._root = root
        self._steps = steps
        self._validator = Validator(root)

    def sample(self) -> Sample:
        """The first candidate that satisfies the schema."""
        problem = "nothing was tried"
        try:
            for value in self._candidates(self._root, 0):
                if len(compact(value)) > MAX_BYTES:
                    raise _too_large()
                violation = self._validator.first_error(value, self._steps)
                if violation is None:
                    return Sample(value)
                problem = f"{violation.json_path}: {violation.message}"
        except (SchemaGaveUpError, PatternGaveUpError) as error:
            return Sample({}, str(error))
        except RecursionError:
            return Sample({}, "the schema is nested too deep")
        raise UnsatisfiableError(problem)

    def _candidates(self, schema: Any, depth: int) -> Iterator[Any]:
        """Values to try, the most likely first. They are few, because callers combine them."""
        self._steps.take()
        if depth > _MAX_DEPTH:
            raise UnsatisfiableError("the schema demands a value of endless depth")
        if schema is True or schema == {}:
            yield "text"
        elif schema is False:
            return
        elif "$ref" in schema:
            yield from self._candidates(self._flat(schema), depth + 1)
        elif "const" in schema:
            yield schema["const"]
        elif "enum" in schema:
            yield from schema["enum"]
        elif "allOf" in schema:
            merged: Any = {key: value for key, value in schema.items() if key != "allOf"}
            for other in schema["allOf"]:
                merged = self._merge(merged, self._flat(other))
            yield from self._candidates(merged, depth + 1)
        elif "anyOf" in schema or "oneOf" in schema:
            key = "anyOf" if "anyOf" in schema else "oneOf"
            rest = {name: value for name, value in schema.items() if name != key}
            for option in schema[key]:
                yield from self._option(rest, option, depth)
        else:
            yield from self._values_of_types(schema, depth)

    def _option(self, rest: dict[str, Any], option: Any, depth: int) -> Iterator[Any]:
        """The candidates of one branch of `anyOf`; none where it recurses without end."""
        with suppress(UnsatisfiableError):
            yield from self._candidates(self._merge(rest, self._flat(option)), depth + 1)

    def _flat(self, schema: Any) -> Any:
        """A schema whose own `$ref` is replaced by what it leads to."""
        rest: dict[str, Any] = {}
        for _ in range(_MAX_DEPTH + 1):
            self._steps.take()
            if not isinstance(schema, dict) or "$ref" not in schema:
                return {**schema, **rest} if isinstance(schema, dict) else schema
            others = {key: value for key, value in schema.items() if key != "$ref"}
            rest = {**others, **rest}
            schema = self._resolve(schema["$ref"])
        raise UnsatisfiableError("the schema demands a value of endless depth")

    def _resolve(self, reference: Any) -> Any:
        """The schema that a reference leads to: a place (`#/$defs/a`) or an `$anchor`."""
        from referencing.exceptions import Unresolvable

        if not isinstance(reference, str) or not reference.startswith("#"):
            raise UnsatisfiableError(f"the reference {reference!r} points outside of the schema")
        try:
            schema = self._resolver.lookup(reference).contents
        except (Unresolvable, ValueError, TypeError) as error:
            raise UnsatisfiableError(f"the reference {reference!r} leads nowhere") from error
        if not isinstance(schema, (dict, bool)):
            raise UnsatisfiableError(f"the reference {reference!r} leads to no schema")
        return schema

    def _merge(self, left: Any, right: Any) -> Any:
        if not isinstance(left, dict) or not isinstance(right, dict):
            return right if isinstance(right, dict) or right is False else left
        merged = {**left, **right}
        if "properties" in left and "properties" in right:
            merged["properties"] = {**left["properties"], **right["properties"]}
            self._steps.take(1 + len(merged["properties"]) // 16)
        if "required" in left and "required" in right:
            merged["required"] = [*left["required"], *right["required"]]
            self._steps.take(1 + len(merged["required"]) // 16)
        return merged

    def _values_of_types(self, schema: dict[str, Any], depth: int) -> Iterator[Any]:
        kinds = schema.get("type") or _implied_type(schema)
        for kind in [kinds] if isinstance(kinds, str) else kinds:
            match kind:
                case "object":
                    yield self._object(schema, depth)
                case "array":
                    yield self._array(schema, depth)
                case "string":
                    if schema.get("minLength", 0) > MAX_BYTES:
                        raise _too_large()
                    yield from strings(schema)
                case "integer" | "number":
                    yield from numbers(schema, whole=kind == "integer")
                case "boolean":
                    yield from (True, False)
                case "null":
                    yield None

    def _first(self, schema: Any, depth: int) -> Any:
        """The first candidate that satisfies a schema on its own; else the last one."""
        last: Any = None
        part = self._validator.part(schema)
        for last in self._candidates(schema, depth + 1):
            self._steps.take(len(compact(last)) // _STEP_BYTES)
            if part.first_error(last, self._steps) is None:
                break
        return last

    def _object(self, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        properties = schema.get("properties", {})
        required = dict.fromkeys(schema.get("required", []))
        names = [name for name in properties if name in required]
        names += [name for name in required if name not in properties]
        least = int(schema.get("minProperties", 0))
        other = schema.get("additionalProperties", True)
        value: dict[str, Any] = {}
        for name in chain(names, properties, (f"key{number}" for number in range(least))):
            if name in value:
                continue
            if len(value) >= least and name not in required:
                break
            value[name] = self._first(properties.get(name, other), depth)
        return value

    def _array(self, schema: dict[str, Any], depth: int) -> list[Any]:
        items = schema.get("items", True)
        value = [self._first(item, depth) for item in schema.get("prefixItems", [])]
        if schema.get("contains") is not None:
            value.append(self._first(schema["contains"], depth))
        least = int(schema.get("minItems", 0))
        if schema.get("uniqueItems") and len(value) < least:
            self._add_distinct(value, items, least, depth)
        while len(value) < least:
            value.append(self._first(items, depth))
        return value[: int(schema["maxItems"])] if "maxItems" in schema else value

    def _add_distinct(self, value: list[Any], items: Any, least: int, depth: int) -> None:
        """Adds items that differ; too few, where there are no more."""
        for candidate in self._distinct(items, depth):
            self._steps.take(1 + (len(value) + len(str(candidate))) // _STEP_BYTES)
            if candidate not in value:
                value.append(candidate)
            if len(value) == least:
                return
        if len(value) >= _MOST_DISTINCT:
            raise SchemaGaveUpError(f"it needs more than {len(value)} different items")

    def _distinct(self, schema: Any, depth: int) -> Iterator[Any]:
        for value in self._candidates(schema, depth + 1):
            yield value
            if isinstance(value, str):
                yield from (f"{value}{i}" for i in range(2, _MOST_DISTINCT + 1))
            elif isinstance(value, int) and not isinstance(value, bool):
                yield from range(value + 1, value + _MOST_DISTINCT)


def _too_large() -> SchemaGaveUpError:
    return SchemaGaveUpError(f"the value would be larger than {MAX_BYTES} bytes")


def _implied_type(schema: dict[str, Any]) -> str:
    if "properties" in schema or "required" in schema or "additionalProperties" in schema:
        return "object"
    if "items" in schema or "minItems" in schema or "prefixItems" in schema:
        return "array"
    if "minimum" in schema or "maximum" in schema or "multipleOf" in schema:
        return "number"
    return "string"


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


def strings(schema: dict[str, Any]) -> Iterator[str]:
    """Those of a usual form that fit the format, the pattern or the length."""
    least = int(schema.get("minLength", 0))
    if "format" in schema and schema["format"] in _FORMATS:
        yield _FORMATS[schema["format"]]
    if "pattern" in schema:
        yield from _PATTERN_CANDIDATES
        yield from (char * max(1, least) for char in "a0A1x")
        for size in (2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 36, 40, 64):
            yield from (char * size for char in "a0A")
    text = "text" * max(1, -(-least // 4))
    text = text[:least] if least > 4 else text
    yield text[: int(schema["maxLength"])] if "maxLength" in schema else text


def numbers(schema: dict[str, Any], *, whole: bool) -> Iterator[float]:
    """Those that fit the bounds; none where arithmetic with them overflows."""
    try:
        yield from _numbers(schema, whole=whole)
    except (OverflowError, ValueError):
        return


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
