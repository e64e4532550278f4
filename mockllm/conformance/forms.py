"""The form of runners' messages, of results files and of reports about drift, by the JSON Schemas
beside this module."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator


def form_problem(value: Any, schema: str, kind: str = "") -> str:
    """The mistake in the form of a value, after the name of the field; "" if nothing is.

    Args:
        schema: `runner`, `results` or `drift`.
        kind: the name among the `$defs` of the schema; "" for the schema itself.
    """
    return next(map(_problem, _validator(schema, kind).iter_errors(value)), "")


@cache
def _validator(schema: str, kind: str) -> Draft202012Validator:
    from jsonschema import Draft202012Validator

    text = (files(__package__) / f"{schema}.schema.json").read_text(encoding="utf-8")
    whole = json.loads(text)
    return Draft202012Validator(
        {"$defs": whole["$defs"], "$ref": f"#/$defs/{kind}"} if kind else whole
    )


_TYPES = {
    "array": "a list",
    "boolean": "true or false",
    "integer": "a whole number",
    "null": "null",
    "number": "a number",
    "object": "an object",
    "string": "a text",
}


def _problem(error: Any) -> str:
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.absolute_path)
    where, wanted = "".join(steps).removeprefix("."), error.validator_value
    match error.validator:
        case "additionalProperties":
            known = error.schema["properties"]
            name = f"{where}.{min(error.instance.keys() - known.keys())}".removeprefix(".")
            return f"{name}: there is no such field, only {', '.join(known)}"
        case "required":
            missing = next(name for name in wanted if name not in error.instance)
            return f"{where}.{missing}: is missing".removeprefix(".")
        case "oneOf":
            ways = " or ".join(" and ".join(way["required"]) for way in wanted)
            return f"{where}: needs {ways}"
        case "type":
            types = [wanted] if isinstance(wanted, str) else wanted
            needed = " or ".join(_TYPES[name] for name in types)
        case "enum":
            needed = f"one of {', '.join('null' if it is None else it for it in wanted)}"
        case "minItems" | "maxItems":
            needed = f"a list of {wanted}"
        case _:
            needed = f"at least {wanted}"
    return f"{where}: must be {needed}, not {error.instance!r:.80}"
