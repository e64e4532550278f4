"""Laws of every quirk of Chat Completions."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from mockllm.core.turn import Turn
from mockllm.play.quirks import chat
from mockllm.play.quirks.base import Quirk, Variant
from mockllm.play.quirks.chat import arguments, envelope, finish, identity
from mockllm.play.quirks.samples import TEXT
from mockllm.wire.protocols.openai_chat.request import Options
from tests.cases import for_all
from tests.play.quirks import chat_calls as calls
from tests.play.quirks import chat_laws as laws
from tests.play.quirks import (
    test_chat_arguments,
    test_chat_deltas,
    test_chat_envelope,
    test_chat_finish,
    test_chat_identity,
)
from tests.play.quirks.playing import plain, play
from tests.strategies import opaques, parts, turns

OF_CALLS = (*identity.QUIRKS, *arguments.QUIRKS)
BY_NAME = {quirk.name: quirk for quirk in chat.QUIRKS}
OF_CHUNKS = (*finish.QUIRKS, *envelope.QUIRKS, *finish.USAGE)

UNSORTED = ("chat-index-from-one:negative",)
"""Our decoder takes a negative index for none, and keeps the order of arrival."""

OTHER_CHOICES = ("chat-choice-index:counts",)
"""Our decoder reads the choice with index 0 alone."""

EACH = for_all(("quirk", "variant"), laws.each_variant(chat.QUIRKS))
few = settings(max_examples=30)  # each plays every variant

SAMPLES_OF_CALLS = [*test_chat_identity.SAMPLES, *test_chat_arguments.SAMPLES]
SAMPLES = [
    *SAMPLES_OF_CALLS,
    *test_chat_deltas.SAMPLES,
    *test_chat_envelope.SAMPLES,
    *test_chat_finish.SAMPLES,
]


@for_all(("name", "expected"), SAMPLES, ids=[name for name, _ in SAMPLES])
def test_sample_has_the_bytes_that_servers_send(name: str, expected: list[str]) -> None:
    """Each variant turns its sample into exactly these events."""
    quirk, _, variant = name.partition(":")
    assert laws.sent(BY_NAME[quirk], variant) == expected


def test_every_variant_of_calls_has_its_sample() -> None:
    """The tables are complete, and in the order of the groups."""
    names = [name.rstrip(":") for name, _ in laws.named(OF_CALLS)]
    assert names == [name for name, _ in SAMPLES_OF_CALLS]


@for_all(("quirk", "variant"), laws.each_variant(OF_CALLS))
def test_an_answer_without_calls_stays(quirk: Quirk, variant: Variant) -> None:
    """A text has the same bytes with a quirk of calls."""
    laws.leaves(quirk, variant, TEXT)


@EACH
def test_every_variant_changes_its_sample(quirk: Quirk, variant: Variant) -> None:
    """No variant leaves its own sample as it is."""
    assert play(quirk, variant, "chat").data != plain(quirk.sample, "chat").data


@EACH
def test_unknown_frames_stay(quirk: Quirk, variant: Variant) -> None:
    """Frames that a quirk does not understand keep their bytes."""
    laws.leaves_the_unknown(variant)


@pytest.mark.slow
@few
@given(turn=turns(parts | opaques))
def test_every_turn_plays(turn: Turn) -> None:
    """Whatever the turn and the request, the stream stays in order and well-formed."""
    laws.plays(chat.QUIRKS, turn, Options(stream_usage=True))
    laws.plays(chat.QUIRKS, turn, Options(n=2, obfuscation=True))


@pytest.mark.slow
@few
@given(turn=calls.called)
def test_our_decoder_reads_it(turn: Turn) -> None:
    """Our decoder, which is lenient, reads the turn that each variant declares."""
    calls.reads_back(
        OF_CALLS,
        turn,
        but=(*test_chat_arguments.TWICE, *test_chat_identity.ANNOUNCED, *UNSORTED),
    )
    laws.reads_back(OF_CHUNKS, turn, but=OTHER_CHOICES)


@given(data=laws.odd_streams)
def test_odd_chunks_do_no_harm(data: list[str]) -> None:
    """Raw frames of a scenario may have any shape."""
    laws.survives_odd_chunks(chat.QUIRKS, data)
