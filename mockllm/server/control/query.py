"""Values in the queries of control routes."""

from __future__ import annotations

from collections.abc import Mapping

from mockllm.core.text import shorten
from mockllm.errors import RequestError

_MOST_DIGITS = 18
"""Python reads at most 4,300 digits, and nothing here counts so far."""


def whole_number(query: Mapping[str, str], name: str, default: int = 0, *, least: int = 0) -> int:
    """A number in a query."""
    given = query.get(name) or str(default)
    digits = given.isascii() and given.isdecimal() and len(given) <= _MOST_DIGITS
    if not digits or int(given) < least:
        message = f"{name} must be a whole number from {least}, got {shorten(given, 40)!r}."
        raise RequestError(message, param=name)
    return int(given)


def flag(query: Mapping[str, str], name: str) -> bool:
    """Whether a query has a flag."""
    value = query.get(name, "false")
    if value not in ("true", "false"):
        raise RequestError(f"{name} must be true or false, got {value!r}.", param=name)
    return value == "true"


def names(query: Mapping[str, str], name: str) -> frozenset[str]:
    """Names with commas between them."""
    return frozenset(filter(None, query.get(name, "").split(",")))
