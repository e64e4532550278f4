"""Validation with JSON Schemas: Draft 2020-12, as `jsonschema` has it.

Nothing is fetched: a reference leads inside its own schema. `pattern` and its like search with
`mockllm.core.patterns`. The schemas of scenarios are the user's own. Those of clients are validated
within a number of steps, because a few lines of references can ask for 2 ** 30 validations. What
could not be finished is an error of its own, never "valid".
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterator
from contextvars import ContextVar
from functools import cache, lru_cache
from typing import Any

from mockllm.core.jsontext import compact
from mockllm.core.patterns import PatternError, PatternGaveUpError, compile_pattern
from mockllm.scenario.reading.values import excerpt

Flaw = tuple[tuple[str | int, ...], str]
"""The path inside a value, and what is wrong there."""

_MAX_ERRORS = 20
_LONGEST_PATTERN = 10_000

_current: ContextVar[Steps | None] = ContextVar("steps", default=None)


class SchemaGaveUpError(Exception):
    """A validation was not finished; the message says why, as the end of a sentence."""


class Steps:
    """The steps that remain; a step is one keyword of a schema applied to one value."""

    __slots__ = ("limit", "remaining")

    def __init__(self, limit: int) -> None:
        self.remaining = self.limit = limit

    def take(self, count: int = 1) -> None:
        """
        Raises:
            SchemaGaveUpError: none remain.
        """
        self.remaining -= count
        if self.remaining < 0:
            raise SchemaGaveUpError(f"it needs more than {self.limit} steps")


class Validator:
    """Applies one schema. It must be a JSON Schema; see `schema_flaw`."""

    def __init__(self, schema: Any) -> None:
        from referencing import Registry

        # An empty registry: the default one of `jsonschema` fetches what a reference names.
        registry: Registry[Any] = Registry()
        self._validator = _validator_class()(schema, registry=registry)

    def part(self, schema: Any) -> Validator:
        """Applies a part of this schema, whose references lead inside the whole."""
        part = object.__new__(Validator)
        part._validator = self._validator.evolve(schema=schema)
        return part

    def first_error(self, value: Any, steps: Steps) -> Any:
        """The first violation, an error of `jsonschema`; None where the value is valid.

        Raises:
            SchemaGaveUpError: validation was not finished.
            PatternGaveUpError: the search for a pattern was not finished.
        """
        return next(iter(self.errors(value, 1, steps)), None)

    def errors(self, value: Any, most: int, steps: Steps | None = None) -> list[Any]:
        """The first violations, up to `most`; raises as `first_error` does.

        Args:
            steps: None: they are not counted.
        """
        from referencing.exceptions import Unresolvable

        errors: list[Any] = []
        token = _current.set(steps)
        try:
            for error in self._validator.iter_errors(value):
                errors.append(error)
                if len(errors) == most:
                    break
        except RecursionError:
            raise SchemaGaveUpError("the schema refers to itself without end") from None
        except Unresolvable as error:
            message = f"the schema's reference {excerpt(str(error.ref))!r} leads nowhere"
            raise SchemaGaveUpError(message) from None
        except OverflowError:
            raise SchemaGaveUpError("it has numbers that are too large") from None
        except PatternError as error:
            raise SchemaGaveUpError(f"the schema has a pattern that {error}") from None
        finally:
            _current.reset(token)
        return errors


@lru_cache(maxsize=1024)
def compiled_schema(text: str) -> Validator | Flaw:
    """The validator of a scenario's schema, from its JSON text; or why it is not a JSON Schema."""
    schema = json.loads(text)
    flaw = schema_flaw(schema)
    return Validator(schema) if flaw is None else (flaw[0], f"is not a JSON Schema: {flaw[1]}")


def schema_flaws(schema: Any) -> Iterator[Flaw]:
    """Why a value is not a JSON Schema; nothing where it is one."""
    made = compiled_schema(compact(schema))
    if not isinstance(made, Validator):
        yield made


def violations(schema: Any, value: Any) -> Iterator[Flaw]:
    """Where and how `value` violates `schema`; nothing where the schema itself is not valid."""
    validator = compiled_schema(compact(schema))
    if not isinstance(validator, Validator):
        return
    try:
        for error in validator.errors(value, _MAX_ERRORS):
            yield tuple(error.absolute_path), excerpt(error.message, 200)
    except SchemaGaveUpError as problem:
        yield (), f"cannot be checked: {problem}"
    except PatternGaveUpError as problem:
        yield (), problem.message


