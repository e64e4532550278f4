"""OpenAI's errors for invalid fields: missing, ill-typed or out of range.

Each function returns the `RequestError` for one field, with the service's message, `param` and
`code`; `CHECKS` makes checks that raise them. Only that may live here.
"""

from __future__ import annotations

from collections.abc import Mapping

from mockllm.errors import RequestError
from mockllm.protocols.checks import Checks


def kind(value: object) -> str:
    """The kind of a JSON value, in the terms of the messages: `a string`, `an object`, ..."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int():
            return "an integer"
        case float():
            return "a decimal"
        case str():
            return "a string"
        case Mapping():
            return "an object"
        case list():
            return "an array"
    return type(value).__name__


def invalid_type(where: str, expected: str, got: object) -> RequestError:
    """A field of the wrong kind, e.g. `invalid_type("n", "an integer", "2")`."""
    return RequestError(
        f"Invalid type for '{where}': expected {expected}, but got {kind(got)} instead.",
        param=where,
        code="invalid_type",
    )


def missing(where: str) -> RequestError:
    """A required field that is missing."""
    return RequestError(
        f"Missing required parameter: '{where}'.", param=where, code="missing_required_parameter"
    )


def empty_array(where: str) -> RequestError:
    """An empty array that must have an item."""
    return RequestError(
        f"Invalid '{where}': empty array. Expected an array with minimum length 1, but got an "
        "empty array instead.",
        param=where,
        code="empty_array",
    )


def bad_value(where: str, got: str, known: tuple[str, ...]) -> RequestError:
    """A value that is not one of the known ones."""
    quoted = [f"'{value}'" for value in known]
    values = (
        f"{', '.join(quoted[:-1])}, and {quoted[-1]}" if len(quoted) > 2 else " and ".join(quoted)
    )
    return RequestError(
        f"Invalid value: '{got}'. Supported values are: {values}.",
        param=where,
        code="invalid_value",
    )


def _outside(where: str, got: float, low: float, high: float | None, whole: bool) -> RequestError:
    noun = "integer" if whole else "decimal"
    side, bound, relation = "above", "maximum", f"<= {high:g}" if high is not None else ""
    if got < low:
        side, bound, relation = "below", "minimum", f">= {low:g}"
    return RequestError(
        f"Invalid '{where}': {noun} {side} {bound} value. Expected a value {relation}, but got "
        f"{got} instead.",
        param=where,
        code=f"{noun}_{side}_{bound[:3]}_value",
    )


CHECKS = Checks(
    invalid_type,
    a_string="a string",
    an_object="an object",
    an_array="an array of objects",
    an_integer="an integer",
    a_decimal="a decimal",
    missing=missing,
    unknown=bad_value,
    outside=_outside,
)
BOOLEAN = CHECKS.of_kind(bool, "a boolean")
TEXT = CHECKS.text
OBJECT = CHECKS.mapping
