"""Bursts of faults: when they are, and that a run repeats."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.core.errors import UsageError
from mockllm.play.replay.fault_plan import Bursts, FaultPlan, read_bursts, read_plan

RANDOM = "rate=50% every=exponential(60s) for=uniform(2s, 5s)"


def plan(burst: str, rate: float | None = None, seed: str = "0") -> FaultPlan:
    return read_plan(["cut:after=3events"], rate=rate, seed=seed, burst=burst)


def test_constant_times() -> None:
    """The first burst begins when `every` is over, the next one so long after its end."""
    bursts = read_bursts("rate=100% every=8s for=2s")
    for cycle in (0, 1, 63, 64, 65, 10_000):  # over the edges of windows, too
        on = [second for second in range(10) if bursts.is_on("s", 10 * cycle + second + 0.5)]
        assert on == [8, 9], cycle


def test_the_share_in_and_out_of_bursts() -> None:
    """Within a burst its own rate holds, outside the plan's, which is 0 without another."""
    outside, inside = 4.0, 9.0

    def share(plan: FaultPlan, at: float) -> float:
        return sum(bool(plan.draw("s", number, at)) for number in range(2000)) / 2000

    quiet = plan("rate=50% every=8s for=2s")
    assert share(quiet, outside) == 0
    assert 0.45 < share(quiet, inside) < 0.55
    busy = plan("rate=100% every=8s for=2s", rate=0.1)
    assert 0.07 < share(busy, outside) < 0.13
    assert share(busy, inside) == 1


@given(st.text(max_size=5), st.lists(st.floats(0, 1e7), max_size=20))
def test_a_run_repeats(seed: str, moments: list[float]) -> None:
    """In any order of the times, in another process too; and another seed has other times."""
    bursts = read_bursts(RANDOM)
    found = [bursts.is_on(seed, at) for at in moments]
    other: Bursts = pickle.loads(pickle.dumps(bursts))
    assert [other.is_on(seed, at) for at in reversed(moments)] == found[::-1]


@pytest.mark.slow
def test_random_times() -> None:
    """Over a long time, bursts take the share of the time that their lengths give, and each lasts
    as long as is written."""
    bursts = read_bursts(RANDOM)
    states = [bursts.is_on("7", tenth / 10) for tenth in range(10 * 3600 * 10)]
    assert 0.045 < sum(states) / len(states) < 0.065  # 3.5 s of 63.5 s
    lengths = [len(run) for run in "".join(".#"[on] for on in states).split(".") if run]
    assert max(lengths) <= 51
    assert sum(length >= 20 for length in lengths) > 0.95 * len(lengths)
    assert len(set(lengths)) > 20
    assert states != [bursts.is_on("8", tenth / 10) for tenth in range(len(states))]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("rate=50%", "needs every and for, such as rate=50% every=exponential(60s) for=uniform("),
        ("rate=50% every=1s for=1s for=2s", "has 'for' twice; keep one"),
        ("rate=50% every=1s during=1s", "there is no 'during'; there are: rate, every, for"),
        ("half", "must be KEY=VALUE, such as rate=50% every=exponential(60s) for=uniform(2s, 5s)"),
        ("rate=2 every=1s for=1s", "rate must be a percentage from 0% to 100%"),
        ("rate=2% every=often for=1s", "every: 'often' in 'often' must be a duration"),
        ("rate=2% every=1s for=expo(1s)", "for: 'expo(1s)' is no distribution"),
        ("rate=2% every=0 for=1s", "every must be more than 0 in half of all cases"),
        ("rate=2% every=1s for=uniform(0, 0)", "for must be more than 0"),
        ("rate=2% every=samples(x.txt) for=1s", "every: samples come from a file"),
    ],
)
def test_mistakes(text: str, why: str) -> None:
    """The message has the burst, and says what each part must be."""
    with pytest.raises(UsageError) as caught:
        read_bursts(text)
    assert str(caught.value).startswith(f"fault-burst {text!r}: ")
    assert why in str(caught.value)


def test_a_burst_needs_a_fault_of_answers() -> None:
    """A bound on connections is none."""
    with pytest.raises(UsageError, match="needs a fault of answers"):
        read_plan(["limit:number=1"], burst=RANDOM)
