"""The stream and the body of an answer, as Bedrock sends them.

https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStreamOutput.html

`contentBlockIndex` is the position of a block in the message, so blocks open in the order of the
turn's parts. Only calls and results have a `contentBlockStart`. Every event has a field `p` of
random length, which hides how long its content is. The body is what the stream adds up to.
"""

from __future__ import annotations

from typing import Any

from mockllm.core import events as ev
from mockllm.core.events import Frame
from mockllm.core.seeded import derive_int
from mockllm.core.timeline import expand
from mockllm.core.turn import Media, Opaque, Reasoning, Refusal, ServerTool, ToolCall, Turn
from mockllm.wire.protocols.aws import PADDINGS, exception_name
from mockllm.wire.protocols.base import Reply, dumps
from mockllm.wire.protocols.bedrock_converse import API, blocks, images
from mockllm.wire.protocols.custom_calls import with_functions
from mockllm.wire.protocols.records import Fields, Json
from mockllm.wire.protocols.values import array, json_object, mapping, merge, sendable_value, string


class Encoder:
    """Turns the events of one turn into the frames of a Converse stream."""

    def __init__(self, turn: Turn, reply: Reply) -> None:
        self._turn = with_functions(turn)
        self._reply = reply
        self._fragments = [list(getattr(part, "fragments", ())) for part in self._turn.parts]
        self._opened = 0
        self._blocks: dict[int, int] = {}
        self._next_block = 0
        self._count = 0

    def encode(self, event: ev.Event) -> list[Frame]:
        """The frames of one event, in order."""
        part = getattr(event, "part", None)
        if part is None:
            return self._frames(event)
        # Before the first event of a part, all parts before it open.
        frames = [frame for i in range(self._opened, part + 1) for frame in self._open(i)]
        self._opened = max(self._opened, part + 1)
        return [
            *frames,
            *(self._of_part(event, self._blocks[part]) if part in self._blocks else []),
        ]

    def _frames(self, event: ev.Event) -> list[Frame]:
        match event:
            case ev.Start():
                return [self._frame("messageStart", role="assistant")]
            case ev.Finish():
                stop = self._frame("messageStop", stopReason=blocks.STOPS.write(event))
                if self._turn.usage is None:
                    return [stop]
                tier = self._reply.service_tier
                metadata = {
                    "metrics": blocks.metrics(self._reply),
                    "usage": blocks.write_usage(self._turn.usage),
                    **({"serviceTier": {"type": tier}} if tier else {}),
                }
                return [stop, self._frame("metadata", **metadata)]
            case ev.StreamError():
                # The service pads events, and not exceptions.
                name = exception_name(event.type, event.code)
                return [Frame(dumps({name: {"message": event.message}}))]
        return []

    def _frame(self, name: str, **fields: Any) -> Frame:
        self._count += 1
        number = derive_int(self._reply.seed, "padding", self._count, below=len(PADDINGS))
        padded = {**fields, "p": PADDINGS[number]}
        return Frame(dumps({name: dict(sorted(padded.items()))}))

    def _open(self, part: int) -> list[Frame]:
        whole = self._turn.parts[part]
        match whole:
            case Opaque(api=api, frame=frame):
                return self._opaque(frame) if api == API else []
            case Refusal(fragments=fragments) if not any(fragments):
                return []
            case ServerTool():
                name = blocks.server_tool_name(whole)
                id = blocks.server_id(whole)
                use = {"name": name, "toolUseId": id, "type": blocks.SERVER_USE}
                return [] if name is None else self._start(part, toolUse=use)
            case Media():
                format = images.format_of(whole)
                return self._start(part, image={"format": format}) if format else []
            case ToolCall(id=id, name=name):
                return self._start(part, toolUse={"name": name, "toolUseId": id})
        self._take_block(part)
        return []

    def _take_block(self, part: int) -> int:
        index = self._blocks[part] = self._next_block
        self._next_block += 1
        return index

    def _start(self, part: int, **start: Json) -> list[Frame]:
        index = self._take_block(part)
        return [self._frame("contentBlockStart", contentBlockIndex=index, start=start)]

    def _delta(self, index: int, **delta: Any) -> list[Frame]:
        return [self._frame("contentBlockDelta", contentBlockIndex=index, delta=delta)]

    def _stop(self, index: int) -> list[Frame]:
        return [self._frame("contentBlockStop", contentBlockIndex=index)]

    def _opaque(self, frame: Frame) -> list[Frame]:
        """A frame of the turn; other blocks come after the one that it names."""
        value = json_object(frame.data) or {}
        for member in value.values():
            index = mapping(member).get("contentBlockIndex")
            if isinstance(index, int):
                self._next_block = max(self._next_block, index + 1)
        return [frame]

    def _of_part(self, event: ev.Event, index: int) -> list[Frame]:
        match event:
            case ev.TextDelta(text=text) | ev.RefusalDelta(text=text):
                return self._delta(index, text=text)
            case ev.ReasoningDelta(part=part, text=text) if not self._is_hidden(part):
                return self._delta(index, reasoningContent={"text": text})
            case ev.Signature(part=part, value=value):
                signed = isinstance(self._turn.parts[part], Reasoning) and value
                content = {"signature": value}
                return self._delta(index, reasoningContent=content) if signed else []
            case ev.MediaDelta(data=data) if data:
                return self._delta(index, image=images.write_bytes(data))
            case ev.Cite():
                return self._delta(index, citation=blocks.citation(event))
            case ev.ToolArgs(part=part):
                return self._delta(index, toolUse={"input": self._fragments[part].pop(0)})
            case ev.PartEnd(part=part):
                return [*self._stop(index), *self._result(part)]
        return []

    def _is_hidden(self, part: int) -> bool:
        """Whether a part is reasoning without text, whose block has a signature only."""
        whole = self._turn.parts[part]
        return isinstance(whole, Reasoning) and whole.fragments == ("",) and bool(whole.signature)

    def _result(self, part: int) -> list[Frame]:
        """The block with the result of a tool of the service."""
        whole = self._turn.parts[part]
        content = blocks.server_result(whole) if isinstance(whole, ServerTool) else None
        if content is None:
            return []
        assert isinstance(whole, ServerTool)
        type = f"{blocks.server_tool_name(whole)}_result"
        id = blocks.server_id(whole)
        start = {"status": "success", "toolUseId": id, "type": type}
        opened = self._start(part, toolResult=start)
        index = self._blocks.pop(part)
        return [*opened, *self._delta(index, toolResult=content), *self._stop(index)]


