"""JSON Schemas of tools and requests, Draft 2020-12: whether they are valid, and which values are.

Each schema is compiled once. Nothing is fetched: a reference leads inside its own schema, or it is
an error. `jsonschema` is imported with the first schema, because the import is slow.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mockllm.core.patterns import PatternGaveUpError
from mockllm.scenario.jsontext import compact
from mockllm.scenario.schema_validation import SchemaGaveUpError, Validator, schema_flaw
from mockllm.scenario.wording import excerpt

__all__ = ["Schemas"]

Flaw = tuple[tuple[str | int, ...], str]
"""The path inside a value, and what is wrong there."""

_MAX_ERRORS = 20


class Schemas:
    """The compiled schemas, each compiled when it is first used."""

    def __init__(self) -> None:
        self._compiled: dict[str, Any] = {}

    def flaws(self, schema: Any) -> tuple[Flaw, ...]:
        """Why a value is not a JSON Schema; empty where it is one."""
        flaws: tuple[Flaw, ...] = self._compile(schema)[0]
        return flaws

    def violations(self, schema: Any, value: Any) -> tuple[Flaw, ...]:
        """Where and how `value` violates `schema`; empty where the schema itself is not valid."""
        flaws, validator = self._compile(schema)
        return () if flaws else tuple(_errors(validator, value))

    def _compile(self, schema: Any) -> Any:
        key = compact(schema)
        if key not in self._compiled:
            self._compiled[key] = _compiled(schema)
        return self._compiled[key]


def _compiled(schema: Any) -> tuple[tuple[Flaw, ...], Validator | None]:
    flaw = schema_flaw(schema)
    if flaw is None:
        return (), Validator(schema)
    path, message = flaw
    return ((path, f"is not a JSON Schema: {message}"),), None


def _errors(validator: Validator, value: Any) -> Iterator[Flaw]:
    try:
        for error in validator.errors(value, _MAX_ERRORS):
            yield tuple(error.absolute_path), excerpt(error.message, 200)
    except SchemaGaveUpError as problem:
        yield (), f"cannot be checked: {problem}"
    except PatternGaveUpError as problem:
        yield (), problem.message
