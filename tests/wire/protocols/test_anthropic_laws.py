"""Anthropic Messages: the laws of the round trip, over any turn."""

from __future__ import annotations

import json
from typing import Any

from anthropic.lib.streaming._messages import accumulate_event
from anthropic.types import Message, RawMessageStreamEvent
from hypothesis import example, given

from mockllm.core.turn import ServerTool, ToolCall, Turn
from mockllm.wire.framing import sse
from mockllm.wire.protocols.anthropic_messages.protocol import PROTOCOL
from mockllm.wire.protocols.values import json_object
from tests import strategies
from tests.wire.protocols import streams
from tests.wire.protocols.anthropic_turns import (
    REPLY,
    USAGE,
    any_turn,
    frames,
    hosted,
    natives,
    read,
    server_tools,
    stream,
    values,
)
from tests.wire.protocols.strict import problems


@given(
    strategies.turns(strategies.every_part, max_parts=2, interleaved=False),
    strategies.turns(strategies.every_part, max_parts=2, interleaved=False),
)
def test_blocks_of_hosted_tools_survive(before: Turn, after: Turn) -> None:
    """A hosted tool's frames between other blocks come back, and the blocks around them too."""
    index = sum(value["type"] == "content_block_start" for value in values(before))
    parts = (*before.parts, *hosted(index), *after.parts)
    turn = Turn(parts, "stop", USAGE)
    assert streams.read(PROTOCOL, streams.played(PROTOCOL, turn, REPLY)) == PROTOCOL.project(turn)
    starts = [v["index"] for v in values(turn) if v["type"] == "content_block_start"]
    assert starts == list(range(len(starts)))


@given(
    strategies.turns(
        strategies.every_part | server_tools | natives | strategies.tool_calls(well_formed=False)
    )
)
def test_body_law(turn: Turn) -> None:
    """The body decodes to the same turn as the stream, up to the cutting."""
    body = json.loads(json.dumps(PROTOCOL.encode_body(turn, REPLY)))
    got = PROTOCOL.decode_body(body)
    if turn.error is not None:
        assert (got.parts, got.error) == ((), PROTOCOL.project(turn).error)
        return
    assert values_of_calls(got) == values_of_calls(PROTOCOL.project(turn).whole())


def values_of_calls(turn: Turn) -> list[Any]:
    """The turn with arguments that are JSON objects as values: a body cannot keep their text."""
    out: list[Any] = [turn.finish, turn.finish_raw, turn.usage, turn.error]
    for part in turn.parts:
        if isinstance(part, ServerTool):
            value = json_object(part.input or "{}")
            input = part.input if value is None else value
            out.append((part.kind, part.id, part.name, input, part.output))
            continue
        if isinstance(part, ToolCall) and part.arguments.lstrip()[:1] == "{":
            try:
                out.append((part.name, part.id, part.parse_arguments()))
                continue
            except ValueError:
                pass
        out.append(part)
    return out


@given(strategies.turns(strategies.every_part))
def test_events_and_bodies_are_strictly_typed(turn: Turn) -> None:
    """Every event and body has all fields that the official types require, and no others."""
    for value in values(turn):
        value.get("delta", {}).pop("estimated_tokens", None)  # of a beta
        if value["type"] != "error":
            assert problems(RawMessageStreamEvent, value) == []
    if turn.error is None:
        assert problems(Message, PROTOCOL.encode_body(turn, REPLY)) == []


NEWER_TOOL = ServerTool("image_generation", "srvtoolu_b")
"""A tool of the service, as its id shows, that the official types do not name."""


@given(strategies.turns(strategies.parts | server_tools, endings=False))
@example(Turn((NEWER_TOOL,), "stop"))
def test_the_official_client_accumulates_the_body(turn: Turn) -> None:
    """The official client's result from the stream equals the body, however the parts
    interleave."""
    snapshot = None
    buffers: dict[int, bytes] = {}
    for value in values(turn):
        snapshot = accumulate_event(
            event=value,  # type: ignore[arg-type]
            current_snapshot=snapshot,
            json_bufs=buffers,
        )
    assert snapshot is not None
    body = PROTOCOL.encode_body(turn, REPLY)
    # The client reads a tool that its types do not name, and warns only when it writes one.
    got = json.loads(snapshot.to_json(exclude_unset=True, warnings=False))
    for block in [*got["content"], *body["content"]]:
        block["citations"] = block.get("citations") or []
    # The client leaves fields out that are null in a body.
    for message in (got, body):
        for name in ("container", "stop_details"):
            message.pop(name, None)
        message["usage"].setdefault("server_tool_use", None)
    assert got == body


@given(any_turn)
def test_indexes_are_consecutive(turn: Turn) -> None:
    """Blocks open with consecutive indexes from 0, and a closed block gets no further events."""
    opened, closed = [], set()
    for value in values(Turn(tuple(p for p in turn.parts if hasattr(p, "fragments")), "stop")):
        index = value.get("index")
        assert index not in closed
        if value["type"] == "content_block_start":
            opened.append(index)
        elif value["type"] == "content_block_stop":
            closed.add(index)
    assert opened == list(range(len(opened)))
    assert closed == set(opened)


@given(any_turn)
def test_the_same_turn_gives_the_same_bytes(turn: Turn) -> None:
    """Derived values depend on the turn only: encoding twice gives the same frames."""
    assert frames(turn) == frames(turn)
    assert read(*frames(turn)) == read(*sse.decode(stream(turn)))
