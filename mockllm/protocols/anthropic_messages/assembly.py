"""Assembly of the content blocks of a stream: block events to events of parts.

Anthropic numbers blocks from 0 without gaps, but a block's `index` is only a key here: oMLX and
converters leave gaps, change the order, or number all blocks 0 (`anth-index-gap`,
`anth-index-all-zero`). The frames of blocks without a neutral part are kept as `Raw`.
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

__all__ = ["KINDS", "Assembly", "is_placeholder"]

KINDS = frozenset({"text", "thinking", "tool_use"})
"""The types of blocks that are neutral parts; all others are kept as frames."""

_DELTAS = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("thinking", "signature"),
    "input_json_delta": ("tool_use", "partial_json"),
    "citations_delta": ("text", "citation"),
}
"""By the type of a delta: the type of its block, and the field with the fragment."""
_OPENING = ("text", "thinking")
"""Fields whose deltas open their block if its start is missing."""

_Value = Mapping[str, Any]


@dataclass(slots=True)
class _Block:
    """One content block while its deltas arrive.

    `input` is the input in the start of a call. Converters put it there instead of in deltas, or
    in both (`anth-input-in-start`), so it counts only if the deltas are empty.
    """

    kind: str
    key: int
    input: str = ""
    deltas: int = 0
    has_content: bool = False
    closed: bool = False
    citations: list[ev.Cite] = field(default_factory=list)

    def close(self) -> list[ev.Event]:
        """The events that end the block, once."""
        if self.closed or self.kind not in KINDS:
            return []
        self.closed = True
        return [*self._missing_content(), *self.citations, ev.PartEnd(self.key)]

    def _missing_content(self) -> list[ev.Event]:
        if self.has_content:
            return []
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
        """Keeps a citation until the block ends, because citations follow the text.

        False if it is of a kind without URL, or comes after the end of the block.
        """
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

    def raw(self, frame: Frame) -> ev.Raw:
        """The event that keeps a frame."""
        return ev.Raw(self._new_key(), API, frame)

    def flush(self) -> list[ev.Event]:
        """The events that close all blocks."""
        return [event for block in self._blocks.values() for event in block.close()]

    def start(self, value: _Value, frame: Frame) -> list[ev.Event]:
        """`content_block_start`, with the content that the start has already."""
        block = mapping(value.get("content_block"))
        kind = string(block.get("type"))
        self._last = _index(value, max(self._blocks, default=-1) + 1)
        # A start always opens another block: converters give every block index 0.
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
