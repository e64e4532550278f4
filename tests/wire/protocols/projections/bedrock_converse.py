"""What Converse cannot express, written by hand: the projection of a turn."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace

from mockllm.core import events as ev
from mockllm.core.timeline import expand, fold
from mockllm.core.turn import (
    Media,
    Opaque,
    Reasoning,
    Refusal,
    ServerTool,
    Text,
    ToolCall,
    Turn,
)
from mockllm.wire.protocols.bedrock_converse.blocks import STOPS, server_id
from mockllm.wire.protocols.custom_calls import with_functions
from tests.wire.protocols.projections.anthropic_messages import Opening, Openings

__all__ = ["project"]

_TOOLS = {"code_interpreter": "nova_code_interpreter", "web_search": "nova_grounding"}


def project(turn: Turn) -> Turn:
    """The turn that the Decoder reads from the stream of a turn."""
    turn = with_functions(turn)
    openings = Openings(turn)
    return fold(
        ev.Timed(item.at, event)
        for item in expand(turn)
        for due in openings.due(item.event)
        for event in _decoded(due, turn)
    )


def _decoded(event: ev.Event | Opening, turn: Turn) -> Iterable[ev.Event]:
    if isinstance(event, Opening):
        return  # of a block without a start
    part = getattr(event, "part", None)
    if part is not None:
        yield from _of_part(event, turn.parts[part])
        return
    match event:
        case ev.Start():
            yield event
        case ev.StreamError(message=message, type=type, code=code):
            named = [name for name in (type, code) if name and name.endswith("Exception")]
            name = named[0] if named else "internalServerException"
            yield ev.StreamError(message, name[0].lower() + name[1:])
        case ev.Finish():
            yield STOPS.read(STOPS.write(event))
            usage = turn.usage
            if usage is not None:
                cached = min(usage.cached, usage.input)
                written = min(usage.cache_written, usage.input - cached)
                yield replace(usage, reasoning=0, cached=cached, cache_written=written)


def _of_part(event: ev.Event, part: object) -> Iterable[ev.Event]:
    match event, part:
        case (ev.TextDelta(part=key, text=text), Text()) | (
            ev.RefusalDelta(part=key, text=text),
            Refusal(),
        ):
            if isinstance(part, Text) or any(part.fragments):
                yield ev.TextDelta(key, text)
        case ev.ReasoningDelta(), Reasoning():
            yield replace(event, summary=False)
        case (ev.Cite(), Text()) | (ev.ToolStart() | ev.ToolArgs(), ToolCall()):
            yield event
        case ev.Signature(value=value), Reasoning() if value:
            yield event
        case ev.MediaDelta(data=data), Media(media_type="image/png") if data:
            yield replace(event, text="")
        case _, ServerTool():
            yield from _of_server_tool(event, part)
        case _, Opaque():
            pass  # of another API


def _of_server_tool(event: ev.Event, part: ServerTool) -> Iterable[ev.Event]:
    name = part.name if part.name in _TOOLS.values() else _TOOLS.get(part.kind)
    if name is None or (part.input and not isinstance(_json(part.input), dict)):
        return
    match event:
        case ev.ServerToolStart(part=key):
            kind = next(kind for kind, other in _TOOLS.items() if other == name)
            yield ev.ServerToolStart(key, server_id(part), kind)
        case ev.ToolArgs():
            yield event
        case ev.ServerToolResult(part=key, output=output):
            content = _json(output)
            if isinstance(content, list) and content and all(map(_is_content, content)):
                text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
                yield ev.ServerToolResult(key, text)


def _json(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _is_content(value: object) -> bool:
    return isinstance(value, dict) and ("json" in value or "text" in value)
