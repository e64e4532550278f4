"""Turns, frames and readers for the tests of Anthropic Messages."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from mockllm.core.events import Frame, Timed
from mockllm.core.jsontext import compact
from mockllm.core.timeline import fold
from mockllm.core.turn import Opaque, ServerTool, TokenUsage, ToolCall, Turn
from mockllm.wire.framing import sse
from mockllm.wire.protocols.anthropic_messages.protocol import PROTOCOL
from mockllm.wire.protocols.base import Reply
from tests import strategies
from tests.wire.protocols import streams

Json = dict[str, Any]

USAGE = TokenUsage(11, 7)
REPLY = Reply("seed", "0" * 40, "claude-9", None, USAGE)


def event(type: str, **fields: Any) -> Frame:
    """A frame of the stream, without padding."""
    return Frame(json.dumps({"type": type, **fields}), event=type)


def frames(turn: Turn, reply: Reply = REPLY) -> list[Frame]:
    """The frames of a turn's stream."""
    return streams.encoded(PROTOCOL, turn, reply)


def stream(turn: Turn) -> bytes:
    """The bytes of a turn's stream."""
    return b"".join(map(sse.encode, frames(turn)))


def values(turn: Turn) -> list[Json]:
    """The events of a turn's stream, pings left out."""
    return [json.loads(frame.data or "") for frame in frames(turn) if frame.event != "ping"]


def decoded(given: list[Frame]) -> list[Timed]:
    """The events of frames, those at the end of the stream included."""
    return streams.decoded(PROTOCOL, streams.untimed(given))


def read(*given: Frame) -> Turn:
    """The turn of these frames."""
    return fold(decoded(list(given)))


def hosted(index: int) -> list[Opaque]:
    """The frames of a block without a neutral form (context-management), as the service sends."""
    block = {"type": "compaction", "content": None}
    delta = {"type": "compaction_delta", "content": "Earlier: x"}
    return [
        Opaque("anthropic", event("content_block_start", index=index, content_block=block)),
        Opaque("anthropic", event("content_block_delta", index=index, delta=delta)),
        Opaque("anthropic", event("content_block_stop", index=index)),
    ]


frames_of_others = st.sampled_from(
    [
        Opaque("chat", Frame("{}")),
        Opaque("anthropic", Frame("no JSON", event="odd")),
        Opaque("anthropic", event("vertex_event", metric=3)),
        Opaque("anthropic", Frame(comment="hold the line")),
        Opaque("anthropic", Frame('{"type": "ping"}', event="ping")),
    ]
)
NATIVE: list[Json] = [
    {"type": "redacted_thinking", "data": "c2VjcmV0"},
    {"type": "compaction", "content": "So far."},
    {"type": "compaction", "content": None, "signature": None},
    {
        "type": "compaction",
        "tool_changes": [],
        "signature": "c2ln",
        "content": "So far.",
        "encrypted_content": "ZW5j",
    },
    {
        "type": "fallback",
        "from": {"model": "claude-9"},
        "to": {"model": "claude-8"},
        "trigger": {"type": "refusal", "category": "cyber"},
    },
    {
        "type": "mcp_tool_listing",
        "mcp_server_name": "files",
        "tools": [{"name": "list", "input_schema": {"type": "object"}, "description": "Lists."}],
    },
    {"type": "container_upload", "file_id": "file_1"},
]
"""Each native block, with all that it may have; a compaction in every form of its stream."""


def native(value: Json) -> Opaque:
    """A native part."""
    return Opaque("anthropic", Frame(compact(value)), native=True)


natives = st.sampled_from(NATIVE).map(native)
inputs = st.sampled_from(["", "{}", '{"query": "x"}', "[1]", "no JSON"])
outputs = st.none() | st.sampled_from(
    [
        "[]",
        '[{"type": "web_search_result", "url": "u", "title": "t", "encrypted_content": "e"}]',
        '{"type":"web_search_tool_result_error","error_code":"unavailable"}',
        '{"type": "tool_search_tool_search_result", "tool_references": []}',
        '{"outcome":"OUTCOME_OK"}',
        '"\\ud800"',
        "no JSON",
    ]
)
server_tools = st.builds(
    ServerTool,
    st.sampled_from(["web_search", "tool_search", "code_interpreter", "image_generation"]),
    st.sampled_from(["", "a", "srvtoolu_b"]),
    st.sampled_from(["", "web_search_tool_result", "tool_search_tool_regex"]),
    inputs.flatmap(strategies.cut),
    outputs,
)
custom_calls = st.builds(
    ToolCall, strategies.names, st.just("c1"), strategies.fragments, st.none(), st.just(True)
)
any_part = st.one_of(
    custom_calls,
    server_tools,
    strategies.parts,
    strategies.tool_calls(well_formed=False),
    frames_of_others,
    natives,
)
any_turn = strategies.turns(any_part)
