"""Variations cut and frame an answer in other ways, and keep its meaning."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.checking.cases.case import recut
from mockllm.checking.cases.compile import case, plain_cases, single
from mockllm.checking.cases.variation import PLAIN, Variation, draw, vary
from mockllm.protocols import PROTOCOLS
from mockllm.replay.loading import load, loads
from mockllm.scenario.dump import dump
from mockllm.scenario.shipped import shipped_scenarios

APIS = tuple(PROTOCOLS)

# The scenarios with a hundred calls and with pages of text take long, and cover no other code.
SCENARIOS = [
    scenario
    for scenario in load([shipped_scenarios()])
    if scenario.name not in ("hundred-tools", "long-text")
]
sizes = st.lists(st.integers(1, 20), max_size=3).map(tuple)
variations = st.builds(
    Variation,
    split=sizes,
    group=st.none() | st.integers(2, 5),
    line_end=st.none() | st.sampled_from(["lf", "crlf", "cr"]),
    bom=st.booleans(),
    multiline=st.booleans(),
    comments=st.none() | st.integers(1, 3),
    cut=sizes,
)


@pytest.mark.slow
@pytest.mark.parametrize("api", APIS)
@given(scenario=st.sampled_from(SCENARIOS), variation=variations)
def test_a_variation_keeps_the_expected_outcome(api, scenario, variation) -> None:
    """Text, calls and finish reason of a varied case are those of the plain case."""
    plains = list(plain_cases([scenario], api))
    for plain in plains[:2]:
        varied = case(plain.scenario, api, variation)
        assert varied.expected.text == plain.expected.text
        assert varied.expected.tool_calls == plain.expected.tool_calls
        assert varied.expected.finish == plain.expected.finish


@given(scenario=st.sampled_from(SCENARIOS), variation=variations)
def test_a_variation_survives_dump_and_load(scenario, variation) -> None:
    """A varied scenario that is dumped to YAML and loaded again is equal."""
    turns = [i for i, turn in enumerate(scenario.turns) if turn.http is None]
    varied = vary(single(scenario, turns[0]), variation) if turns else None
    if varied is not None:
        (again,) = loads(dump(varied))
        assert again == varied


@given(st.text(max_size=20))
def test_a_seed_gives_one_variation(seed: str) -> None:
    """The same seed gives the same variation, which is never the plain one."""
    assert draw(seed) == draw(seed) != PLAIN
    assert draw(seed, payloads=True).in_payloads


@given(st.lists(st.binary(max_size=30), max_size=5), st.lists(st.integers(1, 9), min_size=1))
def test_recut_keeps_the_bytes(chunks, widths) -> None:
    """The joined bytes are equal, and the chunks have the requested sizes."""
    cut = list(recut(chunks, widths))
    assert b"".join(cut) == b"".join(chunks)
    whole = [len(chunk) for chunk in cut[:-1]]
    assert whole == [widths[i % len(widths)] for i in range(len(whole))]