# The body


def encode_body(turn: Turn, reply: Reply) -> Json:
    """The body of an answer that is not streamed, equal to what its stream adds up to. The body of
    a turn with an error is the error only."""
    if turn.error is not None:
        return {"message": turn.error.message}
    encoder, accumulator = Encoder(turn, reply), _Accumulator()
    for timed in expand(turn):
        for frame in encoder.encode(timed.event):
            for name, value in (json_object(frame.data) or {}).items():
                accumulator.add(name, mapping(value))
    return accumulator.body()


_GROWING = frozenset({"text", "input", "signature", "redactedContent", "citations", "data"})


class _Accumulator:
    def __init__(self) -> None:
        self._body: Json = {}
        self._blocks: dict[int, Json] = {}

    def add(self, name: str, value: Fields) -> None:
        """Adds an event of the stream to the body."""
        index = value.get("contentBlockIndex", 0)
        match name:
            case "contentBlockStart":
                self._blocks[index] = dict(mapping(value.get("start")))
            case "contentBlockDelta":
                self._delta(self._blocks.setdefault(index, {}), mapping(value.get("delta")))
            case "messageStop" | "metadata":
                self._body |= {key: field for key, field in value.items() if key != "p"}

    def _delta(self, block: Json, delta: Fields) -> None:
        match delta:
            case {"citation": citation}:
                delta = {"citations": [citation]}
            case {"image": _}:
                delta = {"data": [images.read_bytes(delta) or b""]}
            case {"toolResult": content}:
                delta = {"toolResult": {"content": array(content)}}
        merge(block, delta, _GROWING)

    def body(self) -> Json:
        """The whole body, its keys sorted."""
        content = [_whole(self._blocks[index]) for index in sorted(self._blocks)]
        output = {"message": {"content": content, "role": "assistant"}}
        return dict(sorted({"output": output, **self._body}.items()))


def _whole(block: Json) -> Json:
    """A block of a body, from its members in the stream."""
    if "citations" in block:
        cited = {"citations": block["citations"], "content": [{"text": block.get("text", "")}]}
        return {"citationsContent": cited}
    if "toolUse" in block:
        use = block["toolUse"]
        text = string(use.get("input"))
        value = sendable_value(text) if text else {}
        # The text of arguments that are no JSON object, or none that JSON can hold.
        input = value if isinstance(value, dict) else text
        return {"toolUse": {"input": input, **{key: use[key] for key in use if key != "input"}}}
    if "image" in block:
        return {"image": {**block["image"], **images.write_bytes(b"".join(block.get("data", ())))}}
    if "toolResult" in block:
        return {"toolResult": dict(sorted(block["toolResult"].items()))}
    content = block.get("reasoningContent", {})
    if content and "redactedContent" not in content:
        reasoning = {"text": "", **content}
        return {"reasoningContent": {"reasoningText": dict(sorted(reasoning.items()))}}
    return block
