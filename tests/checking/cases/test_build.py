"""One case: its expected outcome, and the other outcomes that are acceptable."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from mockllm.checking.cases.build import case
from mockllm.checking.outcome import Call
from mockllm.core.turn import Turn
from mockllm.play.quirks import QUIRKS, find
from mockllm.play.quirks.samples import (
    CALL,
    REASONING,
    REASONING_AND_CALL,
    TEXT,
    TEXT_AND_CALL,
    TWO_SAME,
    ZERO,
)
from mockllm.scenario.model import Wire
from mockllm.wire.framing.sse import decode
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.decoding import decode_turn
from tests.cases import for_all


def _turn_of(chunks: tuple[bytes, ...], api: str) -> Turn:
    """The turn of a reader that discards events as the SSE specification requires."""
    return decode_turn(PROTOCOLS[api], decode(b"".join(chunks)))[0].whole()


@for_all("sample", [TEXT, TEXT_AND_CALL, REASONING_AND_CALL, TWO_SAME])
@for_all("api", find("sse-no-final-blank")[0].apis)
def test_a_reader_that_discards_the_last_event_is_tolerated(api, sample) -> None:
    """sse-no-final-blank: the tolerated outcome is that of a reader that follows the
    specification; where the event had the finish, the reader reports a cut."""
    odd = case(sample, api, quirk="sse-no-final-blank")
    tolerated, *_ = odd.tolerated  # others may keep a plan apart
    turn = _turn_of(odd.chunks, api)
    assert (tolerated.text, tolerated.reasoning) == (turn.text, turn.reasoning)
    assert [call.name for call in tolerated.tool_calls] == [call.name for call in turn.tool_calls]
    assert (tolerated.finish is None) == (turn.finish is None)
    assert (tolerated.usage is None) == (turn.usage is None)
    assert [trouble.kind for trouble in tolerated.errors] == (
        ["truncated"] if turn.finish is None else []
    )
    assert odd.expected.usage is not None
    (tolerance,) = find("sse-no-final-blank")[1].tolerated
    assert "9.2.6" in tolerance.reason


@pytest.mark.parametrize("variant", ["", ":with-finish"])
def test_arguments_that_are_repeated_may_be_kept_as_sent(variant: str) -> None:
    """chat-args-repeated-at-end: the calls come out once, or their text is malformed, which the
    client's policy deals with."""
    twice = case(TWO_SAME, "chat", quirk=f"chat-args-repeated-at-end{variant}")
    assert [call.arguments for call in twice.expected.tool_calls] == [
        {"city": "Paris"},
        {"city": "Rome"},
    ]
    (tolerated,) = twice.tolerated
    assert [call.arguments for call in tolerated.tool_calls] == [
        '{"city":"Paris"}{"city":"Paris"}',
        '{"city":"Rome"}{"city":"Rome"}',
    ]
    assert tolerated.finish == twice.expected.finish
    (zero,) = case(ZERO, "chat", quirk=f"chat-args-repeated-at-end{variant}").tolerated
    assert [call.arguments for call in zero.tool_calls] == ["{}{}"]


def test_arguments_in_a_string_may_be_kept_as_sent() -> None:
    """gem-args-string: the calls have the object, or the string, which is malformed."""
    odd = case(CALL, "gemini", quirk="gem-args-string")
    assert [call.arguments for call in odd.expected.tool_calls] == [{"city": "Paris"}]
    ((call,),) = [outcome.tool_calls for outcome in odd.tolerated]
    assert isinstance(call, Call)
    assert json.loads(call.arguments) == '{"city":"Paris"}'


def test_every_tolerated_outcome_has_a_reason() -> None:
    """Each one comes with the reason for which it is acceptable."""
    found = 0
    for quirk in QUIRKS.values():
        for variant in quirk.variants:
            if not variant.tolerated:
                continue
            name = f"{quirk.name}:{variant.name}".rstrip(":")
            for api in quirk.apis:
                odd = case(quirk.sample_of(variant), api, quirk=name)
                assert len(odd.tolerated) == len(variant.tolerated)
                assert all(tolerance.reason for tolerance in variant.tolerated)
                found += 1
    assert found >= 8


def test_of_a_stream_that_is_cut_only_what_it_has_is_expected() -> None:
    """Gemini sends the signature of a text's reasoning with the end of the answer."""
    whole = case(REASONING, "gemini")
    assert whole.expected.opaque == ("c2lnbmF0dXJl",)
    for quirk in ("sse-cut", "gem-no-finish:no-last-chunk"):
        cut = case(REASONING, "gemini", quirk=quirk)
        assert (cut.expected.text, cut.expected.reasoning) == ("Hello", "Let me think.")
        assert cut.expected.opaque == ()


def test_quirks_go_together_with_one_that_our_decoder_does_not_read() -> None:
    """The new names of events hide the limit from our decoder, and not from the client."""
    wire = Wire(quirks=("resp-legacy-names", "resp-incomplete:max-output-tokens"))
    (turn,) = TEXT.turns
    both = case(replace(TEXT, turns=(replace(turn, wire=wire),)), "responses")
    assert (both.expected.text, both.expected.finish) == ("Hello", "max_output_tokens")
