"""Validation with JSON Schemas that are not ours, bounded: Draft 2020-12, as `jsonschema` has it.

Nothing is fetched: a reference leads inside its own schema. The steps are counted, because a few
lines of references can ask for 2 ** 30 validations; `pattern` and its like search with
`mockllm.core.patterns`. What could not be finished is an error of its own, never "valid".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any

from mockllm.core.patterns import PatternError, compiled
from mockllm.scenario.wording import excerpt

__all__ = ["MAX_STEPS", "SchemaGaveUpError", "Steps", "Validator", "schema_flaw"]

MAX_STEPS = 100_000
"""Of one validation: about a second."""

_LONGEST_PATTERN = 10_000
_LONGEST_NAME = 128
_FEW = 1_000
"""Lists up to this length are compared item by item."""

_current: ContextVar[Steps | None] = ContextVar("steps", default=None)


class SchemaGaveUpError(Exception):
    """A validation was not finished; the message says why, as the end of a sentence."""


class Steps:
    """How many steps are left; a step is one keyword of a schema applied to one value."""

    __slots__ = ("left", "limit", "root", "slow_names")

    def __init__(self, limit: int = MAX_STEPS) -> None:
        self.left = self.limit = limit
        self.root: Any = None
        self.slow_names: bool | None = None

    def take_long(self) -> None:
        """Counts a long search for a pattern; few are allowed."""
        self.take(self.limit // 4)

    def take(self, count: int = 1) -> None:
        """
        Raises:
            SchemaGaveUpError: none are left.
        """
        self.left -= count
        if self.left < 0:
            raise SchemaGaveUpError(f"it needs more than {self.limit} steps")


@contextmanager
def _counting(steps: Steps, root: Any) -> Iterator[None]:
    steps.root = root
    token = _current.set(steps)
    try:
        yield
    finally:
        _current.reset(token)


class Validator:
    """Applies one schema. It must be a JSON Schema; see `schema_flaw`."""

    def __init__(self, schema: Any) -> None:
        from referencing import Registry

        registry: Registry[Any] = Registry()
        self._root = schema
        self._validator = _bounded_class()(schema, registry=registry)

    def part(self, schema: Any) -> Validator:
        """Applies a part of this schema, whose references lead inside the whole."""
        part = object.__new__(Validator)
        part._root = self._root
        part._validator = self._validator.evolve(schema=schema)
        return part

    def first_error(self, value: Any, steps: Steps | None = None) -> Any:
        """The first violation, an error of `jsonschema`; None where the value is valid.

        Raises:
            SchemaGaveUpError: validation was not finished.
            PatternGaveUpError: the search for a pattern was not finished.
        """
        return next(iter(self.errors(value, 1, steps)), None)

    def errors(self, value: Any, most: int, steps: Steps | None = None) -> list[Any]:
        """The first violations, up to `most`; raises as `first_error` does."""
        from referencing.exceptions import Unresolvable

        found: list[Any] = []
        with _counting(steps or Steps(), self._root):
            try:
                for error in self._validator.iter_errors(value):
                    found.append(error)
                    if len(found) == most:
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
        return found


def schema_flaw(schema: Any) -> tuple[tuple[str | int, ...], str] | None:
    """Where and why a value is not a JSON Schema that can be applied; None where it is one."""
    from jsonschema import SchemaError

    try:
        _bounded_class().check_schema(schema, format_checker=_formats())
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
    return compiled(text)


def _found(pattern: str, text: str) -> bool:
    steps = _current.get()
    found: bool = _pattern(pattern).found_in(text, None if steps is None else steps.take_long)
    return found


@cache
def _bounded_class() -> Any:
    """The class of `jsonschema`, with keywords that count their steps."""
    # Imported here: the import takes longer than starting the server, and few requests need it.
    from jsonschema import Draft202012Validator, ValidationError
    from jsonschema.validators import extend

    def error(message: str) -> Any:
        return ValidationError(message)

    own = {
        "pattern": _given(_check_pattern, error),
        "patternProperties": _check_pattern_properties,
        "additionalProperties": _given(_check_additional, error),
    }
    keywords = {**Draft202012Validator.VALIDATORS, **own}
    bounded: Any = extend(  # type: ignore[no-untyped-call]
        Draft202012Validator, {name: _counted(name, apply) for name, apply in keywords.items()}
    )
    evolve = bounded.evolve

    def evolve_bounded(self: Any, **changes: Any) -> Any:
        # `$schema` inside would lead to a class whose steps are not counted.
        schema = changes.get("schema", self.schema)
        if isinstance(schema, dict) and "$schema" in schema:
            changes["schema"] = {key: schema[key] for key in schema if key != "$schema"}
        return evolve(self, **changes)

    bounded.evolve = evolve_bounded
    return bounded


def _given(check: Callable[..., Any], first: Any) -> Callable[..., Any]:
    """`check` with its first argument given; `jsonschema` needs plain functions."""

    def apply(*arguments: Any) -> Any:
        return check(first, *arguments)

    return apply


def _counted(name: str, apply: Callable[..., Any]) -> Callable[..., Any]:
    def counted(validator: Any, keyword: Any, value: Any, schema: Any) -> Any:
        steps = _current.get()
        if steps is not None:
            steps.take()
            if name == "uniqueItems" and isinstance(value, list) and len(value) > _FEW:
                steps.take(len(value) * len(value) // 256)
            elif name == "unevaluatedProperties" and isinstance(value, dict):
                steps.take(len(value))
                _check_names(steps, value)
        return apply(validator, keyword, value, schema)

    return counted


def _check_names(steps: Steps, value: dict[str, Any]) -> None:
    """Refuses what `jsonschema` would search with `re` for names of `unevaluatedProperties`."""
    if steps.slow_names is None:
        steps.slow_names = any(not _pattern(one).is_short(_LONGEST_NAME) for one in _names(steps))
    if steps.slow_names or any(len(name) > _LONGEST_NAME for name in value):
        raise SchemaGaveUpError(
            "unevaluatedProperties stands beside patternProperties that may take too long"
        )


def _names(steps: Steps) -> Iterator[str]:
    """The patterns of all `patternProperties`."""
    rest = [steps.root]
    while rest:
        node = rest.pop()
        if isinstance(node, dict):
            patterns = node.get("patternProperties")
            yield from (one for one in patterns or () if isinstance(patterns, dict))
            rest += node.values()
        elif isinstance(node, list):
            rest += node


def _check_pattern(error: Callable[[str], Any], v: Any, pattern: Any, value: Any, _: Any) -> Any:
    if v.is_type(value, "string") and not _found(pattern, value):
        yield error(f"{value!r} does not match {pattern!r}")


def _check_pattern_properties(v: Any, patterns: Any, value: Any, _: Any) -> Any:
    if not v.is_type(value, "object"):
        return
    for pattern, schema in patterns.items():
        for key, inner in value.items():
            if _found(pattern, key):
                yield from v.descend(inner, schema, path=key, schema_path=pattern)


def _check_additional(
    error: Callable[[str], Any], v: Any, keyword: Any, value: Any, schema: Any
) -> Any:
    if not v.is_type(value, "object"):
        return
    known = schema.get("properties", {})
    patterns = schema.get("patternProperties", {})
    extras = [
        key for key in value if key not in known and not any(_found(one, key) for one in patterns)
    ]
    if v.is_type(keyword, "object"):
        for key in extras:
            yield from v.descend(value[key], keyword, path=key)
    elif not keyword and extras:
        names = ", ".join(map(repr, sorted(extras)))
        one = len(extras) == 1
        if patterns:
            texts = ", ".join(map(repr, sorted(patterns)))
            verb = "does" if one else "do"
            yield error(f"{names} {verb} not match any of the regexes: {texts}")
        else:
            verb = "was" if one else "were"
            yield error(f"Additional properties are not allowed ({names} {verb} unexpected)")