def schema_flaw(schema: Any) -> Flaw | None:
    """Where and why a value is not a JSON Schema that can be applied; None where it is one."""
    from jsonschema import SchemaError

    try:
        _validator_class().check_schema(schema, format_checker=_formats())
    except SchemaError as error:
        if isinstance(error.cause, PatternError):
            text = excerpt(str(error.instance))
            return tuple(error.absolute_path), f"{text!r} {error.cause}"
        return tuple(error.absolute_path), excerpt(error.message)
    except RecursionError:
        return (), "it is nested too deep"
    return None


@cache
def _formats() -> Any:
    """The format that Draft 2020-12 demands of schemas: patterns are regular expressions."""
    from jsonschema import FormatChecker

    checker = FormatChecker(formats=())

    def is_regex(value: object) -> bool:
        if isinstance(value, str):
            _pattern(value)
        return True

    checker.checks("regex", raises=PatternError)(is_regex)
    return checker


def _pattern(text: str) -> Any:
    if len(text) > _LONGEST_PATTERN:
        raise PatternError(f"is longer than {_LONGEST_PATTERN} characters")
    return compile_pattern(text)


def _matches(pattern: str, text: str) -> bool:
    # A client's schema may ask for thousands of searches.
    is_match: bool = _pattern(pattern).found_in(text, None if _current.get() is None else 0.01)
    return is_match


@cache
def _validator_class() -> Any:
    """The class of `jsonschema`, with keywords that count steps and searches that end."""
    # Imported here: the import takes longer than starting the server, and few requests need it.
    from jsonschema import Draft202012Validator
    from jsonschema.validators import extend

    own = {
        "pattern": _check_pattern,
        "patternProperties": _check_pattern_properties,
        "additionalProperties": _check_additional,
        "uniqueItems": _check_unique,
    }
    keywords = {**Draft202012Validator.VALIDATORS, **own}
    counting: Any = extend(  # type: ignore[no-untyped-call]
        Draft202012Validator, {name: _count_steps(apply) for name, apply in keywords.items()}
    )
    evolve = counting.evolve

    def evolve_counting(self: Any, **changes: Any) -> Any:
        # `$schema` inside would lead to a class of `jsonschema` itself.
        schema = changes.get("schema", self.schema)
        if isinstance(schema, dict) and "$schema" in schema:
            changes["schema"] = {key: schema[key] for key in schema if key != "$schema"}
        return evolve(self, **changes)

    counting.evolve = evolve_counting
    return counting


def _count_steps(apply: Callable[..., Any]) -> Callable[..., Any]:
    def apply_counting(validator: Any, keyword: Any, value: Any, schema: Any) -> Any:
        steps = _current.get()
        if steps is not None:
            steps.take()
        return apply(validator, keyword, value, schema)

    return apply_counting


def _check_pattern(validator: Any, pattern: Any, value: Any, _: Any) -> Any:
    if validator.is_type(value, "string") and not _matches(pattern, value):
        yield _error(f"{value!r} does not match {pattern!r}")


def _check_pattern_properties(validator: Any, patterns: Any, value: Any, _: Any) -> Any:
    if not validator.is_type(value, "object"):
        return
    for pattern, schema in patterns.items():
        for key, inner in value.items():
            if _matches(pattern, key):
                yield from validator.descend(inner, schema, path=key, schema_path=pattern)


def _check_additional(validator: Any, keyword: Any, value: Any, schema: Any) -> Any:
    from jsonschema import Draft202012Validator

    if "patternProperties" in schema and validator.is_type(value, "object"):
        patterns = schema["patternProperties"]
        schema = {key: schema[key] for key in schema if key != "patternProperties"}
        value = {
            name: inner
            for name, inner in value.items()
            if not any(_matches(pattern, name) for pattern in patterns)
        }
    apply = Draft202012Validator.VALIDATORS["additionalProperties"]
    yield from apply(validator, keyword, value, schema)


def _check_unique(validator: Any, unique: Any, value: Any, _: Any) -> Any:
    """As `jsonschema`, which compares each item with each other one."""
    if not unique or not validator.is_type(value, "array"):
        return
    if len({_hashable(item) for item in value}) < len(value):
        yield _error(f"{value!r} has non-unique elements")


def _hashable(value: Any) -> Hashable:
    """A key that is equal for values that are equal as JSON: 1 and 1.0 are, 1 and true are not."""
    if isinstance(value, dict):
        return "object", frozenset((key, _hashable(inner)) for key, inner in value.items())
    if isinstance(value, list):
        return "list", tuple(map(_hashable, value))
    return ("boolean", value) if isinstance(value, bool) else value


def _error(message: str) -> Any:
    from jsonschema import ValidationError

    return ValidationError(message)
