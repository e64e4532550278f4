"""Values of JSON that may be anything: a server may send null, or another kind, for each.

Standard library only.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

__all__ = ["count", "error_words", "json_text", "mapping", "sequence", "string"]

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
    """The value if it is a whole number, be it written as `7.0`."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if type(value) is int else None


def error_words(error: object) -> str:
    """What an error says, in words: its message, and its code or type where it has one.

    Args:
        error: the error as some service writes it: an object, one inside of another under
            `error`, or only a string.
    """
    while isinstance(error, Mapping) and error.get("error"):
        error = error["error"]
    if not isinstance(error, Mapping):
        return error if isinstance(error, str) else json_text(error)
    named = (error.get(key) for key in ("code", "status", "type"))
    code = next((str(value) for value in named if value), "")
    message = string(error.get("message")) or json_text(dict(error))
    return f"{message} ({code})" if code else message
