"""Makes a value that satisfies a JSON Schema: always the same one, and small.

It covers the keywords that schemas of tools and responses use. Each value is validated before it is
returned, so no wrong one is. Schemas come from clients, so work and value are bounded; what is
beyond the bounds is left out, and the sample says that it gave up. Nothing is fetched.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from mockllm.core.patterns import PatternGaveUpError
from mockllm.replay.auto.sample_scalars import count_of, numbers, strings
from mockllm.replay.auto.schema_references import UnsatisfiableError, resolve
from mockllm.scenario.jsontext import compact
from mockllm.scenario.schema_validation import SchemaGaveUpError, Steps, Validator, schema_flaw

MAX_BYTES = 64 * 1024
"""Of a value, as JSON, apart from values that the schema has itself (`const`, `enum`)."""

MAX_NODES = 5_000
"""The objects, lists and other values in a schema."""

MAX_LEVELS = 100
"""How deep they may be nested."""

MAX_STEPS = 40_000
"""Of building values and of validating them: about a second."""

_MAX_DEPTH = 40
_MOST_DISTINCT = 1_000
_EMPTY: dict[str, Any] = {
    "array": [], "string": "", "integer": 0, "number": 0, "boolean": False, "null": None,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Sample:
    """A value made for a schema.

    Args:
        gave_up: why the value does not satisfy the schema: which bound was reached; "" where it
            does satisfy it.
    """

    value: Any
    gave_up: str = ""


def sample(schema: Any) -> Any:
    """A value for `schema`.

    Raises:
        UnsatisfiableError: none was made; the message names the part of the schema.
    """
    made = bounded_sample(schema)
    if made.gave_up:
        raise UnsatisfiableError(made.gave_up)
    return made.value


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
    """A value for `schema`, or as much of one as can be made within the bounds.

    Args:
        most_steps: of building values and of validating them.
    """
    nodes, levels = measure(schema)
    if nodes > MAX_NODES:
        return Sample(_empty(schema), f"the schema has more than {MAX_NODES} values")
    if levels > MAX_LEVELS:
        return Sample(_empty(schema), f"the schema is nested deeper than {MAX_LEVELS} levels")
    flaw = schema_flaw(schema)
    if flaw is not None:
        raise UnsatisfiableError(f"the schema is not valid: {flaw[1]}")
    return _Sampler(schema, Steps(most_steps)).sample()


def _empty(schema: Any) -> Any:
    kind = schema.get("type") if isinstance(schema, dict) else "object"
    return _EMPTY.get(kind, {}) if isinstance(kind, str) else {}


class _Sampler:
    """Makes values for one schema."""

    def __init__(self, root: Any, steps: Steps) -> None:
        self._root = root
        self._steps = steps
        self._validator = Validator(root)
        self._gave_up = ""
        self._sizes: dict[int, tuple[Any, int]] = {}
        self._firsts: dict[tuple[int, int], tuple[Any, Any]] = {}

    def sample(self) -> Sample:
        """The first candidate that satisfies the schema."""
        problem = "nothing was tried"
        value: Any = None
        tried = False
        try:
            for value in self._candidates(self._root, 0):
                tried = True
                violation = self._validator.first_error(value, self._steps)
                if violation is None:
                    return Sample(value)
                problem = f"{violation.json_path}: {violation.message}"
        except (SchemaGaveUpError, PatternGaveUpError) as error:
            self._give_up(error)
        except RecursionError:
            self._give_up(SchemaGaveUpError("the schema is nested too deep"))
        if self._gave_up:
            return Sample(value if tried else _empty(self._root), self._gave_up)
        raise UnsatisfiableError(problem)

    def _give_up(self, why: Exception) -> None:
        self._gave_up = self._gave_up or str(why)
        if not isinstance(why, _TooLargeError):
            self._steps.remaining = 0  # the rest ends at once

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
            yield from self._typed(schema, depth)

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
            schema = resolve(schema["$ref"], self._root)
        raise UnsatisfiableError("the schema demands a value of endless depth")

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

    def _typed(self, schema: dict[str, Any], depth: int) -> Iterator[Any]:
        kinds = schema.get("type") or _implied(schema)
        for kind in [kinds] if isinstance(kinds, str) else kinds:
            match kind:
                case "object":
                    yield self._object(schema, depth)
                case "array":
                    yield self._array(schema, depth)
                case "string":
                    yield from self._strings(schema, depth)
                case "integer" | "number":
                    yield from numbers(schema, whole=kind == "integer")
                case "boolean":
                    yield from (True, False)
                case "null":
                    yield None

    def _strings(self, schema: dict[str, Any], depth: int) -> Iterator[str]:
        if schema.get("minLength", 0) > _room(depth):
            self._give_up(_TooLargeError())
        yield from strings(schema, _room(depth))

    def _first(self, schema: Any, depth: int) -> Any:
        """The first candidate that satisfies a schema on its own; else the last one."""
        key = id(schema), depth
        known = self._firsts.get(key)
        if known is None:  # with the schema, so that no other gets its id
            known = self._firsts[key] = schema, self._find_first(schema, depth)
        return known[1]

    def _find_first(self, schema: Any, depth: int) -> Any:
        last = None if schema is False else _empty(schema)
        try:
            part = self._validator.part(schema)
            for value in self._candidates(schema, depth + 1):
                last = value
                if part.first_error(value, self._steps) is None:
                    return value
        except (SchemaGaveUpError, PatternGaveUpError) as error:
            self._give_up(error)
        return last

    def _object(self, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        properties = schema.get("properties", {})
        required = dict.fromkeys(schema.get("required", []))
        names = [name for name in properties if name in required]
        names += [name for name in required if name not in properties]
        least = count_of(schema, "minProperties", MAX_BYTES)
        other = schema.get("additionalProperties", True)
        value: dict[str, Any] = {}
        size = 2
        for name in [*names, *properties, *(f"key{i}" for i in range(least))]:
            if name in value:
                continue
            if len(value) >= least and name not in required:
                break
            inner = self._first(properties.get(name, other), depth)
            size += len(name) + 4 + self._size(inner)
            if size > _room(depth):
                self._give_up(_TooLargeError())
                break
            value[name] = inner
        self._sizes[id(value)] = value, size
        return value

    def _array(self, schema: dict[str, Any], depth: int) -> list[Any]:
        value: list[Any] = []
        size = 2
        try:
            for inner in self._items(schema, depth):
                size += self._size(inner) + 1
                if size > _room(depth):
                    raise _TooLargeError
                value.append(inner)
        except SchemaGaveUpError as error:
            self._give_up(error)
        kept = value[: count_of(schema, "maxItems", MAX_BYTES, MAX_BYTES)]
        self._sizes[id(kept)] = kept, size
        return kept

    def _items(self, schema: dict[str, Any], depth: int) -> Iterator[Any]:
        least = count_of(schema, "minItems", MAX_BYTES)
        items = schema.get("items", True)
        value: list[Any] = [self._first(item, depth) for item in schema.get("prefixItems", [])]
        if schema.get("contains") is not None:
            value.append(self._first(schema["contains"], depth))
        yield from value
        count = len(value)
        if schema.get("uniqueItems") and count < least:
            for candidate in self._distinct(items, depth):
                self._steps.take(1 + len(value) // 64)
                if candidate not in value:
                    value.append(candidate)
                    count += 1
                    yield candidate
                if count >= least:
                    break
            else:
                if count >= _MOST_DISTINCT:
                    raise SchemaGaveUpError(f"it needs more than {count} different items")
        while count < least:
            count += 1
            yield self._first(items, depth)

    def _distinct(self, schema: Any, depth: int) -> Iterator[Any]:
        for value in self._candidates(schema, depth + 1):
            yield value
            if isinstance(value, str):
                yield from (f"{value}{i}" for i in range(2, _MOST_DISTINCT + 1))
            elif isinstance(value, int) and not isinstance(value, bool):
                yield from range(value + 1, value + _MOST_DISTINCT)

    def _size(self, value: Any) -> int:
        """The size of a value as JSON, in bytes, about."""
        if isinstance(value, str):
            return len(value) + 2
        known = self._sizes.get(id(value))
        if known is None:
            known = self._sizes[id(value)] = value, len(compact(value))
        return known[1]


class _TooLargeError(SchemaGaveUpError):
    """The value for a part of the schema was cut."""

    def __init__(self) -> None:
        super().__init__(f"the value would be larger than {MAX_BYTES} bytes")


def _room(depth: int) -> int:
    """The most bytes of a part of the value: what was cut fits into what it is in."""
    return MAX_BYTES - 1024 * depth


def _implied(schema: dict[str, Any]) -> str:
    if "properties" in schema or "required" in schema or "additionalProperties" in schema:
        return "object"
    if "items" in schema or "minItems" in schema or "prefixItems" in schema:
        return "array"
    if "minimum" in schema or "maximum" in schema or "multipleOf" in schema:
        return "number"
    return "string"
