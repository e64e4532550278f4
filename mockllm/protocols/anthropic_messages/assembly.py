"""The content blocks of a stream as they come in: from block events to events of parts.

A block's `index` is only a key: it may have gaps, come out of order, or be the same for every
block. Blocks of other kinds than the neutral parts are kept frame by frame.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mockllm.core import events as ev
from mockllm.core.frame import Frame
from mockllm.protocols.anthropic_messages.blocks import API
from mockllm.protocols.base import dumps
from mockllm.protocols.values import mapping, string

__all__ = ["KINDS", "Assembly"]

KINDS = frozenset({"text", "thinking", "tool_use"})
"""The types of blocks that are neutral parts; all others are kept as frames."""

_DELTAS = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("thinking", "signature"),
    "input_json_delta": ("tool_use", "partial_json"),
    "citations_delta": ("text", "citation"),
}
"""The type of block that a delta belongs to, and the field with what it adds."""
_OPENING = ("text", "thinking")
"""Fields that make their block by themselves, where its start was lost."""

_Value = Mapping[str, Any]


@dataclass(slots=True)
class _Block:
    """One content block as its deltas come in.

    `input` is what came with the start of a call; it counts if no delta says anything.
    """

    kind: str
    key: int
    input: str = ""
    deltas: int = 0
    said: bool = False
    closed: bool = False
    citations: list[ev.Cite] = field(default_factory=list)

    def close(self) -> list[ev.Event]:
        """What is left to say at the end of the block."""
        if self.closed or self.kind not in KINDS:
            return []
        self.closed = True
        return [*self._unsaid(), *self.citations, ev.PartEnd(self.key)]

    def _unsaid(self) -> list[ev.Event]:
        if self.said:
            return []
        if self.kind == "text":
            return [ev.TextDelta(self.key, "")]
        if self.kind == "thinking":
            return [ev.ReasoningDelta(self.key, "")]
        return [ev.ToolArgs(self.key, self.input)] if self.input else []

    def text(self, text: str) -> list[ev.Event]:
        self.said = True
        event = ev.TextDelta if self.kind == "text" else ev.ReasoningDelta
        return [event(self.key, text)]

    def signature(self, signature: str) -> list[ev.Event]:
        if not signature:
            return []
        self.said = True
        return [ev.Signature(self.key, signature)]

    def arguments(self, text: str) -> list[ev.Event]:
        if not text and self.deltas == 1:
            return []  # the empty fragment with which every call begins
        self.said = self.said or bool(text)
        return [ev.ToolArgs(self.key, text)]

    def cite(self, value: object) -> bool:
        """Keeps a citation until the block ends, when there is text to cite for; False if it
        is of a kind that has no URL, or too late."""
        cite = mapping(value)
        if cite.get("type") != "web_search_result_location" or self.closed:
            return False
        url, title, cited = (string(cite.get(name)) for name in ("url", "title", "cited_text"))
        self.citations.append(ev.Cite(self.key, url, title, cited))
        return True


_ADDERS: dict[str, Callable[[_Block, str], list[ev.Event]]] = {
    "text": _Block.text,
    "thinking": _Block.text,
    "signature": _Block.signature,
    "partial_json": _Block.arguments,
}


class Assembly:
    """All blocks of one stream. Parts have keys in order of their appearance."""

    def __init__(self) -> None:
        self._blocks: dict[int, _Block] = {}
        self._last = 0
        self._key = -1

    def raw(self, frame: Frame) -> ev.Raw:
        """A frame that is kept as it is."""
        return ev.Raw(self._new_key(), API, frame)

    def flush(self) -> list[ev.Event]:
        """The events that close all blocks."""
        return [event for block in self._blocks.values() for event in block.close()]

    def start(self, value: _Value, frame: Frame) -> list[ev.Event]:
        """`content_block_start`; what came whole with it is said at once."""
        block = mapping(value.get("content_block"))
        kind = string(block.get("type"))
        self._last = _index(value, max(self._blocks, default=-1) + 1)
        # A block that was there is another one: some servers give every block the index 0.
        replaced = self._blocks.pop(self._last, None)
        out = replaced.close() if replaced else []
        if kind not in KINDS:
            self._blocks[self._last] = _Block("", -1)
            return [*out, self.raw(frame)]
        opened = self._blocks[self._last] = _Block(kind, self._new_key())
        return [*out, *_OPENERS[kind](opened, block)]

    def delta(self, value: _Value, frame: Frame) -> list[ev.Event]:
        """`content_block_delta`."""
        delta = mapping(value.get("delta"))
        kind, name = _DELTAS.get(string(delta.get("type")), ("", ""))
        index = _index(value, self._last)
        if index not in self._blocks and name in _OPENING:
            self._blocks[index] = _Block(kind, self._new_key())
        block = self._blocks.get(index)
        added = delta.get(name)
        if block is None or not kind or block.kind != kind:
            return [self.raw(frame)]
        if added is None:
            return []
        if name == "citation":
            return [] if block.cite(added) else [self.raw(frame)]
        block.deltas += 1
        return _ADDERS[name](block, added) if isinstance(added, str) else [self.raw(frame)]

    def stop(self, value: _Value, frame: Frame) -> list[ev.Event]:
        """`content_block_stop`."""
        index = _index(value, self._last)
        block = self._blocks.get(index)
        if block is None:
            return []
        return block.close() if block.kind in KINDS else [self.raw(frame)]

    def _new_key(self) -> int:
        self._key += 1
        return self._key


def _index(value: _Value, default: int) -> int:
    index = value.get("index")
    return index if isinstance(index, int) else default


def _open_text(opened: _Block, block: _Value) -> list[ev.Event]:
    cites = block.get("citations")
    for cite in cites if isinstance(cites, list) else ():
        opened.cite(cite)
    text = string(block.get("text"))
    return opened.text(text) if text else []


def _open_thinking(opened: _Block, block: _Value) -> list[ev.Event]:
    text = string(block.get("thinking"))
    out = opened.text(text) if text else []
    return [*out, *opened.signature(string(block.get("signature")))]


def _open_call(opened: _Block, block: _Value) -> list[ev.Event]:
    input = block.get("input")
    opened.input = input if isinstance(input, str) else dumps(input) if input else ""
    return [ev.ToolStart(opened.key, string(block.get("id")), string(block.get("name")))]


_OPENERS: dict[str, Callable[[_Block, _Value], list[ev.Event]]] = {
    "text": _open_text,
    "thinking": _open_thinking,
    "tool_use": _open_call,
}
