"""Latency is written in the same way in options and in YAML."""

from __future__ import annotations

from pathlib import Path

import pytest

from mockllm.core.distributions import Distribution
from mockllm.core.errors import ScenarioError
from mockllm.play.replay.loading import load, loads
from mockllm.scenario.latency_model import Latency, LoadFactor
from mockllm.scenario.reading.latency import RecordedTimes, read_latency, read_samples
from tests.cases import for_all

PAUSED = """
scenario: paused
defaults: {latency: "ttft=1s prefill=50us/token"}
turns:
  - reply: {text: one}
    timing: {latency: "itl=exponential(20ms) load-factor=1.5@64"}
"""


def test_every_key() -> None:
    """Distributions for times, a duration for each token, a factor at a load."""
    latency = read_latency(
        "ttft=lognormal(300ms, p99=2s)  itl=normal(20ms,5ms) prefill=0.05ms/token "
        "load-factor=1.5@64"
    )
    assert latency.ttft == Distribution("lognormal", (300_000, 2_000_000))
    assert latency.itl == Distribution("normal", (20_000, 5_000))
    assert latency.prefill == 50
    assert latency.load_factor == LoadFactor(1.5, 64)


def test_yaml_has_the_same_text() -> None:
    """For all turns of a scenario, and for one."""
    (scenario,) = loads(PAUSED)
    assert scenario.defaults.latency == read_latency("ttft=1s prefill=50us/token")
    timing = scenario.turns[0].timing
    assert timing is not None
    assert timing.latency == read_latency("itl=exponential(20ms) load-factor=1.5@64")


def test_what_is_not_said_comes_from_elsewhere() -> None:
    """Each value by itself; what both say is that of the nearer one."""
    near, far = read_latency("ttft=1s itl=2ms"), read_latency("ttft=5s prefill=1ms/token")
    joined = near.over(far)
    assert (joined.ttft, joined.itl, joined.prefill) == (near.ttft, near.itl, far.prefill)
    assert near.over(None) == near


def test_load_factor_in_proportion() -> None:
    """Nothing with nothing else, the factor at its load, more beyond it."""
    factor = LoadFactor(1.5, 64)
    assert [factor.at(running) for running in (0, 32, 64, 128)] == [1, 1.25, 1.5, 2]


def test_recordings_give_both_times() -> None:
    """What is written beside them wins."""

    def recorded(name: str) -> RecordedTimes:
        assert name == "recorded/"
        return RecordedTimes([3.0, 1.0], [5.0])

    latency = read_latency("from=recorded/ itl=1ms", recorded=recorded)
    assert latency.ttft == Distribution("samples", (1.0, 3.0))
    assert latency.itl == Distribution("constant", (1_000,))


def test_samples_are_beside_the_yaml(tmp_path: Path) -> None:
    """One duration a line; empty lines do not count."""
    (tmp_path / "ttft.txt").write_text("300ms\n\n 1s\n")
    file = tmp_path / "paused.yaml"
    file.write_text(PAUSED.replace("exponential(20ms)", "samples(ttft.txt)"))
    timing = load([file])[0].turns[0].timing
    assert timing is not None
    assert timing.latency is not None
    assert timing.latency.itl == Distribution("samples", (300_000, 1_000_000))
    (tmp_path / "ttft.txt").write_text("300ms\n2\n")
    with pytest.raises(ScenarioError, match=r"itl: ttft.txt:2: '2' must be a duration"):
        load([file])
    (tmp_path / "ttft.txt").unlink()
    with pytest.raises(ScenarioError, match=r"itl: 'ttft.txt' cannot be read: .*; put it there"):
        load([file])


def test_samples_may_be_many() -> None:
    """They keep their order."""
    assert read_samples("2s\n1s\n", "a.txt") == [2_000_000, 1_000_000]


@for_all(
    ("text", "message"),
    [
        (
            "",
            "must be KEY=VALUE, such as ttft=lognormal(300ms, p99=2s) itl=normal(20ms, 5ms), "
            "got ''",
        ),
        (
            "soon ttft=1s",
            "must be KEY=VALUE, such as ttft=lognormal(300ms, p99=2s) itl=normal(20ms, 5ms), "
            "got 'soon ttft=1s'",
        ),
        (
            "tftt=1s",
            "there is no 'tftt'; did you mean 'ttft'? There are: ttft, itl, prefill, load-factor, "
            "from",
        ),
        ("x=1s", "there is no 'x'; there are: ttft, itl, prefill, load-factor, from"),
        ("ttft=1s ttft=2s", "has 'ttft' twice; keep one"),
        ("itl=normal(1s)", "itl: 'normal(1s)' must be written as normal(MEAN, DEVIATION)"),
        (
            "prefill=1ms",
            "prefill must be a duration for each token, as 50us/token, got '1ms'",
        ),
        (
            "prefill=1/token",
            "prefill: '1' must be a duration such as 300ms, 2s, 500us or 1m",
        ),
        (
            "load-factor=0.5@64",
            "load-factor must be a factor from 1, and at how many running answers it holds, as "
            "1.5@64, got '0.5@64'",
        ),
        (
            "load-factor=2@0",
            "load-factor must be a factor from 1, and at how many running answers it holds, as "
            "1.5@64, got '2@0'",
        ),
        ("from=recorded", "'from' is for the option --latency; a scenario has samples(FILE)"),
    ],
)
def test_what_is_wrong_is_said(text: str, message: str) -> None:
    """The message says which part is wrong, and what it must be."""
    with pytest.raises(ValueError) as caught:
        read_latency(text)
    assert str(caught.value) == message


def test_nothing_is_said() -> None:
    """No latency says nothing."""
    assert Latency().over(None) == Latency()
