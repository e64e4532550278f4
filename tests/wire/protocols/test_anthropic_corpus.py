"""Anthropic Messages streams that were recorded, against the official client's own reading."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from anthropic.lib.streaming._messages import accumulate_event

from mockllm.core.events import Frame
from mockllm.core.turn import Opaque, ServerTool, TokenUsage, Turn
from mockllm.wire.framing import sse
from mockllm.wire.protocols.anthropic_messages.protocol import PROTOCOL
from mockllm.wire.protocols.base import Reply
from tests.cases import for_all
from tests.corpus import needs_corpus, recorded_streams
from tests.wire.protocols.anthropic_turns import Json, decoded, frames, read

STREAMS = recorded_streams("anthropic")


def recorded(path: Path) -> list[Frame]:
    return sse.decode(path.read_bytes())


def accumulated(given: list[Frame]) -> Json:
    """The message that the official client makes of frames."""
    snapshot: Any = None
    buffers: dict[int, bytes] = {}
    for frame in given:
        if frame.data is not None and frame.event != "ping":
            snapshot = accumulate_event(
                event=json.loads(frame.data), current_snapshot=snapshot, json_bufs=buffers
            )
    # The types lag behind the blocks of new hosted tools, which the client keeps all the same.
    message: Json = snapshot.to_dict(mode="json", exclude_unset=True, warnings=False)
    return message


@needs_corpus
@for_all("path", STREAMS, ids=lambda path: path.parent.name)
def test_recorded_stream_adds_up(path: Path) -> None:
    """Text, reasoning, calls, finish and usage are those of the official client."""
    turn = read(*recorded(path))
    message = accumulated(recorded(path))
    content = message["content"]
    assert turn.text == "".join(b["text"] for b in content if b["type"] == "text")
    assert turn.reasoning == "".join(b["thinking"] for b in content if b["type"] == "thinking")
    assert [(call.id, call.name, call.parse_arguments()) for call in turn.tool_calls] == [
        (b["id"], b["name"], b["input"]) for b in content if b["type"] == "tool_use"
    ]
    assert PROTOCOL.encode_body(turn, reply(message))["stop_reason"] == message["stop_reason"]
    usage = message["usage"]
    cached, created = usage["cache_read_input_tokens"], usage["cache_creation_input_tokens"]
    assert turn.usage == TokenUsage(
        usage["input_tokens"] + cached + created,
        usage["output_tokens"],
        (usage.get("output_tokens_details") or {}).get("thinking_tokens", 0),
        cached,
        created,
    )


def reply(message: Json) -> Reply:
    return Reply("seed", "0" * 40, message["model"], None)


@needs_corpus
@for_all("path", STREAMS, ids=lambda path: path.parent.name)
def test_every_recorded_block_is_kept(path: Path) -> None:
    """The client's message from the replayed turn has every block of the recording, those of hosted
    tools and their results included."""
    message = accumulated(recorded(path))
    again = accumulated(frames(read(*recorded(path)), reply(message)))
    assert list(map(neutral, again["content"])) == list(map(neutral, message["content"]))
    for name in ("stop_reason", "stop_sequence"):
        assert again.get(name) == message.get(name)


def neutral(block: Json) -> Json:
    """A block without the index into encrypted results and the caller, which no neutral type
    holds."""
    cites = [
        {k: v for k, v in c.items() if k != "encrypted_index"} for c in block.get("citations") or []
    ]
    return {**{k: v for k, v in block.items() if k != "caller"}, "citations": cites}


@needs_corpus
@for_all("path", STREAMS, ids=lambda path: path.parent.name)
def test_recorded_turn_survives_another_round(path: Path) -> None:
    """Replaying what was recorded and reading it again gives the same turn."""
    turn = read(*recorded(path))
    assert isinstance(turn, Turn)
    assert read(*frames(turn)) == turn == PROTOCOL.project(turn)


@needs_corpus
@for_all("path", STREAMS, ids=lambda path: path.parent.name)
def test_tools_of_the_service_are_neutral(path: Path) -> None:
    """Every call of the service's own tools, and every result, is in a neutral part; no frame is
    kept but those of redacted thinking."""
    given = recorded(path)
    parts = read(*given).parts
    blocks = accumulated(given)["content"]
    tools = [part for part in parts if isinstance(part, ServerTool)]
    assert [(b["id"], b["name"], b["input"]) for b in blocks if b["type"] == "server_tool_use"] == [
        (tool.id, tool.name or tool.kind, json.loads(tool.input or "{}"))
        for tool in tools
        if not tool.name.endswith("_tool_result")
    ]
    results = [(b["tool_use_id"], b["content"]) for b in blocks if "tool_use_id" in b]
    answered = [(tool.id, json.loads(tool.output)) for tool in tools if tool.output is not None]
    assert answered == results
    kept = [part.frame.data or "" for part in parts if isinstance(part, Opaque)]
    assert [data for data in kept if "redacted" not in data and "_stop" not in data] == []


@needs_corpus
@for_all("path", STREAMS, ids=lambda path: path.parent.name)
def test_a_recorded_stream_decodes_the_same_at_any_cuts(path: Path) -> None:
    """A recorded stream in parts of seven bytes decodes to the same events."""
    data = path.read_bytes()
    decoder = sse.SSEDecoder()
    parts = [data[i : i + 7] for i in range(0, len(data), 7)]
    got = [frame for part in parts for frame in decoder.decode(part)]
    assert decoded(got) == decoded(recorded(path))
