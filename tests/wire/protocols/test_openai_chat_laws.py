"""Chat Completions: the laws of the round trip, over any turn."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from mockllm.core.events import Frame
from mockllm.core.turn import Opaque, TokenUsage, Turn
from mockllm.wire.protocols.base import Reply
from mockllm.wire.protocols.openai_chat.protocol import PROTOCOL
from mockllm.wire.protocols.openai_chat.request import Options
from tests import strategies
from tests.wire.protocols.streams import encoded
from tests.wire.protocols.strict import problems

USAGE = TokenUsage(11, 7)


def reply(**options: Any) -> Reply:
    return Reply("seed", "0" * 40, "gpt-9", Options(**options), USAGE)


def frames(turn: Turn, reply: Reply) -> list[Frame]:
    """The frames of a turn's stream."""
    return encoded(PROTOCOL, turn, reply)


any_turns = strategies.turns(
    st.one_of(
        strategies.every_part,
        strategies.tool_calls(well_formed=False),
        strategies.opaques,
        st.just(Opaque("anthropic", Frame("{}", "ping"))),
        st.just(Opaque("chat", Frame(comment="hold the line"))),
    )
)


@given(strategies.turns(strategies.every_part, endings=False))
def test_body_law(turn: Turn) -> None:
    """The body decodes to the same turn as the stream, up to the cutting."""
    body = PROTOCOL.encode_body(turn, reply())
    assert PROTOCOL.decode_body(json.loads(json.dumps(body))) == PROTOCOL.project(turn).whole()


@given(
    # The types of the package have no custom calls in streams.
    strategies.turns(strategies.parts | strategies.server_tools),
    st.builds(
        Options,
        st.booleans(),
        st.integers(1, 3),
        st.booleans(),
        st.sampled_from(["default", "flex"]),
    ),
)
def test_chunks_and_bodies_are_strictly_typed(turn: Turn, options: Options) -> None:
    """Every chunk and body has all fields that the official types require, and no others."""
    settings = Reply("seed", "0" * 40, "gpt-9", options, USAGE)
    for frame in frames(turn, settings):
        assert frame.data is not None
        if frame.data != "[DONE]" and not frame.data.startswith('{"error"'):
            assert problems(ChatCompletionChunk, json.loads(frame.data)) == []
    if turn.error is None:
        assert problems(ChatCompletion, PROTOCOL.encode_body(turn, settings)) == []


@given(
    strategies.turns(strategies.parts | strategies.server_tools, interleaved=False, endings=False)
)
def test_the_official_client_accumulates_the_body(turn: Turn) -> None:
    """The official client's result from the stream equals the body."""
    settings = reply(stream_usage=True)
    state = ChatCompletionStreamState()
    for frame in frames(turn, settings)[:-1]:
        state.handle_chunk(ChatCompletionChunk.model_validate(json.loads(str(frame.data))))
    # Not `get_final_completion`, which raises for answers that were cut short.
    got = state.current_completion_snapshot.to_dict()
    body = PROTOCOL.encode_body(turn, settings)
    assert [got[key] for key in ("id", "model", "created")] == [
        body[key] for key in ("id", "model", "created")
    ]
    message, whole = got["choices"][0]["message"], body["choices"][0]["message"]  # type: ignore[index]
    for key in ("content", "reasoning_content", "refusal"):
        assert (message.get(key) or "") == (whole.get(key) or "")
    assert [
        (call["id"], call["function"]["name"], call["function"]["arguments"])
        for call in message.get("tool_calls") or []
    ] == [
        (call["id"], call["function"]["name"], call["function"]["arguments"])
        for call in whole.get("tool_calls", [])
    ]
    cited = [item["url_citation"]["title"] for item in message.get("annotations") or []]
    assert cited == [item["url_citation"]["title"] for item in whole["annotations"]]
