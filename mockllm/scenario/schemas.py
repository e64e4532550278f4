"""JSON Schemas of tools and requests, Draft 2020-12: whether they are good, and what fits them.

Each schema is compiled once. Nothing is ever fetched: a reference leads inside its own schema,
or nowhere. `jsonschema` is imported when the first schema is met, because it takes its time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from mockllm.scenario.jsontext import compact
from mockllm.scenario.wording import shorten

__all__ = ["Schemas"]

Flaw = tuple[tuple[str | int, ...], str]
"""A place inside a value, and what is wrong there."""

_MOST = 20
_ENDLESS = "the schema refers to itself without end"


class Schemas:
    """The schemas met so far, compiled."""

    def __init__(self) -> None:
        self._compiled: dict[str, Any] = {}

    def flaws(self, schema: Any) -> tuple[Flaw, ...]:
        """Why a value is not a JSON Schema; nothing where it is one."""
        flaws: tuple[Flaw, ...] = self._compile(schema)[0]
        return flaws

    def violations(self, schema: Any, value: Any) -> tuple[Flaw, ...]:
        """Where and how `value` violates `schema`; nothing where the schema is itself bad."""
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
        flaw = tuple(error.absolute_path), f"is not a JSON Schema: {shorten(error.message)}"
        return (flaw,), None
    return (), Draft202012Validator(schema, registry=registry).iter_errors


def _errors(validate: Callable[[Any], Iterable[Any]], value: Any) -> Iterator[Flaw]:
    from referencing.exceptions import Unresolvable

    try:
        for count, error in enumerate(validate(value)):
            if count == _MOST:
                return
            yield tuple(error.absolute_path), shorten(error.message, 200)
    except RecursionError:
        yield (), _ENDLESS
    except Unresolvable as error:
        yield (), f"the schema's reference {shorten(error.ref)!r} leads nowhere"
    except re.error as error:
        yield (), f"the schema has a pattern that is no regular expression; {error}"
