"""Comparisons of streams look at the values without generated fields."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.core.events import Frame
from mockllm.wire.protocols import PROTOCOLS
from tools.comparison import difference_of_frames, first_difference, normalized

KEYS = ["id", "created", "type", "usage", "choices", "logprobs", "item", "response", "content"]
plain = st.sampled_from([None, 0, 1, 1.0, True, "", "a", "ping", "response.output_item.done"])
values = st.recursive(
    plain,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(KEYS), inner),
    max_leaves=6,
)
frames = st.builds(
    lambda value: Frame(json.dumps(value)), st.dictionaries(st.sampled_from(KEYS), values)
) | st.sampled_from([Frame("[DONE]"), Frame(comment="ping"), Frame("no JSON"), Frame("null")])
streams = st.lists(frames, max_size=4)


@pytest.mark.parametrize("name", PROTOCOLS)
@given(recorded=streams, encoded=streams, common=streams)
def test_the_difference_of_streams(
    name: str, recorded: list[Frame], encoded: list[Frame], common: list[Frame]
) -> None:
    """The difference of two streams is the first one of all their normalised events, also where
    events are equal without being normalised."""
    protocol = PROTOCOLS[name]
    one, other = [*common, *recorded], [*common, *encoded]
    expected = first_difference(normalized(protocol, one), normalized(protocol, other))
    assert difference_of_frames(protocol, one, other) == expected
