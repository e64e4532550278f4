"""The stream and the body of an answer, as Anthropic sends them.

https://docs.claude.com/en/docs/build-with-claude/streaming

The SDKs use the `index` of a block as its position in the message, so blocks open in the order of
the turn's parts, whichever part has the first fragment. The SDKs drop events without an `event:`
line, so every event has one. The body is what the stream adds up to.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mockllm.core import events as ev
from mockllm.core.events import Frame
from mockllm.core.seeded import derive_int
from mockllm.core.timeline import expand
from mockllm.core.turn import Opaque, Reasoning, ServerTool, Text, ToolCall, Turn
from mockllm.wire.protocols.anthropic_messages import API, blocks, native
from mockllm.wire.protocols.anthropic_messages.assembly import DELTAS
from mockllm.wire.protocols.anthropic_messages.bedrock import BEDROCK, metrics
from mockllm.wire.protocols.anthropic_messages.server_tools import is_result, result_block
from mockllm.wire.protocols.base import Reply, dumps
from mockllm.wire.protocols.custom_calls import function
from mockllm.wire.protocols.records import Fields, Json
from mockllm.wire.protocols.values import array, json_object, mapping, merge, sendable_value, string

# As the service sends them: only pings have a space after the colon, and only they no padding.
_PING = Frame('{"type": "ping"}', event="ping")
_MAX_PADDING = 16


class Encoder:
    """Turns the events of one turn into the frames of a Messages stream."""

    def __init__(self, turn: Turn, reply: Reply) -> None:
        self._turn = turn
        self._reply = reply
        self._opened = 0
        self._of_custom = {
            index: iter(function(part).fragments)
            for index, part in enumerate(turn.parts)
            if isinstance(part, ToolCall) and part.custom
        }
        self._blocks: dict[int, int] = {}
        self._next_block = 0
        self._count = 0
        self._pinged = False
        self._finished = False

    def encode(self, event: ev.Event) -> list[Frame]:
        """The frames of one event, in order."""
        if isinstance(event, ev.ToolArgs) and event.part in self._of_custom:
            event = replace(event, text=next(self._of_custom[event.part]))
        part = getattr(event, "part", None)
        if part is None:
            return self._frames(event)
        # Before the first event of a part, all parts before it open.
        frames = [frame for i in range(self._opened, part + 1) for frame in self._open(i)]
        self._opened = max(self._opened, part + 1)
        opens = isinstance(event, (ev.ToolStart, ev.ServerToolStart, ev.Raw))
        return frames if opens else [*frames, *self._frames(event)]

    def _frames(self, event: ev.Event) -> list[Frame]:
        match event:
            case ev.Start() if not self._opens_with_frame():
                message = blocks.opened_message(self._turn, self._reply)
                return [self._frame("message_start", message=message)]
            case ev.TextDelta(part=part, text=text) | ev.RefusalDelta(part=part, text=text):
                return self._delta(part, "text_delta", text=text)
            case ev.ReasoningDelta(part=part, text=text):
                return self._thinking(part, text)
            case ev.ToolArgs(part=part, text=text):
                return self._delta(part, "input_json_delta", partial_json=text)
            case ev.PartEnd(part=part):
                return self._close(part)
            case ev.Finish():
                return self._finish(event)
            case ev.StreamError():
                return [self._error(event)]
        return []

    def _opens_with_frame(self) -> bool:
        first = self._turn.parts[0] if self._turn.parts else None
        if not isinstance(first, Opaque) or first.api != API:
            return False
        return (json_object(first.frame.data) or {}).get("type") == "message_start"

    def _frame(self, type: str, **fields: Any) -> Frame:
        """One event. The service pads its JSON with spaces before the last brace."""
        self._count += 1
        padding = " " * derive_int(self._reply.seed, "padding", self._count, below=_MAX_PADDING)
        return Frame(f"{dumps({'type': type, **fields})[:-1]}{padding}}}", event=type)

    def _open(self, part: int) -> list[Frame]:
        whole = self._turn.parts[part]
        if isinstance(whole, Opaque):
            return self._opaque(part, whole)
        block = blocks.opened_block(whole)
        if block is None:
            return []
        frames = [*self._start(part, block), *self._ping()]
        match whole:
            case ServerTool(name=name) if is_result(name):
                frames += self._stop(self._blocks.pop(part))
            case ToolCall() | ServerTool():
                # Anthropic sends an empty first fragment; a zero-argument call has no other.
                frames += self._delta(part, "input_json_delta", partial_json="")
            case Text(citations=citations):
                # The service sends the citations of a text before the text.
                for cite in citations:
                    frames += self._delta(part, "citations_delta", citation=blocks.citation(cite))
        return frames

    def _start(self, part: int, block: Json) -> list[Frame]:
        index = self._blocks[part] = self._next_block
        self._next_block += 1
        return [self._frame("content_block_start", index=index, content_block=block)]

    def _stop(self, index: int) -> list[Frame]:
        return [self._frame("content_block_stop", index=index)]

    def _ping(self) -> list[Frame]:
        """The single ping of a short answer; the service sends it after the first block opens, and
        Bedrock none."""
        if self._pinged or self._reply.options == BEDROCK:
            return []
        self._pinged = True
        return [_PING]

    def _delta(self, part: int, type: str, **fields: Any) -> list[Frame]:
        index = self._blocks.get(part)
        if index is None:
            return []
        return [self._frame("content_block_delta", index=index, delta={"type": type, **fields})]

    def _thinking(self, part: int, text: str) -> list[Frame]:
        whole = self._turn.parts[part]
        if isinstance(whole, Reasoning) and blocks.hidden(whole):
            return []
        counted = {}
        if isinstance(whole, Reasoning) and not whole.text:
            # Several fragments of hidden reasoning say how far it is (`estimated_tokens`).
            total = blocks.message_usage(self._turn).reasoning
            share = total // len(whole.fragments)
            counted = {"estimated_tokens": share} if share else {}
        return self._delta(part, "thinking_delta", thinking=text, **counted)

    def _close(self, part: int) -> list[Frame]:
        index = self._blocks.get(part)
        if index is None:
            return []
        whole = self._turn.parts[part]
        frames = []
        if isinstance(whole, Reasoning):  # whole, directly before the stop
            frames += self._delta(part, "signature_delta", signature=blocks.signature_of(whole))
        frames += self._stop(index)
        result = result_block(whole) if isinstance(whole, ServerTool) else None
        if result is not None:
            frames += self._start(part, result)
            frames += self._stop(self._blocks[part])
        return frames

    def _native(self, part: int, block: Json) -> list[Frame]:
        """The frames of a native part, which is a block."""
        opened, delta = native.opened_and_streamed(block)
        frames = [*self._start(part, opened), *self._ping()]
        if delta:
            frames += self._delta(part, **delta)
        return [*frames, *self._stop(self._blocks[part])]

    def _opaque(self, number: int, part: Opaque) -> list[Frame]:
        if part.api != API:
            return []
        value = json_object(part.frame.data) or {}
        if part.native:
            return self._native(number, value)
        type = value.get("type")
        if type == "message_delta" and mapping(value.get("delta")).get("stop_reason"):
            self._finished = True
        if type == "message_start":
            self._start_frame(mapping(value.get("message")))
        if type != "content_block_start":
            return [part.frame]
        index = value.get("index")
        if isinstance(index, int):
            self._next_block = max(self._next_block, index + 1)
        return [part.frame, *self._ping()]

    def _start_frame(self, message: Fields) -> None:
        """Continues after a `message_start` that is a frame, maybe with blocks and their end."""
        content = message.get("content")
        if isinstance(content, list) and content:
            self._next_block = max(self._next_block, len(content))
            self._finished = self._finished or bool(message.get("stop_reason"))

    def _finish(self, event: ev.Finish) -> list[Frame]:
        frames = self._ping()
        if not self._finished:
            reason = blocks.STOPS.write(event)
            delta = {
                "stop_reason": reason,
                "stop_sequence": event.stop_sequence,
                "stop_details": blocks.REFUSAL_DETAILS if reason == "refusal" else None,
            }
            usage = blocks.write_usage(self._turn)
            frames.append(self._frame("message_delta", delta=delta, usage=usage))
        counted = {}
        if self._reply.options == BEDROCK:
            counted = metrics(blocks.message_usage(self._turn), self._reply)
        return [*frames, self._frame("message_stop", **counted)]

    def _error(self, event: ev.StreamError) -> Frame:
        return self._frame(
            "error",
            error={"type": event.type or blocks.DEFAULT_ERROR, "message": event.message},
            request_id=blocks.request_id(self._reply.seed),
        )


# The body


def encode_body(turn: Turn, reply: Reply) -> Json:
    """The message of an answer that is not streamed, equal to what its stream adds up to. The body
    of a turn with an error is the error only."""
    encoder = Encoder(turn, reply)
    accumulator = _Accumulator()
    for timed in expand(turn):
        for frame in encoder.encode(timed.event):
            accumulator.add(json_object(frame.data) or {})
    return accumulator.error or accumulator.body()


_GROWING = frozenset({"text", "thinking", "citations", "partial_json"})


class _Accumulator:
    def __init__(self) -> None:
        self.error: Json | None = None
        self._message: Json = {}
        self._blocks: dict[int, Json] = {}

    def add(self, value: Json) -> None:
        """Adds an event of the stream to the message."""
        index = value.get("index")
        match value.get("type"):
            case "message_start" if not self._message:
                self._start(mapping(value.get("message")))
            case "content_block_start" if isinstance(index, int):
                self._blocks[index] = dict(mapping(value.get("content_block")))
            case "content_block_delta" if isinstance(index, int) and index in self._blocks:
                self._delta(self._blocks[index], mapping(value.get("delta")))
            case "message_delta":
                merge(self._message, mapping(value.get("delta")))
                merge(self._message, {"usage": mapping(value.get("usage"))})
            case "error":
                self.error = value

    def _start(self, message: Fields) -> None:
        self._message = dict(message)
        for index, block in enumerate(array(message.get("content"))):
            self._blocks[index] = dict(mapping(block))

    def _delta(self, block: Json, delta: Fields) -> None:
        block |= native.streamed_fields(string(block.get("type")), delta) or {}
        _, name = DELTAS.get(string(delta.get("type")), ("", ""))
        if name == "citation":
            merge(block, {"citations": [delta.get(name)]}, _GROWING)
        elif name:
            merge(block, {name: string(delta.get(name))}, _GROWING)

    def body(self) -> Json:
        """The message, with arguments as JSON values. What the SDK's types call optional is absent
        where it is empty, as in the service's bodies: other clients' types refuse a null there."""
        for block in self._blocks.values():
            if text := block.pop("partial_json", ""):
                # Their text where they are no JSON object, or none that JSON can hold.
                value = sendable_value(text)
                block["input"] = value if isinstance(value, dict) else text
        return {**self._message, "content": list(self._blocks.values())}
