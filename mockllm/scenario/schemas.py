"""JSON Schemas of tools and requests, Draft 2020-12: whether they are valid, and which values are.

Each schema is compiled once. Nothing is fetched: a reference leads inside its own schema, or it is
an error. `jsonschema` is imported with the first schema, because the import is slow.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from mockllm.scenario.jsontext import compact
from mockllm.scenario.wording import excerpt

__all__ = ["Schemas"]

Flaw = tuple[tuple[str | int, ...], str]
"""The path inside a value, and what is wrong there."""

_MAX_ERRORS = 20
_ENDLESS = "the schema refers to itself without end"


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
        flaws, validate = self._compile(schema)
        return () if flaws else tuple(_errors(validate, value))

    def _compile(self, schema: Any) -> Any:
        key = compact(schema)
        if key not in self._compiled:
            self._compiled[key] = _compiled(schema)
        return self._compiled[key]


def _compiled(schema: Any) -> tuple[tuple[Flaw, ...], Any]:
    from jsonschema import Draft202012Validator, SchemaError
    from referencing import Registry

    registry: Registry[Any] = Registry()
    try:
        Draft202012Validator.check_schema(
            schema, format_checker=Draft202012Validator.FORMAT_CHECKER
        )
    except SchemaError as error:
        flaw = tuple(error.absolute_path), f"is not a JSON Schema: {excerpt(error.message)}"
        return (flaw,), None
    return (), Draft202012Validator(schema, registry=registry).iter_errors


def _errors(validate: Callable[[Any], Iterable[Any]], value: Any) -> Iterator[Flaw]:
    from referencing.exceptions import Unresolvable

    try:
        for count, error in enumerate(validate(value)):
            if count == _MAX_ERRORS:
                return
            yield tuple(error.absolute_path), excerpt(error.message, 200)
    except RecursionError:
        yield (), _ENDLESS
    except Unresolvable as error:
        yield (), f"the schema's reference {excerpt(error.ref)!r} leads nowhere"
    except re.error as error:
        yield (), f"the schema has a pattern that is no regular expression; {error}"
