"""Values that are drawn have the distribution that was written, and are the same everywhere."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.core.distributions import Distribution, read_distribution, shares
from mockllm.scenario.durations import read_duration
from tests.cases import for_all

DRAWN = 10_000
_CRITICAL = 1.63 / math.sqrt(DRAWN)
"""The distance between empirical and true distribution function that 1 % of all samples exceed
(Kolmogorov). The seed is fixed, so that the tests pass always, or never."""


def read(text: str) -> Distribution:
    return read_distribution(text, read_duration)


def phi(x: float) -> float:
    """The distribution function of the standard normal distribution."""
    return 0.5 * math.erfc(-x / math.sqrt(2))


def normal(mean: float, deviation: float) -> Callable[[float], float]:
    """The distribution function of a normal distribution that is cut off below 0."""
    below = phi(-mean / deviation)
    return lambda x: (phi((x - mean) / deviation) - below) / (1 - below)


def lognormal(median: float, p99: float) -> Callable[[float], float]:
    sigma = math.log(p99 / median) / 2.3263478740408408
    return lambda x: phi(math.log(x / median) / sigma)


@for_all(
    ("text", "function"),
    [
        ("uniform(1s, 3s)", lambda x: (x - 1e6) / 2e6),
        ("exponential(40ms)", lambda x: 1 - math.exp(-x / 40_000)),
        ("normal(20ms, 5ms)", normal(20_000, 5_000)),
        ("normal(20ms, 20ms)", normal(20_000, 20_000)),
        ("normal(0, 5ms)", normal(0, 5_000)),
        ("lognormal(300ms, p99=2s)", lognormal(300_000, 2_000_000)),
    ],
)
def test_drawn_values_have_the_distribution(text: str, function: Callable[[float], float]) -> None:
    """Kolmogorov-Smirnov: nowhere is the share of the values below x far from F(x)."""
    values = sorted(read(text).draw("0", "session", 1, count=DRAWN))
    distance = max(
        max(abs(function(x) - n / DRAWN), abs(function(x) - (n + 1) / DRAWN))
        for n, x in enumerate(values)
    )
    assert distance < _CRITICAL


def test_each_sample_is_as_likely() -> None:
    """A sample that is there twice comes twice as often."""
    drawn = Counter(Distribution("samples", (1.0, 2.0, 2.0, 5.0)).draw("0", count=DRAWN))
    assert drawn.keys() == {1.0, 2.0, 5.0}
    for value, share in ((1.0, 0.25), (2.0, 0.5), (5.0, 0.25)):
        assert abs(drawn[value] / DRAWN - share) < 5 * math.sqrt(share * (1 - share) / DRAWN)


def test_a_lognormal_has_the_percentiles_that_it_names() -> None:
    """Half of all values are below the median, and 99 % below the p99."""
    distribution = read("lognormal(300ms, p99=2s)")
    assert distribution.quantile(0.5) == pytest.approx(300_000)
    assert distribution.quantile(0.99) == pytest.approx(2_000_000)


durations = st.integers(0, 10**8).map(float)
distributions = st.one_of(
    st.builds(lambda value: Distribution("constant", (value,)), durations),
    st.builds(lambda low, more: Distribution("uniform", (low, low + more)), durations, durations),
    st.builds(lambda mean, by: Distribution("normal", (mean, by)), durations, durations),
    st.builds(
        lambda median, more: Distribution("lognormal", (median, median + more)),
        st.floats(1, 1e8),
        st.floats(1, 1e8),
    ),
    st.builds(lambda mean: Distribution("exponential", (mean,)), st.floats(1, 1e8)),
    st.lists(durations, min_size=1).map(lambda some: Distribution("samples", tuple(sorted(some)))),
)
between = st.floats(0, 1, exclude_min=True, exclude_max=True)


@given(distributions, between, between)
def test_quantiles_are_finite_and_rise(
    distribution: Distribution, one: float, other: float
) -> None:
    """No value is negative or infinite, and a larger share never has a smaller value."""
    low, high = sorted((one, other))
    assert 0 <= distribution.quantile(low) < math.inf
    assert distribution.quantile(low) <= distribution.quantile(high) * (1 + 1e-9)


@given(distributions, st.text(), st.integers(0, 50))
def test_drawing_again_gives_the_same(distribution: Distribution, seed: str, count: int) -> None:
    """More values begin with the same ones."""
    values = distribution.draw(seed, "what", 1, count=count)
    assert len(values) == count
    assert distribution.draw(seed, "what", 1, count=count + 3)[:count] == values


def test_shares_never_change() -> None:
    """Times of load tests are compared between releases and machines."""
    assert shares("0", "default", 1, count=3) == [
        0.9203545698073307,
        0.6910996426404247,
        0.48469328732478123,
    ]


def test_shares_depend_on_all_arguments() -> None:
    """Requests and sessions differ."""
    kinds = [("0", "a", 1), ("0", "a", 2), ("0", "b", 1), ("1", "a", 1)]
    drawn = [tuple(shares(seed, *what, count=2)) for seed, *what in kinds]
    assert len(set(drawn)) == len(kinds)
    assert all(0 < share < 1 for values in drawn for share in values)
    assert all(one != two for one, two in drawn)


def test_shares_are_evenly_spread() -> None:
    """They are the uniform distribution that all others are made from."""
    values = [0.0, *sorted(shares("0", count=DRAWN)), 1.0]
    assert max(abs(x - n / DRAWN) for n, x in enumerate(values[1:-1])) < _CRITICAL
    assert max(b - a for a, b in pairwise(values)) < 20 / DRAWN


@for_all(
    ("text", "kind", "values"),
    [
        ("300ms", "constant", (300_000,)),
        (" 0 ", "constant", (0,)),
        ("constant(2s)", "constant", (2_000_000,)),
        ("uniform(1s,2s)", "uniform", (1_000_000, 2_000_000)),
        ("uniform(1s, 1s)", "uniform", (1_000_000, 1_000_000)),
        ("normal( 20ms , 0 )", "normal", (20_000, 0)),
        ("lognormal(300ms, p99=2s)", "lognormal", (300_000, 2_000_000)),
        ("lognormal(300ms, p99= 2s)", "lognormal", (300_000, 2_000_000)),
        ("exponential(40ms)", "exponential", (40_000,)),
    ],
)
def test_what_can_be_written(text: str, kind: str, values: tuple[float, ...]) -> None:
    """Each kind, with or without spaces."""
    assert read(text) == Distribution(kind, values)  # type: ignore[arg-type]


def test_samples_are_asked_for_by_name() -> None:
    """They are kept in their order of size."""
    given: list[str] = []

    def samples(name: str) -> list[float]:
        given.append(name)
        return [3.0, 1.0, 2.0]

    assert read_distribution("samples( ttft.txt )", read_duration, samples).values == (1, 2, 3)
    assert given == ["ttft.txt"]


@for_all(
    ("text", "message"),
    [
        ("soon", "'soon' in 'soon' must be a duration such as 300ms, 2s, 500us or 1m"),
        ("", "'' in '' must be a duration such as 300ms, 2s, 500us or 1m"),
        (
            "normal(20ms, five)",
            "'five' in 'normal(20ms, five)' must be a duration such as 300ms, 2s, 500us or 1m",
        ),
        (
            "gamma(1s)",
            "'gamma(1s)' is no distribution; there are constant(VALUE), uniform(LEAST, GREATEST), "
            "normal(MEAN, DEVIATION), lognormal(MEDIAN, p99=VALUE), exponential(MEAN), "
            "samples(FILE)",
        ),
        ("normal(1s)", "'normal(1s)' must be written as normal(MEAN, DEVIATION)"),
        ("exponential(1s, 2s)", "'exponential(1s, 2s)' must be written as exponential(MEAN)"),
        ("lognormal(1s)", "'lognormal(1s)' must be written as lognormal(MEDIAN, p99=VALUE)"),
        (
            "lognormal(1s, 2s)",
            "'lognormal(1s, 2s)' must be written as lognormal(MEDIAN, p99=VALUE)",
        ),
        ("uniform(2s, 1s)", "'uniform(2s, 1s)' must have the smaller value first"),
        (
            "lognormal(2s, p99=1s)",
            "'lognormal(2s, p99=1s)' must have a median above 0, and a p99 above the median",
        ),
        (
            "lognormal(0, p99=1s)",
            "'lognormal(0, p99=1s)' must have a median above 0, and a p99 above the median",
        ),
        ("exponential(0)", "'exponential(0)' must have a mean above 0"),
        ("samples(a.txt)", "samples come from a file, and none may be named here"),
    ],
)
def test_what_is_wrong_is_said(text: str, message: str) -> None:
    """The message names the part and the whole, and what there is."""
    with pytest.raises(ValueError) as caught:
        read(text)
    assert str(caught.value) == message


def test_samples_that_are_not_there() -> None:
    """A file without a sample is a mistake."""
    with pytest.raises(ValueError, match=r"'samples\(a.txt\)' has no samples"):
        read_distribution("samples(a.txt)", read_duration, lambda _: [])
