"""Fragments in groups (`wire.group`): fewer events with the same content."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.core.turn import Media, Reasoning, Refusal, Text, Token, ToolCall, Turn
from mockllm.play.quirks.samples import TEXT_AND_TWO_CALLS
from mockllm.play.replay.client_requests import first_request
from mockllm.play.replay.compilation.encoding import stream
from mockllm.play.replay.compilation.grouping import in_groups
from mockllm.play.replay.compilation.resolve import resolve
from mockllm.scenario.model import Wire
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.base import Reply, logprob
from mockllm.wire.protocols.decoding import decode_turn
from tests.strategies import turns


def _played(turn: Turn, api: str, wire: Wire | None = None) -> bytes:
    protocol = PROTOCOLS[api]
    request = first_request(protocol, TEXT_AND_TWO_CALLS, "Hello", "mock-model")
    reply = Reply("seed", "0" * 40, "mock-model", protocol.options(request), turn.usage)
    return b"".join(part.data for part in stream((turn,), protocol, reply, wire))


def test_fragments_in_groups() -> None:
    """As many as are written become one, which is due when the last of them is."""
    turn = Turn((Text(tuple("abcde")),), "stop", gaps=(10, 1, 1, 1, 1, 5))
    assert in_groups(turn, 2) == Turn((Text(("ab", "cd", "e")),), "stop", gaps=(11, 2, 1, 5))
    assert in_groups(turn, 3) == Turn((Text(("abc", "de")),), "stop", gaps=(12, 2, 5))
    assert in_groups(turn, 9) == Turn((Text(("abcde",)),), "stop", gaps=(14, 5))


def test_groups_are_of_one_part() -> None:
    """Other parts between two fragments keep them apart, and the start of a call is no fragment."""
    calls = (ToolCall("f", "1", ("{", "}")), ToolCall("g", "2", ("[", "]")))
    grouped = (ToolCall("f", "1", ("{}",)), ToolCall("g", "2", ("[]",)))
    assert in_groups(Turn(calls), 9) == Turn(grouped)
    apart = Turn(calls, order=(0, 1, 0, 1, 0, 1))
    assert in_groups(apart, 9) == apart
    texts = (Text(("a", "b")), Reasoning(("c", "d"), "s"), Refusal(("e", "f")))
    assert in_groups(Turn(texts), 9).parts == (
        Text(("ab",)),
        Reasoning(("cd",), "s"),
        Refusal(("ef",)),
    )


def test_bytes_and_transcripts_are_joined_apart() -> None:
    """A fragment of sound has bytes, or a piece of what is spoken."""
    sound = Media("audio/wav", (b"a", b"b", b"c"), ("One", " two"))
    turn = in_groups(Turn((sound,)), 9)
    (part,) = turn.parts
    assert isinstance(part, Media)
    assert (b"".join(part.data), "".join(part.fragments)) == (b"abc", "One two")


def test_derived_tokens_stay_single() -> None:
    """A stream in groups has the tokens that a body has: one for each fragment."""
    (part,) = in_groups(Turn((Text(("a", "b"), logprobs=True),)), 9).parts
    assert part == Text(
        ("ab",), logprobs=True, tokens=(Token("a", logprob("a")), Token("b", logprob("b")))
    )


@pytest.mark.parametrize("api", PROTOCOLS)
def test_groups_in_every_protocol(api: str) -> None:
    """The stream is that of a scenario with longer fragments."""
    turn = resolve(TEXT_AND_TWO_CALLS, 0, api)
    parts = [replace(part, fragments=("".join(part.fragments),)) for part in turn.parts]
    long = replace(turn, parts=tuple(parts))
    assert _played(turn, api, Wire(group=99)) == _played(long, api)


@pytest.mark.slow
@pytest.mark.parametrize("api", PROTOCOLS)
@given(turn=turns(), size=st.integers(2, 9))
def test_groups_mean_the_same(api: str, turn: Turn, size: int) -> None:
    """A client gets the same answer from any groups, in at most as many events."""
    protocol = PROTOCOLS[api]
    plain = protocol.usual.decode(_played(turn, api))
    grouped = protocol.usual.decode(_played(turn, api, Wire(group=size)))
    assert len(grouped) <= len(plain)
    one, other = (decode_turn(protocol, frames)[0].whole() for frames in (plain, grouped))
    assert (other.text, other.reasoning, other.refusal) == (one.text, one.reasoning, one.refusal)
    assert other.tool_calls == one.tool_calls
    assert (other.finish, other.usage, other.error) == (one.finish, one.usage, one.error)
