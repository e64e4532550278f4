"""Reads streams of Converse, from Bedrock and from compatible servers.

https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStreamOutput.html

A block of text or reasoning has no start: its first delta opens it. Events and blocks without a
neutral form (redacted reasoning, images in S3, unknown members) are kept as `Raw`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from mockllm.core import events as ev
from mockllm.core.events import Frame
from mockllm.core.timeline import fold
from mockllm.core.turn import Turn
from mockllm.wire.protocols.base import dumps, no_body
from mockllm.wire.protocols.bedrock_converse import API, blocks, images
from mockllm.wire.protocols.bedrock_converse.errors import decode_error
from mockllm.wire.protocols.bedrock_converse.union import ERROR, is_error
from mockllm.wire.protocols.records import Fields, Json
from mockllm.wire.protocols.values import array, json_object, mapping, objects, string


@dataclass(slots=True)
class _Block:
    """One block while its deltas arrive. `kind` is `text`, `reasoning`, `call`, `image`, or ""
    for a block that is kept as frames. Signature and citations wait for its end."""

    kind: str
    key: int = -1
    media_type: str = ""
    has_content: bool = False
    signature: str = ""
    citations: list[ev.Cite] = field(default_factory=list)

    def close(self) -> list[ev.Event]:
        """The events that end the block."""
        if not self.kind:
            return []
        out: list[ev.Event] = list(self.citations)
        if self.citations and not self.has_content:
            out.insert(0, ev.TextDelta(self.key, ""))
        if self.signature:
            out.append(ev.Signature(self.key, self.signature))
        return [*out, ev.PartEnd(self.key)]


class Decoder:
    """Turns the frames of one Converse stream into events. `complete` is true after `messageStop`
    or an error; only the usage may follow."""

    def __init__(self) -> None:
        self.complete = False
        self._failed = False
        self._blocks: dict[int, _Block] = {}
        self._last = 0
        self._keys: set[int] = set()
        self._server_calls: dict[str, int] = {}

    def decode(self, frame: Frame) -> list[ev.Event]:
        """The events of a frame. One that names no member, or whose payload is broken, is kept."""
        value = json_object(frame.data) or {}
        name, member = next(iter(value.items())) if len(value) == 1 else ("", None)
        if frame.data is None or self._failed or (self.complete and name != "metadata"):
            return []
        return list(self._events(name, mapping(member), frame))

    def close(self) -> list[ev.Event]:
        """The ends of blocks that are still open when the stream ends."""
        ended = [event for block in self._blocks.values() for event in block.close()]
        self._blocks.clear()
        return ended

    def _events(self, name: str, value: Fields, frame: Frame) -> Iterator[ev.Event]:
        if is_error(name):
            self.complete = self._failed = True
            yield from self.close()
            code = string(value.get("code")) if name == ERROR else name
            message = string(value.get("message")) or string(value.get("Message"))
            yield ev.StreamError(message or "the stream reports an error", code)
            return
        handle = _HANDLERS.get(name)
        yield from handle(self, value, frame) if handle else [self._raw(frame)]

    def _raw(self, frame: Frame) -> ev.Raw:
        return ev.Raw(self._new_key(self._last), API, frame)

    def _new_key(self, index: int) -> int:
        """The key of a new part. The index of a block is its position in the message; several parts
        may have one index."""
        key = index * _PARTS
        while key in self._keys:
            key += 1
        self._keys.add(key)
        return key

    def _index(self, value: Fields) -> int:
        index = value.get("contentBlockIndex")
        self._last = index if isinstance(index, int) else self._last
        return self._last

    def message_start(self, _value: Fields, _frame: Frame) -> Iterator[ev.Event]:
        """The events of `messageStart`."""
        yield ev.Start()

    def block_start(self, value: Fields, frame: Frame) -> Iterator[ev.Event]:
        """The events of `contentBlockStart`."""
        index, start = self._index(value), mapping(value.get("start"))
        yield from self._close_block(index)
        use, result = mapping(start.get("toolUse")), mapping(start.get("toolResult"))
        id = string(use.get("toolUseId"))
        if use.get("type") == blocks.SERVER_USE:
            block = self._blocks[index] = _Block("call", self._new_key(index))
            self._server_calls[id] = block.key
            yield ev.ServerToolStart(block.key, id, *blocks.read_server_tool(string(use["name"])))
        elif use:
            block = self._blocks[index] = _Block("call", self._new_key(index))
            yield ev.ToolStart(block.key, id, string(use.get("name")))
        elif string(result.get("toolUseId")) in self._server_calls:
            key = self._server_calls[string(result.get("toolUseId"))]
            self._blocks[index] = _Block("result", key)
        elif format := images.read_format(start):
            block = self._blocks[index] = _Block("image", self._new_key(index))
            block.media_type = f"image/{format}"
        elif start:
            self._blocks[index] = _Block("")
            yield self._raw(frame)

    def block_delta(self, value: Fields, frame: Frame) -> Iterator[ev.Event]:
        """The events of `contentBlockDelta`."""
        index, delta = self._index(value), mapping(value.get("delta"))
        reasoning = mapping(delta.get("reasoningContent"))
        kind = _kind(delta, reasoning)
        block = self._blocks.get(index)
        if block is not None and not block.kind:
            yield self._raw(frame)
            return
        if kind in _OPENING and (block is None or block.kind != kind):
            yield from self._close_block(index)
            block = self._blocks[index] = _Block(kind, self._new_key(index))
        elif block is None or kind != block.kind:
            self._blocks[index] = _Block("")
            yield self._raw(frame)
            return
        yield from _delta_events(block, delta, reasoning)

    def block_stop(self, value: Fields, frame: Frame) -> Iterator[ev.Event]:
        """The events of `contentBlockStop`."""
        index = self._index(value)
        block = self._blocks.get(index)
        if block is not None and not block.kind:
            yield self._raw(frame)
        yield from self._close_block(index)

    def _close_block(self, index: int) -> list[ev.Event]:
        block = self._blocks.pop(index, None)
        return [] if block is None else block.close()

    def message_stop(self, value: Fields, _frame: Frame) -> Iterator[ev.Event]:
        """The events of `messageStop`."""
        self.complete = True
        yield from self.close()
        yield blocks.STOPS.read(string(value.get("stopReason")))

    def metadata(self, value: Fields, _frame: Frame) -> Iterator[ev.Event]:
        """The events of `metadata`."""
        usage = mapping(value.get("usage"))
        if usage:  # a second `metadata` may have metrics only
            yield blocks.read_usage(usage)


_PARTS = 1 << 16
"""More than the parts of one index."""

_OPENING = ("text", "reasoning")
"""The kinds of blocks without a start."""


def _kind(delta: Fields, reasoning: Fields) -> str:
    """The kind of block that a delta belongs to; "" for one without a neutral form."""
    if "text" in delta or "citation" in delta:
        return "text"
    if "text" in reasoning or "signature" in reasoning:
        return "reasoning"
    if images.read_bytes(delta) is not None:
        return "image"
    return "call" if "toolUse" in delta else "result" if "toolResult" in delta else ""


def _delta_events(block: _Block, delta: Fields, reasoning: Fields) -> Iterator[ev.Event]:
    """The events of a delta of an open block."""
    if block.kind == "call":
        yield ev.ToolArgs(block.key, string(mapping(delta["toolUse"]).get("input")))
    elif block.kind == "result":
        yield ev.ServerToolResult(block.key, dumps(delta["toolResult"]))
    elif block.kind == "image":
        if data := images.read_bytes(delta):
            yield ev.MediaDelta(block.key, block.media_type, data)
    elif "citation" in delta:
        block.citations.append(blocks.read_citation(block.key, mapping(delta["citation"])))
    elif "text" in delta:
        block.has_content = True
        yield ev.TextDelta(block.key, string(delta["text"]))
    elif "text" in reasoning:
        yield ev.ReasoningDelta(block.key, string(reasoning["text"]))
    block.signature += string(reasoning.get("signature"))


_HANDLERS: dict[str, Callable[[Decoder, Fields, Frame], Iterator[ev.Event]]] = {
    "messageStart": Decoder.message_start,
    "contentBlockStart": Decoder.block_start,
    "contentBlockDelta": Decoder.block_delta,
    "contentBlockStop": Decoder.block_stop,
    "messageStop": Decoder.message_stop,
    "metadata": Decoder.metadata,
}


# Bodies


def decode_body(body: Fields) -> Turn:
    """The turn of a body, or of an error body; raises `WireError` if it is neither."""
    message = mapping(mapping(body.get("output")).get("message"))
    error = decode_error(body)
    if error is not None:
        return Turn(error=error)
    if not isinstance(message.get("content"), list):
        raise no_body("a Converse body", "`output.message.content` (an array) or `message`", body)
    decoder = Decoder()
    frames = [Frame(dumps(value)) for value in _stream_values(body, message["content"])]
    events = [event for frame in frames for event in decoder.decode(frame)]
    return fold(ev.Timed(0, event) for event in [*events, *decoder.close()])


def _stream_values(body: Fields, content: list[Any]) -> Iterator[Json]:
    yield {"messageStart": {"role": "assistant"}}
    for index, block in enumerate(objects(content)):
        start, deltas = unrolled_block(block)
        at = {"contentBlockIndex": index}
        if start:
            yield {"contentBlockStart": {**at, "start": start}}
        for delta in deltas:
            yield {"contentBlockDelta": {**at, "delta": delta}}
        yield {"contentBlockStop": at}
    if body.get("stopReason") is not None:
        yield {"messageStop": {"stopReason": body["stopReason"]}}
    yield {"metadata": {"usage": body.get("usage")}}


def unrolled_block(block: Fields) -> tuple[Json, list[Json]]:
    """The start and the deltas of a block of a body; {} for one without a start."""
    ((name, value), *_) = block.items() or [("", None)]
    fields = mapping(value)
    if name == "toolUse":
        input = fields.get("input")
        text = input if isinstance(input, str) else dumps(input) if input else ""
        start = {key: fields[key] for key in ("name", "toolUseId", "type") if key in fields}
        return {name: start}, [{name: {"input": text}}]
    if name == "toolResult":
        start = {key: fields[key] for key in ("status", "toolUseId", "type") if key in fields}
        return {name: start}, [{name: fields.get("content")}]
    if name == "reasoningContent":
        whole = mapping(fields.get("reasoningText"))
        if not whole:
            return {}, [{name: value}]
        signed = [{name: {"signature": whole["signature"]}}] if whole.get("signature") else []
        # Hidden reasoning has a signature alone.
        text = whole.get("text") or ""
        return {}, [*([{name: {"text": text}}] if text or not signed else []), *signed]
    if name == "citationsContent":
        texts = [{"text": string(inner.get("text"))} for inner in objects(fields.get("content"))]
        return {}, [*texts, *({"citation": cite} for cite in array(fields.get("citations")))]
    format = {key: fields[key] for key in fields if key == "format"}
    rest = {key: fields[key] for key in fields if key != "format"}
    if images.read_format({name: format}) and images.read_bytes({name: rest}) is not None:
        return {name: format}, [{name: rest}]
    return ({} if name == "text" else {name: value}), ([dict(block)] if name == "text" else [])
