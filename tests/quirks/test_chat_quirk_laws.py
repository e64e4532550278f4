"""Laws of every quirk of Chat Completions."""

from __future__ import annotations

import pytest
from hypothesis import given

from mockllm.core.turn import Turn
from mockllm.protocols.openai_chat.request import Options
from mockllm.quirks import chat
from mockllm.quirks.base import Quirk, Variant
from mockllm.quirks.chat import arguments, envelope, finish, identity
from tests.cases import for_all
from tests.quirks import chat_calls as calls
from tests.quirks import chat_laws as laws
from tests.quirks.playing import plain, play
from tests.quirks.test_chat_arguments import TWICE
from tests.quirks.test_chat_identity import ANNOUNCED
from tests.strategies import opaques, parts, turns

OF_CALLS = (*identity.QUIRKS, *arguments.QUIRKS)
OF_CHUNKS = (*finish.QUIRKS, *envelope.QUIRKS, *finish.USAGE)

UNSORTED = ("chat-index-from-one:negative",)
"""Our decoder takes a negative index for none, and keeps the order of arrival."""

OTHER_CHOICES = ("chat-choice-index:counts",)
"""Our decoder reads the choice with index 0 alone."""

EACH = for_all(("quirk", "variant"), laws.each_variant(chat.QUIRKS))


@EACH
def test_every_variant_changes_its_sample(quirk: Quirk, variant: Variant) -> None:
    """No variant leaves its own sample as it is."""
    assert play(quirk, variant, "chat").data != plain(quirk.sample, "chat").data


@EACH
def test_unknown_frames_stay(quirk: Quirk, variant: Variant) -> None:
    """Frames that a quirk does not understand keep their bytes."""
    laws.leaves_the_unknown(variant)


@pytest.mark.slow
@given(turn=turns(parts | opaques))
def test_every_turn_plays(turn: Turn) -> None:
    """Whatever the turn and the request, the stream stays in order and well-formed."""
    laws.plays(chat.QUIRKS, turn, Options(stream_usage=True))
    laws.plays(chat.QUIRKS, turn, Options(n=2, obfuscation=True))


@pytest.mark.slow
@given(turn=calls.called)
def test_our_decoder_reads_it(turn: Turn) -> None:
    """Our decoder, which is lenient, reads the turn that each variant declares."""
    calls.reads_back(OF_CALLS, turn, but=(*TWICE, *ANNOUNCED, *UNSORTED))
    laws.reads_back(OF_CHUNKS, turn, but=OTHER_CHOICES)


@given(data=laws.odd_streams)
def test_odd_chunks_do_no_harm(data: list[str]) -> None:
    """Raw frames of a scenario may have any shape."""
    laws.survives_odd_chunks(chat.QUIRKS, data)
