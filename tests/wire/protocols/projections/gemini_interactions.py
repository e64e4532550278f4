"""What Interactions cannot express, written by hand: the projection of a turn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mockllm.core import events as ev
from mockllm.core.timeline import expand, fold
from mockllm.core.turn import Media, Reasoning, ServerTool, ToolCall, Turn
from mockllm.wire.protocols.custom_calls import with_functions
from mockllm.wire.protocols.gemini_common import signature_of
from mockllm.wire.protocols.gemini_interactions import API
from mockllm.wire.protocols.gemini_interactions.fields import BLOCKED_MESSAGE, STATUSES
from mockllm.wire.protocols.gemini_interactions.steps import (
    call_step,
    is_result,
    read_input,
    read_output,
    result_step,
    thought_signature,
)
from mockllm.wire.protocols.values import json_object

_READ = ("interaction.created", "interaction.status_update", "interaction.completed", "error")


def project(turn: Turn) -> Turn:
    """The turn that the Decoder reads from the stream of a turn: refusals are text, inputs of the
    service's tools are whole, and so are images."""
    decoded = _Decoded(with_functions(turn))
    return fold(
        ev.Timed(item.at, event)
        for item in expand(decoded.turn)
        for event in decoded.events(item.event)
    )


class _Decoded:
    """The events of a turn as the Decoder returns them."""

    def __init__(self, turn: Turn) -> None:
        self.turn = turn
        self._keys: dict[int, int] = {}
        self._last = -1
        self._called: dict[tuple[str, str], int] = {}

    def events(self, event: ev.Event) -> Iterator[ev.Event]:
        match event:
            case ev.TextDelta(part=part, text=text) | ev.RefusalDelta(part=part, text=text):
                yield ev.TextDelta(self._key(part), text)
            case ev.ReasoningDelta(part=part, text=text):
                key, whole = self._key(part), self.turn.parts[part]
                if whole != replace(whole, fragments=("",)):
                    yield ev.ReasoningDelta(key, text)
            case ev.MediaDelta(part=part, media_type=type, data=data) if data:
                if type.startswith("audio/"):
                    yield ev.MediaDelta(self._key(part), type, data)
            case ev.ToolStart(part=part):
                yield replace(event, part=self._key(part))
            case ev.ToolArgs(part=part) if isinstance(self.turn.parts[part], ToolCall):
                yield replace(event, part=self._key(part))
            case ev.ServerToolStart(part=part):
                yield from self._called_tool(part)
            case ev.Cite(part=part) if event.url or event.passage is None:
                quoted = event.cited_text in self.turn.parts[part].text
                cited = event.cited_text if quoted else ""
                yield replace(event, part=self._key(part), cited_text=cited, passage=None)
            case ev.PartEnd(part=part):
                yield from self._end(part)
            case ev.Raw(api=api, frame=frame) if api == API:
                value = json_object(frame.data) or {}
                if value.get("event_type") not in _READ and not value.get("error"):
                    yield ev.Raw(self._new_key(), API, frame)
            case ev.Finish(reason="content_filter", raw=raw):
                yield ev.StreamError(BLOCKED_MESSAGE, raw or "safety")
            case ev.Finish():
                if self.turn.usage is not None:
                    yield _counted(self.turn.usage)
                yield STATUSES.read(STATUSES.write(event))
            case ev.StreamError(message=message, type=type, code=code):
                yield ev.StreamError(message, type or code or "api_error")
            case ev.Start():
                yield event

    def _new_key(self) -> int:
        self._last += 1
        return self._last

    def _key(self, part: int) -> int:
        if part not in self._keys:
            self._keys[part] = self._new_key()
        return self._keys[part]

    def _called_tool(self, part: int) -> Iterator[ev.Event]:
        tool = self.turn.parts[part]
        assert isinstance(tool, ServerTool)
        opened = call_step(tool)
        if opened is not None:
            id, key = opened[0]["id"], self._key(part)
            self._called[tool.kind, id] = key
            name = opened[0].get("name", "")
            yield ev.ServerToolStart(key, id, tool.kind, "" if name == tool.kind else name)

    def _end(self, part: int) -> Iterator[ev.Event]:
        match self.turn.parts[part]:
            case Reasoning() as thought:
                yield ev.Signature(self._key(part), thought_signature(thought))
            case ToolCall(signature=signature) if signature:
                yield ev.Signature(self._key(part), signature_of(signature))
            case Media(media_type=type, data=data) if type.startswith("image/") and any(data):
                yield ev.MediaDelta(self._key(part), type, b"".join(data))
            case ServerTool() as tool:
                yield from self._ended_tool(part, tool)

    def _ended_tool(self, part: int, tool: ServerTool) -> Iterator[ev.Event]:
        called, answered = call_step(tool), result_step(tool)
        if called is not None and read_input(called[1]):
            yield ev.ToolArgs(self._key(part), read_input(called[1]))
        if answered is None:
            return
        id, type = answered[0]["call_id"], answered[0]["type"]
        assert is_result(type)
        key = self._called.pop((tool.kind, id), None)
        if key is None:
            key = self._new_key()
            yield ev.ServerToolStart(key, id, tool.kind, type)
        yield ev.ServerToolResult(key, read_output(answered[1]))


def _counted(usage: ev.Usage) -> ev.Usage:
    return replace(usage, output=max(usage.output, usage.reasoning), cache_written=0)
