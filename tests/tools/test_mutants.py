"""Mutation testing: how the sample is drawn, and how its figures are reported."""

from __future__ import annotations

import pytest

from tests.test_structure import WINGS as ARCHITECTURE
from tools.mutants import WINGS, Result, draw, report

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


def test_the_wing_of_a_mutant() -> None:
    """The first folder of the package; the plugin is a package of its own."""
    assert Result(NAMES[0], "killed").wing == "core"
    assert Result("mockllm.play.replay.call.xǁCallǁread__mutmut_1", "").wing == "play"
    assert Result("mockllm_pytest.plugin.x_name__mutmut_1", "").wing == "plugin"


def test_every_wing_is_sampled() -> None:
    """Those of the architecture, and the plugin."""
    assert (*ARCHITECTURE, "plugin") == WINGS


def test_the_report() -> None:
    """A line for each wing, other outcomes by name, and the figure of all that were run."""
    results = [
        Result(NAMES[0], "killed"),
        Result(NAMES[1], "timed out"),
        Result(NAMES[2], "exit code -9"),
        Result("mockllm.cli.show.x_show__mutmut_1", "survived"),
        Result("mockllm.cli.show.x_show__mutmut_2", "not run"),
    ]
    assert report(results).splitlines() == [
        "wing              killed   timed out    survived not reached     not run",
        "core                   1           1                                    ",
        "  1 with exit code -9",
        "cli                                            1                       1",
        "2 of 4 mutants killed (50.0%)",
    ]
