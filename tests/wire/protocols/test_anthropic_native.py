"""Anthropic Messages: redacted thinking, compactions, fallbacks and other blocks as parts."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest
from anthropic.types import beta

from mockllm.core.turn import Opaque, Reasoning, ServerTool, Text, TokenUsage, Turn
from mockllm.wire.protocols.anthropic_messages.native import NATIVE as SHAPES
from mockllm.wire.protocols.anthropic_messages.protocol import PROTOCOL
from mockllm.wire.protocols.native import by_key
from tests.wire.protocols.anthropic_turns import (
    NATIVE,
    REPLY,
    USAGE,
    Json,
    event,
    frames,
    native,
    read,
    values,
)
from tests.wire.protocols.strict import problems


def test_every_block_of_the_sdk_is_a_part() -> None:
    """A new block of the beta API is found here: each is neutral, a tool's, or native."""
    union, *_ = get_args(beta.BetaContentBlock)
    types = {str(get_args(kind.model_fields["type"].annotation)[0]) for kind in get_args(union)}
    others = {name for name in types if name.endswith(("_tool_use", "_tool_result"))}
    assert types - others - SHAPES.keys() == {"text", "thinking", "tool_use"} - others
    assert {value["type"] for value in NATIVE} == SHAPES.keys()


@pytest.mark.parametrize("value", NATIVE, ids=lambda value: value["type"])
def test_the_table_knows_what_the_types_of_the_sdk_know(value: Json) -> None:
    """The SDK's type has every field of a block; without one that it demands, and with another
    one, it is no native part."""
    assert problems(beta.BetaContentBlock, value) == []
    assert list(by_key("type", SHAPES)(value)) == []
    (mistake,) = by_key("type", SHAPES)({**value, "file": 1})
    assert mistake[0] == ("file",)
    required = {"redacted_thinking": "data", "compaction": "content", "fallback": "to"}
    required |= {"mcp_tool_listing": "tools", "container_upload": "file_id"}
    name = required[value["type"]]
    without = {key: inner for key, inner in value.items() if key != name}
    assert [message for _, message in by_key("type", SHAPES)(without)] == [
        f"needs the key {name!r}"
    ]


@pytest.mark.parametrize("value", NATIVE, ids=lambda value: value["type"])
def test_a_native_part_is_sent_and_read(value: Json) -> None:
    """Its block is typed as the SDK has it, comes at its place in stream and body, and is the same
    part when it is read."""
    turn = Turn((Text(("a",)), native(value), Text(("b",))), "stop", USAGE)
    assert [problems(beta.BetaRawMessageStreamEvent, event) for event in values(turn)] == [
        [] for _ in values(turn)
    ]
    assert read(*frames(turn)) == turn
    body = PROTOCOL.encode_body(turn, REPLY)
    assert body["content"][1] == value
    assert problems(beta.BetaMessage, body) == []
    assert PROTOCOL.decode_body(body) == turn


def test_a_summary_comes_in_one_delta() -> None:
    """A compaction begins without its summary; one that failed has no delta."""
    summary = {"type": "compaction", "content": "So far.", "encrypted_content": "ZW5j"}
    (_, start, delta, stop, *_) = values(Turn((native({**summary, "signature": "c2ln"}),), "stop"))
    assert start["content_block"] == {"type": "compaction", "signature": "c2ln", "content": None}
    assert delta["delta"] == {**summary, "type": "compaction_delta"}
    assert stop["type"] == "content_block_stop"
    failed = values(Turn((native({"type": "compaction", "content": None}),), "stop"))
    assert [value["type"] for value in failed][1:3] == ["content_block_start", "content_block_stop"]


START = event("message_start", message={"content": []})


def begun(block: Json, index: int = 0) -> Any:
    return event("content_block_start", index=index, content_block=block)


REDACTED = {"type": "redacted_thinking", "data": "c2VjcmV0"}
COMPACTION = {"type": "compaction", "content": None}
ODD = {
    "cut": [begun(REDACTED)],
    "an unknown field": [
        begun({**REDACTED, "new": 1}),
        event("content_block_stop", index=0),
    ],
    "another delta": [
        begun(COMPACTION),
        event("content_block_delta", index=0, delta={"type": "compaction_delta", "content": "a"}),
        event("content_block_delta", index=0, delta={"type": "text_delta", "text": "a"}),
        event("content_block_stop", index=0),
    ],
    "a second start": [begun(REDACTED), begun({"type": "kit_block"})],
}


@pytest.mark.parametrize("own", ODD.values(), ids=ODD)
def test_a_block_that_is_no_native_part_stays_frames(own: list[Any]) -> None:
    """All its frames are kept in their order: of a newer service, and of a stream that is cut."""
    turn = read(START, *own)
    assert turn.parts == tuple(Opaque("anthropic", frame) for frame in own)


def test_hidden_reasoning_says_how_far_it_is() -> None:
    """Its empty fragments share the tokens of the reasoning, and come back as they are."""
    hidden = Reasoning(("", "", ""), "c2ln")
    turn = Turn((hidden, Text(("Done.",))), "stop", TokenUsage(3, 200, 151))
    deltas = [value["delta"] for value in values(turn) if "estimated" in json.dumps(value)]
    assert deltas == [{"type": "thinking_delta", "thinking": "", "estimated_tokens": 50}] * 3
    assert [problems(beta.BetaRawMessageStreamEvent, event) for event in values(turn)] == [
        [] for _ in values(turn)
    ]
    assert read(*frames(turn)) == turn
    assert "estimated" not in json.dumps(PROTOCOL.encode_body(turn, REPLY))
    shown = Turn((Reasoning(("a", ""), "c2ln"),), "stop", TokenUsage(3, 200, 151))
    assert "estimated" not in json.dumps(values(shown))


def test_the_advisor_is_a_tool_of_the_service() -> None:
    """Its call and its result are sent, and read as one part."""
    advice = '{"type":"advisor_result","text":"Be brief."}'
    turn = Turn((ServerTool("advisor", "srvtoolu_1", output=advice),), "stop", USAGE)
    assert [problems(beta.BetaRawMessageStreamEvent, event) for event in values(turn)] == [
        [] for _ in values(turn)
    ]
    assert read(*frames(turn)) == turn
    body = PROTOCOL.encode_body(turn, REPLY)
    assert [block["type"] for block in body["content"]] == [
        "server_tool_use",
        "advisor_tool_result",
    ]


def test_a_compaction_may_end_the_answer() -> None:
    """`finish_raw: compaction` is the stop reason, and no other finish."""
    turn = Turn((Text(("a",)),), "stop", USAGE, finish_raw="compaction")
    assert values(turn)[-2]["delta"]["stop_reason"] == "compaction"
    assert read(*frames(turn)) == turn
