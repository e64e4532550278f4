"""The reference accumulators on recorded traffic, against mockllm's own decoders."""

from __future__ import annotations

from functools import cache

import pytest

from mockllm.framing.sse import decode
from mockllm.protocols import PROTOCOLS
from tests.checking.reference_playing import by_bytes, cut_at, wrong
from tests.checking.streams import CORPUS
from tools.corpus import Recording, decoded, recordings

DIFFERENCES = {
    # Snowflake gives no finish reason, only `[DONE]`: nothing tells such an end from the one of
    # a proxy whose upstream died (`chat-finish-never`), so both readings call it unfinished, and
    # the reference does so aloud.
    ("chat", "test-snowflake-model-streaming-0"): "no finish reason",
    ("chat", "test-snowflake-thinking-streaming-0"): "no finish reason",
}
"""Recordings that are no complete answers, and why."""


@cache
def recorded() -> dict[str, Recording]:
    if not CORPUS.is_dir():
        return {}
    return {f"{one.api}/{one.name}": one for one in recordings(CORPUS)}


every_recording = pytest.mark.parametrize("name", sorted(recorded()))


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the recorded streams are not on this machine")
def test_there_are_recordings():
    """The tests below run over something, and every difference is of one of them."""
    assert len(recorded()) > 50
    assert {f"{api}/{name}" for api, name in DIFFERENCES} <= set(recorded())


@every_recording
def test_both_readings_of_a_recording_agree(name):
    """Text, calls, finish and usage are the same, however the bytes are cut."""
    one = recorded()[name]
    turn, _ = decoded(PROTOCOLS[one.api], decode(one.stream))
    outcome = by_bytes(one.api, [one.stream]).outcome
    assert not wrong(turn, one.api, outcome)
    complete = (one.api, one.name) not in DIFFERENCES
    assert complete == (not outcome.errors) == (turn.finish is not None)
    steps = range(0, len(one.stream), 61)
    assert by_bytes(one.api, cut_at(one.stream, steps)).outcome == outcome
