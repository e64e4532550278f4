"""Anthropic Messages: bodies, and malformed streams and bodies."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.core.errors import WireError
from mockllm.core.events import Cite, Frame, StreamError
from mockllm.core.turn import Opaque, Reasoning, Text, TokenUsage, ToolCall, Turn
from mockllm.wire.protocols.anthropic_messages.protocol import PROTOCOL
from tests.strategies import json_values, objects, texts
from tests.wire.protocols.anthropic_turns import REPLY, frames, read

CALL = {"type": "tool_use", "id": "toolu_A", "name": "f", "input": {}}


def test_body_is_read_block_by_block() -> None:
    """Blocks, citations, stop reason, usage and uploaded files of a body are read."""
    upload = {"type": "container_upload", "file_id": "file_1"}
    cite = {"type": "web_search_result_location", "url": "u", "title": "t", "cited_text": "c"}
    body = {
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "s"},
            upload,
            {"type": "text", "text": "a", "citations": [cite]},
            {**CALL, "input": {"a": "é"}},
        ],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 1, "output_tokens": 2},
    }
    turn = PROTOCOL.decode_body(body)
    thinking, kept, text, call = turn.parts
    assert thinking == Reasoning(("hm",), "s")
    assert isinstance(kept, Opaque)
    assert (json.loads(kept.frame.data or ""), kept.native) == (upload, True)
    assert text == Text(("a",), (Cite(0, "u", "t", "c"),))
    assert call == ToolCall("f", "toolu_A", ('{"a":"é"}',))
    assert (turn.finish, turn.usage) == ("tool_calls", TokenUsage(1, 2))


def test_error_body_is_read() -> None:
    """An error body is a turn with that error."""
    body = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    assert PROTOCOL.decode_body(body) == Turn(error=StreamError("Overloaded", "overloaded_error"))


def test_another_body_is_refused() -> None:
    """A body that is no message is refused; the error has its type."""
    with pytest.raises(WireError, match="'choices'"):
        PROTOCOL.decode_body({"choices": []})


blocks = objects(
    type=st.sampled_from(["text", "tool_use", "thinking", "server_tool_use"]),
    text=texts,
    input=objects(a=texts),
    signature=texts,
    citations=st.lists(objects(type=st.just("web_search_result_location")), max_size=2),
)
deltas = objects(
    type=st.sampled_from(
        ["text_delta", "input_json_delta", "thinking_delta", "signature_delta", "citations_delta"]
    ),
    text=texts,
    partial_json=texts,
    stop_reason=st.sampled_from(["end_turn", "eos"]),
)
wire_events = objects(
    type=st.sampled_from(
        [
            "message_start",
            "content_block_start",
            "content_block_delta",
            "content_block_stop",
            "message_delta",
            "message_stop",
            "ping",
            "error",
        ]
    ),
    index=st.integers(-1, 2),
    content_block=blocks,
    delta=deltas,
    message=objects(id=texts, usage=objects(input_tokens=st.integers())),
    usage=objects(output_tokens=st.integers(), output_tokens_details=json_values),
    error=objects(message=texts),
)


@given(st.lists(wire_events | json_values, max_size=6))
def test_nothing_makes_the_decoder_fail(items: list[Any]) -> None:
    """Events with any JSON decode to a turn."""
    assert isinstance(read(*(Frame(json.dumps(item)) for item in items)), Turn)


@given(objects(content=st.lists(blocks, max_size=3), stop_reason=texts, usage=blocks, error=blocks))
def test_a_body_is_read_or_refused(body: Any) -> None:
    """A body with any JSON decodes to a turn, or is refused with a reason."""
    with contextlib.suppress(WireError):
        assert isinstance(PROTOCOL.decode_body(body), Turn)


@given(st.lists(wire_events, max_size=5))
def test_kept_frames_never_break_the_encoder(items: list[Any]) -> None:
    """Opaque frames with any content are sent and decoded without failing."""
    kept = tuple(Opaque("anthropic", Frame(json.dumps(item))) for item in items)
    turn = Turn((Text(("a",)), *kept), "stop")
    sent = frames(turn)
    assert [part.frame for part in kept if part.frame not in sent] == []
    assert isinstance(PROTOCOL.encode_body(turn, REPLY), dict)
    assert isinstance(PROTOCOL.project(turn), Turn)
