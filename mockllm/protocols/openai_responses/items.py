"""One item of a Responses stream as it comes in, and what events add to it.

Parts get keys that sort as the finished output does. Nothing here knows what events are
called, or which item they belong to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from mockllm.core import events as ev
from mockllm.protocols.base import dumps
from mockllm.protocols.values import mapping, string

__all__ = [
    "ITEM",
    "KINDS",
    "PARTS",
    "SHAPES",
    "Item",
    "Shape",
    "Slot",
    "add",
    "arguments_of",
    "settle",
    "settle_part",
    "whole_number",
]

KINDS = frozenset({"message", "reasoning", "function_call"})
"""The items that the neutral vocabulary can say; others are kept as frames."""

ITEM = 1 << 64
"""How far apart the keys of two items are."""

_CONTENT = 1 << 56  # of an item: summaries first, then contents
_PART = 1 << 32  # between two parts; frames kept as they are take the room in between


@dataclass(frozen=True, slots=True)
class Shape:
    """How one kind of text is written: in which kind of item, under which names."""

    item: str
    kind: str
    index: str
    value: str


_OUTPUT_TEXT = Shape("message", "text", "content_index", "text")
_REFUSAL = Shape("message", "refusal", "content_index", "refusal")
_REASONING = Shape("reasoning", "reasoning", "content_index", "text")
_SUMMARY = Shape("reasoning", "summary", "summary_index", "text")
_ARGUMENTS = Shape("function_call", "arguments", "", "arguments")

SHAPES = {
    "output_text": _OUTPUT_TEXT,
    "refusal": _REFUSAL,
    "reasoning_text": _REASONING,
    "reasoning_summary_text": _SUMMARY,
    "function_call_arguments": _ARGUMENTS,
}
"""By the word that delta and done events have in their type."""

PARTS = {
    "output_text": _OUTPUT_TEXT,
    "text": _OUTPUT_TEXT,
    "refusal": _REFUSAL,
    "reasoning_text": _REASONING,
    "summary_text": _SUMMARY,
}
"""By the `type` of contents and summaries."""


@dataclass(slots=True)
class Slot:
    """One part of the answer as it comes in; `settled` once its whole value has come."""

    key: int
    kind: str
    pieces: list[str] = field(default_factory=list)
    settled: bool = False
    annotations: list[Any] = field(default_factory=list)
    cited: int = 0

    @property
    def text(self) -> str:
        return "".join(self.pieces)


@dataclass(slots=True)
class Item:
    """One output item as it comes in; `wire_index` is the `output_index` it goes by."""

    base: int
    kind: str
    wire_index: int | None
    id: str = ""
    call_id: str = ""
    name: str = ""
    early_arguments: str = ""
    added: bool = False
    announced: bool = False
    closed: bool = False
    slots: dict[tuple[str, int], Slot] = field(default_factory=dict)

    @property
    def last_key(self) -> int:
        return max((slot.key for slot in self.slots.values()), default=self.base)

    def slot(self, shape: Shape, index: object = 0) -> Slot:
        """The part of this shape at this content or summary index, made if need be."""
        place = shape.kind, whole_number(index) or 0
        if place not in self.slots:
            key = self.base + place[1] * _PART
            if shape.kind in ("text", "refusal", "reasoning"):
                key += _CONTENT
            if any(slot.key == key for slot in self.slots.values()):
                key = self.last_key + _PART  # two kinds of content under one index
            self.slots[place] = Slot(key, shape.kind)
        return self.slots[place]

    def identify(self, shown: Mapping[str, Any]) -> None:
        """Fills in what is not known yet; the first id and name of a call are the call's."""
        self.id = self.id or string(shown.get("id"))
        self.call_id = self.call_id or string(shown.get("call_id"))
        self.name = self.name or string(shown.get("name"))

    def announce(self) -> Iterator[ev.Event]:
        """Opens the call, once, and says the arguments that came before its name was known."""
        if self.kind == "function_call" and not self.announced:
            self.announced = True
            yield ev.ToolStart(self.base, self.call_id or self.id, self.name)
            yield from [ev.ToolArgs(self.base, piece) for piece in self.slot(_ARGUMENTS).pieces]

    def complete(self, shown: Mapping[str, Any]) -> Iterator[ev.Event]:
        """All that the finished item tells beyond what has come."""
        if self.closed:
            return
        self.identify(shown)
        yield from self.announce()
        if self.kind == "function_call":
            yield from settle(self, self.slot(_ARGUMENTS), arguments_of(shown))
        for name, fallback in (("summary", _SUMMARY), ("content", None)):
            contents = shown.get(name)
            for k, part in enumerate(contents if isinstance(contents, list) else ()):
                shape = PARTS.get(string(mapping(part).get("type")), fallback)
                if shape is not None and shape.item == self.kind:
                    yield from settle_part(self, self.slot(shape, k), mapping(part), shape)
        if self.kind == "reasoning":
            yield from self._proof(string(shown.get("encrypted_content")))
        yield from self.finish()

    def _proof(self, encrypted: str) -> Iterator[ev.Event]:
        """The signature of a reasoning item, or a sign that it was there without any words."""
        if encrypted:
            yield ev.Signature(self.last_key, encrypted)
        elif not self.slots:
            yield ev.ReasoningDelta(self.base, "")

    def finish(self) -> Iterator[ev.Event]:
        """Closes the item with what is known of it."""
        if self.closed:
            return
        yield from self.announce()
        if self.kind == "function_call":
            slot = self.slot(_ARGUMENTS)
            if not slot.text and self.early_arguments:
                yield from add(self, slot, self.early_arguments)
        self.closed = True
        for slot in self.slots.values():
            yield from _cites(slot, slot.annotations)
            yield ev.PartEnd(slot.key)


