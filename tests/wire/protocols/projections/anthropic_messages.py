"""What the Messages API cannot express, written by hand: the projection of a turn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from mockllm.core import events as ev
from mockllm.core.events import Frame
from mockllm.core.timeline import expand, fold
from mockllm.core.turn import Opaque, Reasoning, ServerTool, ToolCall, Turn
from mockllm.wire.protocols.anthropic_messages import API
from mockllm.wire.protocols.anthropic_messages.assembly import is_neutral
from mockllm.wire.protocols.anthropic_messages.blocks import (
    DEFAULT_ERROR,
    STOPS,
    message_usage,
    opened_block,
    signature_of,
)
from mockllm.wire.protocols.anthropic_messages.server_tools import (
    is_result,
    opened_tool,
    read_call,
    read_result,
    result_block,
    server_id,
)
from mockllm.wire.protocols.custom_calls import with_functions
from mockllm.wire.protocols.values import mapping, string, typed_event

_READ = frozenset(
    {"message_start", "message_delta", "message_stop", "ping", "error"}
    | {"content_block_start", "content_block_delta", "content_block_stop"}
)
"""The types of events that have a neutral form."""


@dataclass(frozen=True, slots=True)
class Opening:
    """The opening of a part that has no event for it: text, reasoning or a refusal."""

    part: int


class Openings:
    """Puts the events of a turn into the order of this protocol. Before the first event of a part,
    all parts before it open. An opaque frame opens by being sent."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._opened = 0

    def due(self, event: ev.Event) -> list[ev.Event | Opening]:
        """The events to encode for an event, in order; none where it was encoded before."""
        part = getattr(event, "part", None)
        if part is None:
            return [event]
        out = [self._open(i) for i in range(self._opened, part + 1)]
        self._opened = max(self._opened, part + 1)
        opened = isinstance(event, (ev.ToolStart, ev.ServerToolStart, ev.Raw))
        return out if opened else [*out, event]

    def _open(self, index: int) -> ev.Event | Opening:
        match self._turn.parts[index]:
            case ToolCall(id=id, name=name):
                return ev.ToolStart(index, id, name)
            case ServerTool(id=id, kind=kind, name=name):
                return ev.ServerToolStart(index, id, kind, name)
            case Opaque(api=api, frame=frame, native=native):
                return ev.Raw(index, api, frame, native)
        return Opening(index)


def project(turn: Turn) -> Turn:
    """The turn that the Decoder reads from the stream of a turn."""
    turn = with_functions(turn)
    openings, decoded = Openings(turn), _Decoded(turn)
    return fold(
        ev.Timed(item.at, event)
        for item in expand(turn)
        for due in openings.due(item.event)
        for event in decoded.events(due)
    )


class _Decoded:
    """The events of a turn as the Decoder returns them."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._keys: dict[int, int] = {}
        self._last = -1
        self._called: tuple[str, int] | None = None
        self._foreign: set[int] = set()

    def events(self, event: ev.Event | Opening) -> Iterable[ev.Event]:
        """The event as the Decoder returns it: none, one or several events."""
        match event:
            case Opening(part=part):
                if opened_block(self._turn.parts[part]):
                    self._open(part)
            case ev.ToolStart(part=part, id=id, name=name):
                yield ev.ToolStart(self._open(part), id, name)
            case ev.ServerToolStart(part=part):
                yield from self._server_tool(part)
            case ev.TextDelta(part=part, text=text) | ev.RefusalDelta(part=part, text=text):
                if part in self._keys:
                    yield ev.TextDelta(self._keys[part], text)
            case ev.ReasoningDelta(part=part, text=text):
                yield ev.ReasoningDelta(self._keys[part], text)
            case ev.ToolArgs(part=part, text=text) if part in self._keys:
                yield ev.ToolArgs(self._keys[part], text)
            case ev.Cite(part=part, passage=passage):
                of_document = passage is not None and not passage.of_search
                url = "" if of_document else event.url
                yield replace(event, part=self._keys[part], url=url)
            case ev.PartEnd(part=part):
                yield from self._end(part)
            case ev.Raw(native=True, api=api) if api == API:
                yield replace(event, part=self._new_key())
            case ev.Raw(api=api, frame=frame) if api == API and self._keeps(frame):
                yield replace(event, part=self._new_key())
            case ev.Finish():
                yield message_usage(self._turn)
                yield STOPS.read(STOPS.write(event))
            case ev.StreamError():
                yield replace(event, type=event.type or DEFAULT_ERROR, code=None)
            case ev.Start():
                yield event

    def _new_key(self) -> int:
        self._last += 1
        return self._last

    def _open(self, part: int) -> int:
        key = self._keys[part] = self._new_key()
        return key

    def _server_tool(self, part: int) -> Iterable[ev.Event]:
        tool = self._turn.parts[part]
        assert isinstance(tool, ServerTool)
        block = opened_tool(tool)
        if block is None:
            return
        if is_result(tool.name):
            yield from self._result(block)
            return
        key, id = self._open(part), server_id(tool)
        self._called = id, key
        yield ev.ServerToolStart(key, id, *read_call(block))

    def _result(self, block: Mapping[str, Any]) -> Iterable[ev.Event]:
        """A result: of the call directly before it, or a part of its own."""
        kind, output = read_result(block)
        id, key = block["tool_use_id"], self._last
        if self._called != (id, key):
            key = self._new_key()
            yield ev.ServerToolStart(key, id, kind, block["type"])
        self._called = None
        yield ev.ServerToolResult(key, output)

    def _end(self, part: int) -> Iterable[ev.Event]:
        whole, key = self._turn.parts[part], self._keys.get(part)
        if isinstance(whole, Reasoning) and key is not None:
            yield ev.Signature(key, signature_of(whole))
        block = result_block(whole) if isinstance(whole, ServerTool) else None
        if key is not None and block is not None:
            yield from self._result(block)

    def _keeps(self, frame: Frame) -> bool:
        """Whether a frame of this protocol is kept as a frame."""
        if frame.data is None or frame.data.strip() in ("", "[DONE]"):
            return False
        value = typed_event(frame)
        index = value.get("index")
        index = index if isinstance(index, int) else -1
        match value["type"]:
            case "content_block_start":
                foreign = not is_neutral(string(mapping(value.get("content_block")).get("type")))
                (self._foreign.add if foreign else self._foreign.discard)(index)
                return foreign
            case "content_block_delta" | "content_block_stop":
                return index in self._foreign
            case type:
                return type not in _READ
