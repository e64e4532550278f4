"""The comparison of benchmarks in two checkouts: which figures are compared, and how."""

from __future__ import annotations

import runpy
from pathlib import Path

COMPARE = runpy.run_path(str(Path(__file__).parents[2] / "measurements/benchmarks/compare.py"))


def test_figures_are_known_by_their_place_in_a_line() -> None:
    """Numbers with separators count; those in names do not."""
    figures = COMPARE["figures_of"]("chat, 32 connection(s): 1,234 (5.5 to 7)\nhttp2 ok\n")
    label = "chat, # connection(s): # (# to #)"
    assert figures == {(label, 0, 0): 32, (label, 0, 1): 1234, (label, 0, 2): 5.5, (label, 0, 3): 7}


def test_lines_that_differ_in_figures_only_are_compared_in_their_order() -> None:
    """The figures of 32 connections do not take the place of those of one."""
    figures = COMPARE["figures_of"]("1 connection: 10\n32 connection: 20\n")
    label = "# connection: #"
    assert [figures[label, number, 1] for number in (0, 1)] == [10, 20]


def test_the_ratio_is_that_of_each_round() -> None:
    """A machine that is slow in one round is slow for both; what one side lacks is counted."""
    first = ({("a #", 0, 0): 10.0, ("b #", 0, 0): 1.0}, {("a #", 0, 0): 20.0})
    second = ({("a #", 0, 0): 100.0}, {("a #", 0, 0): 200.0})
    lines = COMPARE["compare"]([first, second])
    assert lines[0].split() == ["0.50", "55", "110", "1", "of", "a", "#"]
    assert lines[1:] == ["1 figures are not printed by both in every round"]
