"""The output items of a Responses stream while they arrive, and what events add to them.

The keys of parts sort in the order of the finished output. This module knows neither the names of
events (`decoder`) nor which item an event belongs to (`assembly`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from mockllm.core import events as ev
from mockllm.protocols.base import dumps
from mockllm.protocols.values import mapping, string

__all__ = [
    "CONTENT_PARTS",
    "EVENT_PARTS",
    "ITEM",
    "KINDS",
    "IncomingItem",
    "IncomingPart",
    "PartType",
    "add_content",
    "add_fragment",
    "add_rest",
    "arguments_of",
    "whole_number",
]

KINDS = frozenset({"message", "reasoning", "function_call"})
"""The types of items that have neutral parts; others are kept as frames."""

ITEM = 1 << 64
"""The distance between the keys of two items."""

_CONTENT = 1 << 56  # of an item: summaries first, then contents
_PART = 1 << 32  # between two parts; the keys of `Raw` frames are in between


@dataclass(frozen=True, slots=True)
class PartType:
    """One kind of part on the wire.

    Args:
        item: the type of its item.
        kind: the kind of text.
        index: the field of events with its index in the item.
        value: the field of `done` events and contents with the whole text.
    """

    item: str
    kind: str
    index: str
    value: str


_OUTPUT_TEXT = PartType("message", "text", "content_index", "text")
_REFUSAL = PartType("message", "refusal", "content_index", "refusal")
_REASONING = PartType("reasoning", "reasoning", "content_index", "text")
_SUMMARY = PartType("reasoning", "summary", "summary_index", "text")
_ARGUMENTS = PartType("function_call", "arguments", "", "arguments")

EVENT_PARTS = {
    "output_text": _OUTPUT_TEXT,
    "refusal": _REFUSAL,
    "reasoning_text": _REASONING,
    "reasoning_summary_text": _SUMMARY,
    "function_call_arguments": _ARGUMENTS,
}
"""By the part of the type that `.delta` and `.done` events share."""

CONTENT_PARTS = {
    "output_text": _OUTPUT_TEXT,
    "text": _OUTPUT_TEXT,
    "refusal": _REFUSAL,
    "reasoning_text": _REASONING,
    "summary_text": _SUMMARY,
}
"""By the `type` of contents and summaries."""


@dataclass(slots=True)
class IncomingPart:
    """One part while it arrives; `done` once its complete value has come."""

    key: int
    kind: str
    fragments: list[str] = field(default_factory=list)
    done: bool = False
    annotations: list[Any] = field(default_factory=list)
    cited: int = 0

    @property
    def text(self) -> str:
        return "".join(self.fragments)


@dataclass(slots=True)
class IncomingItem:
    """One output item while it arrives; `wire_index` is its `output_index`."""

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
    parts: dict[tuple[str, int], IncomingPart] = field(default_factory=dict)

    @property
    def last_key(self) -> int:
        return max((part.key for part in self.parts.values()), default=self.base)

    def part(self, part_type: PartType, index: object = 0) -> IncomingPart:
        """The part of this type at this content or summary index, created if it is new."""
        wire_key = part_type.kind, whole_number(index) or 0
        if wire_key not in self.parts:
            key = self.base + wire_key[1] * _PART
            if part_type.kind in ("text", "refusal", "reasoning"):
                key += _CONTENT
            if any(part.key == key for part in self.parts.values()):
                key = self.last_key + _PART  # two kinds of content under one index
            self.parts[wire_key] = IncomingPart(key, part_type.kind)
        return self.parts[wire_key]

    def identify(self, fields: Mapping[str, Any]) -> None:
        """Sets ids and name that are not known yet; later values do not replace the first."""
        self.id = self.id or string(fields.get("id"))
        self.call_id = self.call_id or string(fields.get("call_id"))
        self.name = self.name or string(fields.get("name"))

    def announce(self) -> Iterator[ev.Event]:
        """The start of the call, once, and the arguments that came before its name was known."""
        if self.kind == "function_call" and not self.announced:
            self.announced = True
            yield ev.ToolStart(self.base, self.call_id or self.id, self.name)
            yield from [
                ev.ToolArgs(self.base, fragment) for fragment in self.part(_ARGUMENTS).fragments
            ]

    def complete(self, fields: Mapping[str, Any]) -> Iterator[ev.Event]:
        """The events of what only the finished item has, and of its end."""
        if self.closed:
            return
        self.identify(fields)
        yield from self.announce()
        if self.kind == "function_call":
            yield from add_rest(self, self.part(_ARGUMENTS), arguments_of(fields))
        for name, fallback in (("summary", _SUMMARY), ("content", None)):
            contents = fields.get(name)
            for k, content in enumerate(contents if isinstance(contents, list) else ()):
                part_type = CONTENT_PARTS.get(string(mapping(content).get("type")), fallback)
                if part_type is not None and part_type.item == self.kind:
                    yield from add_content(
                        self, self.part(part_type, k), mapping(content), part_type
                    )
        if self.kind == "reasoning":
            yield from self._signature(string(fields.get("encrypted_content")))
        yield from self.finish()

    def _signature(self, encrypted: str) -> Iterator[ev.Event]:
        """The signature of a reasoning item; an empty fragment where it has no text either.

        The service sends reasoning items without summary, which must not get lost.
        """
        if encrypted:
            yield ev.Signature(self.last_key, encrypted)
        elif not self.parts:
            yield ev.ReasoningDelta(self.base, "")

    def finish(self) -> Iterator[ev.Event]:
        """Closes the item, once."""
        if self.closed:
            return
        yield from self.announce()
        if self.kind == "function_call":
            part = self.part(_ARGUMENTS)
            if not part.text and self.early_arguments:
                yield from add_fragment(self, part, self.early_arguments)
        self.closed = True
        for part in self.parts.values():
            yield from _cites(part, part.annotations)
            yield ev.PartEnd(part.key)


def add_fragment(
    item: IncomingItem, part: IncomingPart, text: str, logprobs: bool = False
) -> Iterator[ev.Event]:
    """Adds a fragment to a part."""
    part.fragments.append(text)
    match part.kind:
        case "text":
            yield ev.TextDelta(part.key, text, logprobs)
        case "refusal":
            yield ev.RefusalDelta(part.key, text)
        case "arguments":
            if item.announced:
                yield ev.ToolArgs(part.key, text)
        case kind:
            yield ev.ReasoningDelta(part.key, text, kind == "summary")


def add_rest(
    item: IncomingItem, part: IncomingPart, whole: object, logprobs: bool = False
) -> Iterator[ev.Event]:
    """Adds what the whole value has beyond the fragments so far, or replaces them by it.

    An empty value replaces nothing: some servers do not repeat what they streamed.
    """
    if not isinstance(whole, str) or item.closed:
        return
    part.done = True
    so_far = part.text
    if not whole.startswith(so_far):
        if whole:
            yield from _replace(item, part, whole)
        return
    missing = whole != so_far or not part.fragments
    if missing and (whole or part.kind != "arguments"):
        yield from add_fragment(item, part, whole[len(so_far) :], logprobs)


def _replace(item: IncomingItem, part: IncomingPart, whole: str) -> Iterator[ev.Event]:
    part.fragments = [whole]
    if part.kind != "arguments" or item.announced:
        yield ev.Replacement(part.key, whole)


def add_content(
    item: IncomingItem, part: IncomingPart, content: Mapping[str, Any], part_type: PartType
) -> Iterator[ev.Event]:
    """Adds what a finished content or summary has beyond the fragments so far."""
    yield from add_rest(item, part, content.get(part_type.value), bool(content.get("logprobs")))
    annotations = content.get("annotations")
    if not isinstance(annotations, list) or not annotations:
        annotations = part.annotations
    yield from _cites(part, annotations)


def _cites(part: IncomingPart, annotations: list[Any]) -> Iterator[ev.Event]:
    """The new citations of a text; their cited text is cut from the complete text."""
    cites = [a for a in map(mapping, annotations) if a.get("type") == "url_citation"]
    if part.kind != "text" or len(cites) <= part.cited:
        return
    text = part.text
    for cite in cites[part.cited :]:
        start, end = (whole_number(cite.get(f"{edge}_index")) or 0 for edge in ("start", "end"))
        yield ev.Cite(part.key, string(cite.get("url")), string(cite.get("title")), text[start:end])
    part.cited = len(cites)


def arguments_of(fields: Mapping[str, Any]) -> str:
    """Arguments as JSON text; some compatible servers send an object."""
    arguments = fields.get("arguments")
    return dumps(arguments) if isinstance(arguments, Mapping) else string(arguments)


def whole_number(value: object) -> int | None:
    """The value if it can be an index or a count, else None."""
    # Larger numbers would run into the keys of other items.
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 20:
        return value
    return None
