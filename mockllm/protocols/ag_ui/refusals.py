"""The errors for invalid input: missing, ill-typed and unknown values.

AG-UI defines the input and not the errors of an agent. Input of another shape gets status 422, as
from agents that validate with the official Python types (FastAPI); an impossible history gets 400.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mockllm.errors import RequestError

__all__ = [
    "Check",
    "absent",
    "fields",
    "ill_typed",
    "impossible",
    "list_of",
    "mapping",
    "strange",
    "text",
]

Check = Callable[[str, object], None]
"""Raises `RequestError` if the value (second) is not valid at its path (first)."""


def _invalid(message: str, where: str) -> RequestError:
    return RequestError(message, status=422, param=where, code="invalid_input")


def absent(where: str) -> RequestError:
    """A required field that is missing."""
    return _invalid(f"{where} is missing; field names are written in camelCase.", where)


def ill_typed(where: str, expected: str, got: object) -> RequestError:
    """A value of the wrong kind, e.g. `ill_typed("runId", "a string", 5)`."""
    return _invalid(f"{where} must be {expected}, got {_kind(got)}.", where)


def strange(where: str, got: str, known: tuple[str, ...]) -> RequestError:
    """A value that is not one of the known ones."""
    return _invalid(f"{where} must be one of {', '.join(known)}, got {got!r}.", where)


def impossible(message: str, where: str) -> RequestError:
    """A history that is impossible although its messages are well-formed."""
    return RequestError(message, status=400, param=where, code="invalid_history")


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string" if value else "an empty string"
        case list():
            return "an array"
    return "an object"


def text(where: str, value: object) -> None:
    """A check for a string."""
    if not isinstance(value, str):
        raise ill_typed(where, "a string", value)


def mapping(where: str, value: object) -> None:
    """A check for an object."""
    if not isinstance(value, Mapping):
        raise ill_typed(where, "an object", value)


def list_of(check: Check) -> Check:
    """A check for an array whose items pass another check."""

    def checked(where: str, value: object) -> None:
        if not isinstance(value, list):
            raise ill_typed(where, "an array", value)
        for i, item in enumerate(value):
            check(f"{where}[{i}]", item)

    return checked


def fields(
    where: str, value: object, required: Mapping[str, Check], others: Mapping[str, Check]
) -> Mapping[str, Any]:
    """The value, which must be an object with valid fields; unknown fields are allowed.

    Args:
        where: the path of the object; "" for the whole input.
        required: the checks of fields that must be present.
        others: the checks of fields that may be missing or null.

    Raises:
        RequestError: it is not an object, or a field is missing or not valid.
    """
    if not isinstance(value, Mapping):
        raise ill_typed(where or "the body", "an object", value)
    prefix = f"{where}." if where else ""
    for name, check in required.items():
        if name not in value:
            raise absent(prefix + name)
        check(prefix + name, value[name])
    for name, check in others.items():
        if value.get(name) is not None:
            check(prefix + name, value[name])
    return value
