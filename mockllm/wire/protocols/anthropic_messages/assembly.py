"""Assembly of the content blocks of a stream: block events to events of parts.

Anthropic numbers blocks from 0 without gaps, but a block's `index` is only a key here: oMLX and
converters leave gaps, change the order, or number all blocks 0 (`anth-index-gap`,
`anth-index-all-zero`). A block that only this API has is a native part once it is complete; the
frames of all other blocks without a neutral part are kept as `Raw`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from mockllm.core import events as ev
from mockllm.core.events import Frame
from mockllm.wire.protocols.anthropic_messages import API, server_tools
from mockllm.wire.protocols.anthropic_messages.blocks import read_citation
from mockllm.wire.protocols.anthropic_messages.native import NATIVE, streamed_fields
from mockllm.wire.protocols.base import dumps
from mockllm.wire.protocols.native import native_event
from mockllm.wire.protocols.records import Fields, Json
from mockllm.wire.protocols.values import array, mapping, string

_KINDS = frozenset({"text", "thinking", "tool_use"}) | server_tools.USES


def is_neutral(type: str) -> bool:
    """Whether blocks of this type are neutral parts; all others are kept as frames."""
    return type in _KINDS or server_tools.is_result(type)


DELTAS = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("thinking", "signature"),
    "input_json_delta": ("tool_use", "partial_json"),
    "citations_delta": ("text", "citation"),
}
"""By the type of a delta: the type of its block, and the field with the fragment."""
_OPENING = ("text", "thinking")
"""Fields whose deltas open their block if its start is missing."""


@dataclass(slots=True)
class _Block:
    """One content block while its deltas arrive. `kind` is `text`, `thinking`, `tool_use` (also for
    tools of the service, whose calls have a `server_id`), or "" for a block that is kept as frames.
    `input` is the input in the start of a call. Converters put it there instead of in deltas, or in
    both (`anth-input-in-start`), so it counts only if the deltas are empty. `native` is a block
    that may be a native part, and `frames` are those that it came in."""

    kind: str
    key: int
    server_id: str | None = None
    input: str = ""
    deltas: int = 0
    has_content: bool = False
    closed: bool = False
    native: Json | None = None
    frames: list[Frame] = field(default_factory=list)
    citations: list[ev.Cite] = field(default_factory=list)

    def close(self) -> list[ev.Event]:
        """The events that end the block, once."""
        if self.closed or not self.kind:
            return []
        self.closed = True
        return [*self.content(), *self.citations, ev.PartEnd(self.key)]

    def add_native(self, delta: Fields, frame: Frame) -> bool:
        """Adds a delta to a block that may be a native part; false if it does not belong there."""
        if self.native is None:
            return False
        fields = streamed_fields(string(self.native.get("type")), delta)
        if fields is None:
            return False
        self.native |= fields
        self.frames.append(frame)
        return True

    def content(self) -> list[ev.Event]:
        """The content that no delta brought, once."""
        if self.has_content:
            return []
        self.has_content = True
        if self.kind == "text":
            return [ev.TextDelta(self.key, "")]
        if self.kind == "thinking":
            return [ev.ReasoningDelta(self.key, "")]
        return [ev.ToolArgs(self.key, self.input)] if self.input else []

    def text(self, text: str) -> list[ev.Event]:
        self.has_content = True
        event = ev.TextDelta if self.kind == "text" else ev.ReasoningDelta
        return [event(self.key, text)]

    def signature(self, signature: str) -> list[ev.Event]:
        if not signature:
            return []
        self.has_content = True
        return [ev.Signature(self.key, signature)]

    def arguments(self, text: str) -> list[ev.Event]:
        if not text and self.deltas == 1:
            return []  # Anthropic sends an empty fragment at the start of every call
        self.has_content = self.has_content or bool(text)
        return [ev.ToolArgs(self.key, text)]

    def cite(self, value: object) -> bool:
        """Keeps a citation until the block ends; false if it comes after that, or is none."""
        cite = read_citation(self.key, value)
        if cite is None or self.closed:
            return False
        self.citations.append(cite)
        return True


_ADDERS: dict[str, Callable[[_Block, str], list[ev.Event]]] = {
    "text": _Block.text,
    "thinking": _Block.text,
    "signature": _Block.signature,
    "partial_json": _Block.arguments,
}


def is_placeholder(value: object) -> bool:
    """Whether a block of a message is an empty text or an empty thinking: proxies put one into
    `message_start` and open the block later."""
    block = mapping(value)
    empty = not (block.get("text") or block.get("thinking") or block.get("signature"))
    return empty and block.get("type") in ("text", "thinking")


class Assembly:
    """The blocks of one stream. The keys of parts count up in order of appearance."""

    def __init__(self) -> None:
        self._blocks: dict[int, _Block] = {}
        self._last = 0
        self._key = -1
        self._server: _Block | None = None

    def raw(self, frame: Frame) -> ev.Raw:
        """The event that keeps a frame."""
        return ev.Raw(self._new_key(), API, frame)

    def flush(self) -> list[ev.Event]:
        """The events that close all blocks."""
        blocks = self._blocks.values()
        return [event for block in blocks for event in (*block.close(), *self._kept(block))]

    def _kept(self, block: _Block) -> list[ev.Event]:
        """The frames of a block that is no native part, or not complete, once."""
        frames, block.native, block.frames = block.frames, None, []
        keys = [block.key, *(self._new_key() for _ in frames[1:])]
        return [ev.Raw(key, API, frame) for key, frame in zip(keys, frames, strict=False)]

    def start(self, value: Fields, frame: Frame) -> list[ev.Event]:
        """`content_block_start`, with the content that the start has already."""
        block = mapping(value.get("content_block"))
        kind = string(block.get("type"))
        self._last = _index(value, max(self._blocks, default=-1) + 1)
        # A start always opens another block: converters give every block index 0.
        replaced = self._blocks.pop(self._last, None)
        out = replaced.close() if replaced and replaced is not self._server else []
        out += self._kept(replaced) if replaced else []
        if server_tools.is_result(kind):
            self._blocks[self._last] = _Block("", -1, closed=True)
            return [*out, *self._result(block)]
        out += self._end_server()
        if kind in NATIVE:
            native = _Block("", self._new_key(), native=dict(block), frames=[frame])
            self._blocks[self._last] = native
            return out
        if not is_neutral(kind):
            self._blocks[self._last] = _Block("", -1)
            return [*out, self.raw(frame)]
        opened = self._blocks[self._last] = _Block(
            "tool_use" if kind in server_tools.USES else kind, self._new_key()
        )
        if kind in server_tools.USES:
            opened.server_id = string(block.get("id"))
            self._server = opened
        return [*out, *_OPENERS[kind](opened, block)]

    def _result(self, block: Fields) -> list[ev.Event]:
        """The result of the call directly before it, or else a part of its own."""
        id, called = string(block.get("tool_use_id")), self._server
        kind, output = server_tools.read_result(block)
        if called is not None and (called.server_id, called.key) == (id, self._key):
            self._server = None
            *content, end = called.close()
            return [*content, ev.ServerToolResult(called.key, output), end]
        ended = self._end_server()
        key = self._new_key()
        opened = ev.ServerToolStart(key, id, kind, string(block.get("type")))
        return [*ended, opened, ev.ServerToolResult(key, output), ev.PartEnd(key)]

    def _end_server(self) -> list[ev.Event]:
        called, self._server = self._server, None
        return [] if called is None else called.close()

    def delta(self, value: Fields, frame: Frame) -> list[ev.Event]:
        """`content_block_delta`."""
        delta = mapping(value.get("delta"))
        kind, name = DELTAS.get(string(delta.get("type")), ("", ""))
        index = _index(value, self._last)
        if index not in self._blocks and name in _OPENING:
            self._blocks[index] = _Block(kind, self._new_key())
        block = self._blocks.get(index)
        added = delta.get(name)
        if block is not None and block.add_native(delta, frame):
            return []
        if block is None or not kind or block.kind != kind:
            kept = [] if block is None else self._kept(block)
            return [*kept, self.raw(frame)]
        if added is None:
            return []
        if name == "citation":
            return [] if block.cite(added) else [self.raw(frame)]
        block.deltas += 1
        return _ADDERS[name](block, added) if isinstance(added, str) else [self.raw(frame)]

    def stop(self, value: Fields, frame: Frame) -> list[ev.Event]:
        """`content_block_stop`."""
        index = _index(value, self._last)
        block = self._blocks.get(index)
        if block is None:
            return []
        if block is self._server:
            return block.content()
        if block.native is not None:
            native = native_event(block.key, API, block.native, NATIVE)
            if native is None:
                return [*self._kept(block), self.raw(frame)]
            block.native, block.frames, block.closed = None, [], True
            return [native]
        if not block.kind:
            return [] if block.closed else [self.raw(frame)]
        return block.close()

    def _new_key(self) -> int:
        self._key += 1
        return self._key


def _index(value: Fields, default: int) -> int:
    index = value.get("index")
    return index if isinstance(index, int) else default


def _open_text(opened: _Block, block: Fields) -> list[ev.Event]:
    for cite in array(block.get("citations")):
        opened.cite(cite)
    text = string(block.get("text"))
    return opened.text(text) if text else []


def _open_thinking(opened: _Block, block: Fields) -> list[ev.Event]:
    text = string(block.get("thinking"))
    out = opened.text(text) if text else []
    return [*out, *opened.signature(string(block.get("signature")))]


def _open_call(opened: _Block, block: Fields) -> list[ev.Event]:
    input = block.get("input")
    opened.input = input if isinstance(input, str) else dumps(input) if input else ""
    return [ev.ToolStart(opened.key, string(block.get("id")), string(block.get("name")))]


def _open_server_call(opened: _Block, block: Fields) -> list[ev.Event]:
    _open_call(opened, block)
    kind, name = server_tools.read_call(block)
    return [ev.ServerToolStart(opened.key, string(block.get("id")), kind, name)]


_OPENERS: dict[str, Callable[[_Block, Fields], list[ev.Event]]] = {
    "text": _open_text,
    "thinking": _open_thinking,
    "tool_use": _open_call,
    **dict.fromkeys(server_tools.USES, _open_server_call),
}
