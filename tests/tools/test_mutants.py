"""Mutation testing: how the sample is drawn, and how its figures are reported."""

from __future__ import annotations

import pytest

from tools.mutants import Result, draw, report

NAMES = [f"mockllm.core.seeded.x_derive__mutmut_{n}" for n in range(50)]


def test_a_sample_depends_on_the_seed_alone() -> None:
    """Not on the order in which the mutants were found; a small set is taken whole."""
    sample = draw(NAMES, 10, "1")
    assert len(set(sample)) == 10
    assert sample == draw(NAMES[::-1], 10, "1")
    assert sample != draw(NAMES, 10, "2")
    assert draw(NAMES, 100, "1") == sorted(NAMES)


@pytest.mark.parametrize(
    ("outcome", "noticed"),
    [("killed", True), ("timed out", True), ("survived", False), ("not reached", False)],
)
def test_what_counts_as_noticed(outcome: str, noticed: bool) -> None:
    """A test that fails, or one that does not end any more."""
    assert Result(NAMES[0], outcome).noticed == noticed


def test_the_module_of_a_mutant() -> None:
    """Without the package, the function and the number."""
    assert Result(NAMES[0], "killed").module == "core.seeded"
    assert Result("mockllm.play.replay.call.xǁCallǁread__mutmut_1", "").module == "play.replay.call"


def test_the_report() -> None:
    """A line for each module, other outcomes by name, and the figure of all together."""
    results = [
        Result(NAMES[0], "killed"),
        Result(NAMES[1], "timed out"),
        Result(NAMES[2], "exit code -9"),
        Result("mockllm.core.jsontext.x_parse_object__mutmut_1", "survived"),
    ]
    assert report(results, 8743).splitlines() == [
        "module                            killed   timed out    survived not reached",
        "core.jsontext                                                  1            ",
        "core.seeded                            1           1                        ",
        "  1 with exit code -9",
        "2 of 4 mutants killed (50.0%), drawn from 8,743",
    ]
