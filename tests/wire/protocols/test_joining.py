"""Joined frames (`wire.group`) decode to the same turn as single ones."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.core.events import Frame
from mockllm.core.turn import Text, TokenUsage, Turn
from mockllm.play.quirks.samples import TEXT_AND_TWO_CALLS
from mockllm.play.replay.client_requests import first_request
from mockllm.play.replay.compilation.encoding import stream
from mockllm.scenario.model import Wire
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.base import Reply
from mockllm.wire.protocols.decoding import decode_turn
from tests.strategies import turns


def _played(turn: Turn, api: str, wire: Wire | None) -> list[str]:
    protocol = PROTOCOLS[api]
    request = first_request(protocol, TEXT_AND_TWO_CALLS, "Hello", "mock-model")
    usage = turn.usage or TokenUsage(0, 0)
    reply = Reply("seed", "0" * 40, "mock-model", protocol.options(request), usage)
    data = b"".join(part.data for part in stream((turn,), protocol, reply, wire))
    return [frame.data or "" for frame in protocol.usual.decode(data)]


def _decoded(data: list[str], api: str) -> Turn:
    return decode_turn(PROTOCOLS[api], map(Frame, data))[0].whole()


@pytest.mark.slow
@pytest.mark.parametrize("api", PROTOCOLS)
@given(turn=turns(), size=st.integers(2, 9))
def test_joined_frames_mean_the_same(api: str, turn: Turn, size: int) -> None:
    """A client gets the same answer from any joined frames."""
    plain = _played(turn, api, None)
    grouped = _played(turn, api, Wire(group=size))
    assert len(grouped) <= len(plain)
    one, other = _decoded(plain, api), _decoded(grouped, api)
    assert (other.text, other.reasoning, other.refusal) == (one.text, one.reasoning, one.refusal)
    assert other.tool_calls == one.tool_calls
    assert (other.finish, other.usage, other.error) == (one.finish, one.usage, one.error)


def test_chat_joins_texts_calls_and_finish() -> None:
    """One Chat chunk can open two calls, continue both, and finish."""
    from mockllm.play.replay.compilation.resolve import resolve

    turn = resolve(TEXT_AND_TWO_CALLS, 0, "chat")
    first, *_ = _played(turn, "chat", Wire(group=99))
    (choice,) = json.loads(first)["choices"]
    assert choice["delta"]["content"] == "Hello"
    assert [
        (call["index"], call["id"], call["function"]) for call in choice["delta"]["tool_calls"]
    ] == [
        (0, "call_A1", {"name": "get_weather", "arguments": '{"city":"Paris"}'}),
        (1, "call_B2", {"name": "get_time", "arguments": '{"tz":"CET"}'}),
    ]
    assert choice["finish_reason"] == "tool_calls"


def test_gemini_joins_parts() -> None:
    """One chunk of Gemini can hold text, calls and the finish, without the empty text."""
    from mockllm.play.replay.compilation.resolve import resolve

    turn = resolve(TEXT_AND_TWO_CALLS, 0, "gemini")
    (only,) = _played(turn, "gemini", Wire(group=99))
    (candidate,) = json.loads(only)["candidates"]
    kinds = [next(iter(part)) for part in candidate["content"]["parts"]]
    assert kinds == ["text", "text", "functionCall", "functionCall"]
    assert candidate["finishReason"] == "STOP"


def test_gemini_joins_log_probabilities() -> None:
    """A chunk with the text of two has the log probabilities of both."""
    turn = Turn((Text(("a", "b"), logprobs=True),), "stop", TokenUsage(1, 2))
    (only,) = _played(turn, "gemini", Wire(group=99))
    (candidate,) = json.loads(only)["candidates"]
    tokens = candidate["logprobsResult"]["chosenCandidates"]
    assert [token["token"] for token in tokens] == ["a", "b"]


@pytest.mark.parametrize(
    "quirk",
    ["chat-index-all-zero", "chat-index-same-one-chunk", "chat-name-split", "chat-id-repeated"],
)
def test_chat_does_not_join_what_would_become_another_answer(quirk: str) -> None:
    """Two calls with one index stay two entries, and no part of a name or an id is lost."""
    from mockllm.play.replay.compilation.resolve import resolve

    turn = resolve(TEXT_AND_TWO_CALLS, 0, "chat")
    plain = _played(turn, "chat", Wire(quirks=(quirk,)))
    grouped = _played(turn, "chat", Wire(quirks=(quirk,), group=99))
    names, ids = zip(*(_names_and_ids(data) for data in (plain, grouped)), strict=True)
    assert names[0] == names[1]
    assert ids[0] == ids[1]


def _names_and_ids(data: list[str]) -> tuple[str, list[str]]:
    """All names of calls, joined, and their ids in the order in which they first come."""
    entries = [
        entry
        for text in data
        if text != "[DONE]"
        for choice in json.loads(text)["choices"]
        for entry in choice["delta"].get("tool_calls", [])
    ]
    names = "".join(entry["function"].get("name", "") for entry in entries)
    return names, list(dict.fromkeys(entry["id"] for entry in entries if "id" in entry))
