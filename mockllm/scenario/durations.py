"""Durations (`300ms`) and percentages (`20%`), read and written exactly.

Durations are whole microseconds, percentages are shares of one.
"""

from __future__ import annotations

import re

MAX_DURATION = 24 * 3600 * 1_000_000
"""A day, in microseconds: a longer duration is a typing mistake."""

_UNITS = {"us": 1, "ms": 1_000, "s": 1_000_000, "m": 60_000_000}
_DURATION = re.compile(r"(\d{1,12}(?:\.\d{1,12})?) ?(us|ms|s|m)\Z", re.ASCII)
_PERCENT = re.compile(r"(\d{1,3})(?:\.(\d{1,400}))? ?%\Z", re.ASCII)


def read_duration(text: str) -> int:
    """Microseconds of `300ms`, `2s`, `1.5s`, `500us`, `1m` or `0`.

    Raises:
        ValueError: it is no duration; the message follows "must be".
    """
    if text == "0":
        return 0
    match = _DURATION.match(text)
    if match is None:
        raise ValueError("a duration such as 300ms, 2s, 500us or 1m")
    whole, _, decimals = match[1].partition(".")
    microseconds, rest = divmod(
        int(whole + decimals) * _UNITS[match[2]], int("1" + "0" * len(decimals))
    )
    if microseconds > MAX_DURATION or (microseconds == MAX_DURATION and rest):
        raise ValueError("at most a day (1440m)")
    if rest:
        raise ValueError("a whole number of microseconds")
    return microseconds


def duration(microseconds: int) -> str:
    """The shortest way to write a duration: `2s`, never `2000ms`."""
    if not microseconds:
        return "0"
    for unit in ("m", "s", "ms"):
        if microseconds % _UNITS[unit] == 0:
            return f"{microseconds // _UNITS[unit]}{unit}"
    return f"{microseconds}us"


def read_percent(text: str) -> float:
    """The share of one: 0.2 for `20%`.

    Raises:
        ValueError: it is no percentage from 0% to 100%; the message follows "must be".
    """
    match = _PERCENT.match(text)
    if match is None or (int(match[1]), int(match[2] or 0)) > (100, 0):
        raise ValueError("a percentage from 0% to 100%, such as 20%")
    return float(f"{match[1]}.{match[2] or 0}e-2")


def percent(share: float) -> str:
    """A share as a percentage; `read_percent` gives exactly the same number again."""
    # Imported here: only writing needs it, and its import takes as long as reading a scenario.
    from decimal import Decimal

    text = format(Decimal(repr(share)) * 100, "f")
    return (text.rstrip("0").rstrip(".") if "." in text else text) + "%"
