"""OpenAI's errors for invalid fields: missing, ill-typed or out of range.

Each function returns the `RequestError` for one field, with the service's message, `param` and
`code`. Only that may live here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mockllm.errors import RequestError

Check = Callable[[str, object], None]
"""Raises `RequestError` if the value (second) is not valid at its path (first)."""


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


def number(low: float, high: float | None = None, *, whole: bool = False) -> Check:
    """A check for a number between two bounds, both included; `whole` allows integers only."""
    noun, expected = ("integer", "an integer") if whole else ("decimal", "a decimal")

    def check(where: str, value: object) -> None:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise invalid_type(where, expected, value)
        if whole and isinstance(value, float):
            raise invalid_type(where, expected, value)
        if value < low:
            raise _out_of_range(where, value, noun, "below", "minimum", f">= {low:g}")
        if high is not None and not value <= high:
            raise _out_of_range(where, value, noun, "above", "maximum", f"<= {high:g}")

    return check


def _out_of_range(
    where: str, got: float, noun: str, side: str, bound: str, relation: str
) -> RequestError:
    return RequestError(
        f"Invalid '{where}': {noun} {side} {bound} value. Expected a value {relation}, but got "
        f"{got} instead.",
        param=where,
        code=f"{noun}_{side}_{bound[:3]}_value",
    )


def of_kind(type_: type | tuple[type, ...], expected: str) -> Check:
    """A check for the type only; `expected` is its name in messages, e.g. `a boolean`."""

    def check(where: str, value: object) -> None:
        if not isinstance(value, type_):
            raise invalid_type(where, expected, value)

    return check
