"""Variations cut and frame an answer in other ways, and keep its meaning."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.checking.cases.build import case
from mockllm.checking.cases.case import recut
from mockllm.checking.cases.compile import plain_cases
from mockllm.checking.cases.scenarios import PLAIN, Variation, draw, limit_chunks, single, vary
from mockllm.play.replay.loading import load, loads, shipped_scenarios
from mockllm.scenario.dump import dump
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.decoding import decode_turn
from tests.apis import CALLING

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
    """The expected outcome is that of the plain case, and our own decoder reads its text and
    calls in the bytes."""
    plains = list(plain_cases([scenario], api))
    for plain in plains[:2]:
        varied = case(plain.scenario, api, variation)
        assert varied.expected == plain.expected
        assert varied.reaction == plain.reaction
        protocol = PROTOCOLS[api]
        turn = decode_turn(protocol, protocol.usual.decode(b"".join(varied.chunks)))[0].whole()
        assert turn.text == varied.expected.text
        names = [call.name for call in varied.expected.tool_calls]
        assert [call.name for call in turn.tool_calls] == names


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


@given(st.lists(st.integers(1, 60), min_size=1, max_size=3).map(tuple), st.integers(0, 10**7))
def test_a_long_stream_is_cut_into_a_bounded_number_of_chunks(cut, size: int) -> None:
    """A short stream is cut as drawn; a long one has the drawn sizes, a large chunk, and so on."""
    variation = Variation(split=(2,), cut=cut)
    limited = limit_chunks(variation, size)
    chunks = size * len(limited.cut) / sum(limited.cut)
    assert chunks <= 1100
    assert limited.split == variation.split
    if size * len(cut) <= 1000 * sum(cut):
        assert limited == variation
    else:
        assert limited.cut[: len(cut)] == cut
        assert len(limited.cut) >= 9


@pytest.mark.parametrize("api", CALLING)
def test_a_bounded_cut_plays_the_same_bytes(api) -> None:
    """A hundred calls, cut at every byte, come in few chunks, some of them of one byte."""
    (hundred,) = (
        scenario for scenario in load([shipped_scenarios()]) if scenario.name == "hundred-tools"
    )
    whole = case(single(hundred, 0), api)
    cut = case(single(hundred, 0), api, Variation(cut=(1,)))
    assert b"".join(cut.chunks) == b"".join(whole.chunks)
    assert 500 < len(cut.chunks) < 3000
    assert sum(len(chunk) == 1 for chunk in cut.chunks) > 400
