"""Durations and percentages are read and written exactly."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.scenario.durations import (
    MAX_DURATION,
    duration,
    percent,
    read_duration,
    read_percent,
)
from tests.cases import for_all


@given(st.integers(0, MAX_DURATION))
def test_durations_survive(microseconds: int) -> None:
    """Reading a written duration gives the same value."""
    assert read_duration(duration(microseconds)) == microseconds


@given(st.floats(0, 1).map(abs))
def test_percentages_survive(share: float) -> None:
    """Reading a written share gives the same number."""
    assert read_percent(percent(share)) == share


@pytest.mark.parametrize(
    ("text", "microseconds"),
    [
        ("0", 0),
        ("0s", 0),
        ("300ms", 300_000),
        ("2s", 2_000_000),
        ("1.5s", 1_500_000),
        ("500us", 500),
        ("1m", 60_000_000),
        ("0.001ms", 1),
        ("2 s", 2_000_000),
    ],
)
def test_durations(text: str, microseconds: int) -> None:
    """Every unit of the language is read, and fractions that give whole microseconds."""
    assert read_duration(text) == microseconds


@for_all("text", ["", "5", "1h", "-1s", "1e3s", "s", "1,5s", "٣s", "0.1us", "2000m"])
def test_no_durations(text: str) -> None:
    """A value without a unit, with another unit or out of range is refused."""
    with pytest.raises(ValueError):
        read_duration(text)


@pytest.mark.parametrize(
    ("microseconds", "text"),
    [
        (0, "0"),
        (1, "1us"),
        (1_500, "1500us"),
        (2_000, "2ms"),
        (1_500_000, "1500ms"),
        (6 * 10**7, "1m"),
    ],
)
def test_durations_are_written_short(microseconds: int, text: str) -> None:
    """The largest unit without a fraction is written."""
    assert duration(microseconds) == text


@pytest.mark.parametrize(
    ("text", "share"), [("20%", 0.2), ("0%", 0), ("100%", 1), ("12.5 %", 0.125)]
)
def test_percentages(text: str, share: float) -> None:
    """Percentages are shares of one, written without unnecessary digits."""
    assert read_percent(text) == share
    assert percent(share) == text.replace(" ", "")


@pytest.mark.parametrize("text", ["", "20", "0.2", "101%", "-5%", "%", "100.1%"])
def test_no_percentages(text: str) -> None:
    """Numbers without the sign and shares above 100% are refused."""
    with pytest.raises(ValueError):
        read_percent(text)
