"""Values, counted in classes. Those of several processes can be added up."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate


@dataclass(slots=True)
class Histogram:
    """The number of values in each class.

    Args:
        bounds: the upper bounds of the classes, which belong to them, in order.
        counts: of each class, then of the values above all bounds; [] for none yet.
        total: the sum of all values that are not negative.
    """

    bounds: tuple[float, ...]
    counts: list[int] = field(default_factory=list)
    total: float = 0.0

    def __post_init__(self) -> None:
        self.counts = self.counts or [0] * (len(self.bounds) + 1)

    def note(self, value: float) -> None:
        """Counts a value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        if value > 0:
            self.total += value

    @property
    def count(self) -> int:
        return sum(self.counts)

    def below(self, bounds: Sequence[float]) -> list[int]:
        """The number of values up to each of some bounds, which are among its own."""
        counts = [*accumulate(self.counts)]
        return [counts[self.bounds.index(bound)] for bound in bounds]

    def add(self, other: Histogram) -> None:
        self.counts = [sum(pair) for pair in zip(self.counts, other.counts, strict=True)]
        self.total += other.total

    def as_json(self) -> tuple[list[int], float]:
        """Counts and sum."""
        return list(self.counts), self.total
