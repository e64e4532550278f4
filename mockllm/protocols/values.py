"""Values of JSON that may be anything, read without a stumble."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

__all__ = ["json_object", "mapping", "string"]


def json_object(text: str | None) -> dict[str, Any] | None:
    """The JSON object that the text is; None if it is anything else."""
    try:
        value = json.loads(text) if text else None
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def mapping(value: object) -> Mapping[str, Any]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def string(value: object) -> str:
    """The value if it is a string, else an empty one."""
    return value if isinstance(value, str) else ""