def add(item: Item, slot: Slot, text: str, logprobs: bool = False) -> Iterator[ev.Event]:
    """One more fragment of a part."""
    slot.pieces.append(text)
    match slot.kind:
        case "text":
            yield ev.TextDelta(slot.key, text, logprobs)
        case "refusal":
            yield ev.RefusalDelta(slot.key, text)
        case "arguments":
            if item.announced:
                yield ev.ToolArgs(slot.key, text)
        case kind:
            yield ev.ReasoningDelta(slot.key, text, kind == "summary")


def settle(item: Item, slot: Slot, whole: object, logprobs: bool = False) -> Iterator[ev.Event]:
    """Adds what the whole value has beyond the fragments that came.

    Nothing that was sent can be taken back: where the value contradicts its fragments, they
    stay as they are.
    """
    if not isinstance(whole, str) or item.closed:
        return
    slot.settled = True
    so_far = slot.text
    missing = whole.startswith(so_far) and (whole != so_far or not slot.pieces)
    if missing and (whole or slot.kind != "arguments"):
        yield from add(item, slot, whole[len(so_far) :], logprobs)


def settle_part(
    item: Item, slot: Slot, part: Mapping[str, Any], shape: Shape
) -> Iterator[ev.Event]:
    """Adds what a finished content or summary has beyond what came of it."""
    yield from settle(item, slot, part.get(shape.value), bool(part.get("logprobs")))
    told = part.get("annotations")
    yield from _cites(slot, told if isinstance(told, list) and told else slot.annotations)


def _cites(slot: Slot, annotations: list[Any]) -> Iterator[ev.Event]:
    """The citations not said yet; their words are known only once the text is whole."""
    cites = [a for a in map(mapping, annotations) if a.get("type") == "url_citation"]
    if slot.kind != "text" or len(cites) <= slot.cited:
        return
    text = slot.text
    for cite in cites[slot.cited :]:
        start, end = (whole_number(cite.get(f"{edge}_index")) or 0 for edge in ("start", "end"))
        words = text[start:end]
        yield ev.Cite(slot.key, string(cite.get("url")), string(cite.get("title")), words)
    slot.cited = len(cites)


def arguments_of(shown: Mapping[str, Any]) -> str:
    """Arguments as JSON text; some servers send them parsed."""
    arguments = shown.get("arguments")
    return dumps(arguments) if isinstance(arguments, Mapping) else string(arguments)


def whole_number(value: object) -> int | None:
    """The value if it can be an index or a count, else None."""
    # Beyond that it is no index, and would run into the keys of other items.
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 20:
        return value
    return None
