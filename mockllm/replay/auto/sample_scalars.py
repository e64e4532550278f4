"""Strings and numbers to try for a JSON Schema, the most likely first. They are few, and short."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

_FORMATS = {
    "date-time": "2026-01-01T00:00:00Z",
    "date": "2026-01-01",
    "time": "00:00:00Z",
    "duration": "P1D",
    "email": "user@example.com",
    "hostname": "example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uri": "https://example.com/",
    "uri-reference": "https://example.com/",
    "uuid": "00000000-0000-4000-8000-000000000000",
    "json-pointer": "/a",
    "regex": "a",
}

_PATTERN_CANDIDATES = (
    "a", "A", "0", "1", "aa", "00", "abc", "ABC", "123", "0000", "1234", "12345", "a1", "A1",
    "a-b", "a_b", "abc-123", "2026-01-01", "12:00", "12:00:00", "1.0", "1.0.0", "v1.0.0",
    "user@example.com", "https://example.com/", "+15550100", "#000000", "/a", "a/b", "A-1",
    "AB", "AAA", "USD", "en", "en-US", "",
)  # fmt: skip


def strings(schema: dict[str, Any]) -> Iterator[str]:
    """Those of a usual form that fit the format, the pattern or the length."""
    least = int(schema.get("minLength", 0))
    if "format" in schema and schema["format"] in _FORMATS:
        yield _FORMATS[schema["format"]]
    if "pattern" in schema:
        yield from _PATTERN_CANDIDATES
        yield from (char * max(1, least) for char in "a0A1x")
        for size in (2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 36, 40, 64):
            yield from (char * size for char in "a0A")
    text = "text" * max(1, -(-least // 4))
    text = text[:least] if least > 4 else text
    yield text[: int(schema["maxLength"])] if "maxLength" in schema else text


def numbers(schema: dict[str, Any], *, whole: bool) -> Iterator[float]:
    """Those that fit the bounds; none where arithmetic with them overflows."""
    try:
        yield from _numbers(schema, whole=whole)
    except (OverflowError, ValueError):
        return


def _numbers(schema: dict[str, Any], *, whole: bool) -> Iterator[float]:
    step = schema.get("multipleOf", 1)
    low = schema.get("minimum", -math.inf)
    above = schema.get("exclusiveMinimum", -math.inf)
    high = schema.get("maximum", math.inf)
    below = schema.get("exclusiveMaximum", math.inf)

    def fits(value: float) -> bool:
        return bool(low <= value <= high and above < value < below)

    floor, ceiling = max(low, above), min(high, below)
    tries: list[float] = [1, 0, step]
    if floor > -math.inf:
        first = math.ceil(floor / step) * step
        tries += [floor, first, first + step, floor + 1]
    if ceiling < math.inf:
        first = math.floor(ceiling / step) * step
        tries += [ceiling, first, first - step, ceiling - 1]
    if floor > -math.inf and ceiling < math.inf:
        tries.append((floor + ceiling) / 2)
    for value in tries:
        if fits(value):
            yield int(value) if whole or float(value).is_integer() else value
