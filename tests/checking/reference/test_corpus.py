"""The reference accumulators on recorded traffic, against mockllm's own decoders."""

from __future__ import annotations

from functools import cache

from mockllm.wire.framing.sse import decode
from mockllm.wire.protocols import PROTOCOLS
from tests.cases import for_all
from tests.checking.reference.playing import by_bytes, cut_at, differences
from tests.corpus import corpus_recordings, needs_corpus
from tools.corpus import Recording, decode_turn

DIFFERENCES = {
    # Snowflake sends no finish reason, only `[DONE]`. A proxy whose upstream died ends a stream in
    # the same way (`chat-finish-never`), so both readers treat it as unfinished, and the reference
    # reports an error.
    ("chat", "test-snowflake-model-streaming-0"): "no finish reason",
    ("chat", "test-snowflake-thinking-streaming-0"): "no finish reason",
}
"""Recordings that are not complete answers, and why."""


@cache
def recorded() -> dict[str, Recording]:
    return {f"{recording.api}/{recording.name}": recording for recording in corpus_recordings()}


every_recording = for_all("name", sorted(recorded()))


@needs_corpus
def test_there_are_recordings():
    """The corpus has recordings, and every entry of DIFFERENCES names one of them."""
    assert len(recorded()) > 50
    assert {f"{api}/{name}" for api, name in DIFFERENCES} <= set(recorded())


@needs_corpus
@every_recording
def test_both_readings_of_a_recording_agree(name):
    """Text, calls, finish and usage are the same, however the bytes are cut."""
    one = recorded()[name]
    turn, _ = decode_turn(PROTOCOLS[one.api], decode(one.stream))
    outcome = by_bytes(one.api, [one.stream]).outcome
    assert not differences(turn, one.api, outcome)
    complete = (one.api, one.name) not in DIFFERENCES
    assert complete == (not outcome.errors) == (turn.finish is not None)
    steps = range(0, len(one.stream), 61)
    assert by_bytes(one.api, cut_at(one.stream, steps)).outcome == outcome
