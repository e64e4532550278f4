"""Reads JSON values of any type: a server may send null, or another type, for every field.

Each function returns an empty value instead of raising. Standard library only.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

__all__ = ["count", "error_message", "json_text", "mapping", "sequence", "string"]

json_text = json.JSONEncoder(separators=(",", ":")).encode
"""A JSON value as text."""


def mapping(value: object) -> Mapping[str, Any]:
    """The value if it is an object; an empty one for null and everything else."""
    return value if isinstance(value, Mapping) else {}


def sequence(value: object) -> list[Any]:
    """The value if it is an array; an empty one for null and everything else."""
    return value if isinstance(value, list) else []


def string(value: object) -> str:
    """The value if it is a string; an empty one for null and everything else."""
    return value if isinstance(value, str) else ""


def count(value: object) -> int | None:
    """The value if it is a whole number, also one written as `7.0`; otherwise None."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if type(value) is int else None


def error_message(error: object) -> str:
    """The message of an error, with its code or type if it has one.

    Args:
        error: the error in the shape of any service: an object, an object below the key `error`,
            or a string.
    """
    while isinstance(error, Mapping) and error.get("error"):
        error = error["error"]
    if not isinstance(error, Mapping):
        return error if isinstance(error, str) else json_text(error)
    codes = (error.get(key) for key in ("code", "status", "type"))
    code = next((str(value) for value in codes if value), "")
    message = string(error.get("message")) or json_text(dict(error))
    return f"{message} ({code})" if code else message
