"""Values of any type as values that can be compared, since a client may return anything. Pure."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

_DEEPEST = 100
_LONGEST_REPR = 200
_MOST_BITS = 14_000
"""Python writes no integer of more than 4300 digits (`sys.int_info.default_max_str_digits`)."""


@dataclass(frozen=True, slots=True)
class Foreign:
    """A value that JSON cannot hold: an object, NaN, a value that contains itself."""

    text: str

    def __repr__(self) -> str:
        return self.text


def comparable_value(value: Any, depth: int = 0) -> Any:
    """A value in the types of JSON; what JSON cannot hold becomes `Foreign`."""
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, int):
        bits = value.bit_length()
        return value if bits < _MOST_BITS else Foreign(f"an integer of {bits} bits")
    if isinstance(value, float):
        return value if math.isfinite(value) else Foreign(str(value))
    if depth > _DEEPEST:
        return Foreign("a value nested too deeply")
    try:
        return _collection(value, depth + 1)
    except Exception:  # noqa: BLE001 - a client's collection may raise anything when it is read
        return foreign(value)


def _collection(value: Any, depth: int) -> Any:
    if isinstance(value, dict):
        return {
            key if isinstance(key, str) else repr(foreign(key)): comparable_value(item, depth)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [comparable_value(item, depth) for item in value]
    return foreign(value)


def foreign(value: Any) -> Foreign:
    """A value that JSON cannot hold, by its `repr`."""
    try:
        text = repr(value)
    except Exception as error:  # noqa: BLE001 - the repr of a client's object may raise anything
        text = f"<{type(value).__name__}, whose repr raises {type(error).__name__}>"
    return Foreign(text[:_LONGEST_REPR])


def canonical(value: Any) -> str:
    """A comparable value as text: equal for equal JSON values, and for these only.

    `1` and `1.0` are one number in JSON; `1` and `true` are two values, although Python compares
    them as equal.
    """
    return json.dumps(_numbers(value), sort_keys=True, default=_tagged)


def _numbers(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: _numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return list(map(_numbers, value))
    return value


def _tagged(value: object) -> list[str]:
    return ["not JSON", repr(value)]
