"""Variations cut an answer anew and change nothing that it says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.checking.cases.case import recut
from mockllm.checking.cases.compile import case, plain_cases, single
from mockllm.checking.cases.variation import PLAIN, Variation, draw, vary
from mockllm.scenario.dump import dump
from mockllm.replay.loading import load, loads
from mockllm.scenario.model import APIS
from mockllm.scenario.shipped import shipped_scenarios

# Those with a hundred calls and with pages of text say nothing more here, and take long.
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
def test_a_variation_means_the_same(api, scenario, variation) -> None:
    """Whatever is cut, the case expects what the plain one expects."""
    plains = list(plain_cases([scenario], api))
    for plain in plains[:2]:
        varied = case(plain.scenario, api, variation)
        assert varied.expected.text == plain.expected.text
        assert varied.expected.tool_calls == plain.expected.tool_calls
        assert varied.expected.finish == plain.expected.finish


@given(scenario=st.sampled_from(SCENARIOS), variation=variations)
def test_a_variation_can_be_written_down(scenario, variation) -> None:
    """A case is a scenario: it loads again from its own YAML, and is the same."""
    turns = [i for i, turn in enumerate(scenario.turns) if turn.http is None]
    varied = vary(single(scenario, turns[0]), variation) if turns else None
    if varied is not None:
        (again,) = loads(dump(varied))
        assert again == varied


@given(st.text(max_size=20))
def test_a_seed_stands_for_one_variation(seed: str) -> None:
    """The same seed gives the same variation, and never the plain one."""
    assert draw(seed) == draw(seed) != PLAIN
    assert draw(seed, payloads=True).in_payloads


@given(st.lists(st.binary(max_size=30), max_size=5), st.lists(st.integers(1, 9), min_size=1))
def test_cutting_again_loses_nothing(chunks, widths) -> None:
    """The bytes are the same, in chunks of the sizes asked for."""
    cut = list(recut(chunks, widths))
    assert b"".join(cut) == b"".join(chunks)
    whole = [len(chunk) for chunk in cut[:-1]]
    assert whole == [widths[i % len(widths)] for i in range(len(whole))]
