"""The output items of a Responses stream while they arrive, and what events add to them.

The keys of parts sort in the order of the finished output. This module knows neither the names of
events (`decoder`) nor which item an event belongs to (`assembly`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from mockllm.core import events as ev
from mockllm.wire.protocols.base import dumps
from mockllm.wire.protocols.openai_responses.citations import ANNOTATIONS, citation
from mockllm.wire.protocols.openai_responses.item_fields import (
    END,
    begin_code,
    code_text,
    escape_code,
)
from mockllm.wire.protocols.openai_responses.objects import own_id
from mockllm.wire.protocols.openai_responses.parts import (
    CALLS,
    CONTENT_PARTS,
    INPUTS,
    SUMMARY,
    PartType,
)
from mockllm.wire.protocols.openai_responses.server_tools import SERVER_TOOLS
from mockllm.wire.protocols.records import Fields
from mockllm.wire.protocols.values import array, mapping, string

ITEM = 1 << 64
"""The distance between the keys of two items."""

# Indexes are below 1 << 20 (`whole_number`) and frames fewer than 1 << 32: no part's key reaches
# `_CONTENT`, and no content's `ITEM`.
_CONTENT = 1 << 56  # of an item: summaries first, then contents
_PART = 1 << 32  # between two parts; the keys of `Raw` frames are in between


@dataclass(slots=True)
class IncomingPart:
    """One part while it arrives; `done` once its complete value has come."""

    key: int
    kind: str
    fragments: list[str] = field(default_factory=list)
    done: bool = False
    replaced: bool = False
    annotations: list[Any] = field(default_factory=list)
    cited: int = 0

    @property
    def text(self) -> str:
        return "".join(self.fragments)


@dataclass(slots=True)
class IncomingItem:
    """One output item while it arrives; `wire_index` is its `output_index`. `unnumbered` counts the
    parts that began without an index, by the field that would have it."""

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
    opened: dict[str, str] = field(default_factory=dict)
    unnumbered: Counter[str] = field(default_factory=Counter)
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

    def identify(self, fields: Fields) -> None:
        """Sets ids and name that are not known yet; later values do not replace the first."""
        self.id = self.id or string(fields.get("id"))
        self.call_id = self.call_id or string(fields.get("call_id"))
        self.name = self.name or string(fields.get("name"))
        for name in ("name", "server_label"):
            self.opened[name] = self.opened.get(name) or string(fields.get(name))

    def announce(self) -> Iterator[ev.Event]:
        """The start of the call, once, and the input that came before its name was known."""
        if self.kind in ("message", "reasoning") or self.announced:
            return
        self.announced = True
        if self.kind in SERVER_TOOLS:
            tool = SERVER_TOOLS[self.kind]
            id = self.call_id if tool.calls else self.id
            name = tool.read_item(self.opened).name
            yield ev.ServerToolStart(self.base, "" if own_id(id) else id, tool.kind, name)
        else:
            custom = self.kind == "custom_tool_call"
            yield ev.ToolStart(self.base, self.call_id or self.id, self.name, custom)
        part = self.parts.get(("arguments", 0))
        for fragment in part.fragments if part is not None else ():
            yield ev.ToolArgs(self.base, fragment)

    def complete(self, fields: Fields) -> Iterator[ev.Event]:
        """The events of what only the finished item has, and of its end."""
        if self.closed:
            return
        self.identify(fields)
        yield from self.announce()
        if self.kind in CALLS:
            yield from add_rest(self, self.part(INPUTS[self.kind]), arguments_of(fields, self.kind))
        elif self.kind in SERVER_TOOLS:
            yield from self._server_tool(fields)
        for name, fallback in (("summary", SUMMARY), ("content", None)):
            for k, content in enumerate(array(fields.get(name))):
                part_type = CONTENT_PARTS.get(string(mapping(content).get("type")), fallback)
                if part_type is not None and part_type.item == self.kind:
                    yield from add_content(
                        self, self.part(part_type, k), mapping(content), part_type
                    )
        if self.kind == "reasoning":
            yield from self._signature(string(fields.get("encrypted_content")))
        yield from self.finish()

    def _server_tool(self, fields: Fields) -> Iterator[ev.Event]:
        call = SERVER_TOOLS[self.kind].read_item(fields)
        if self.kind in INPUTS:
            part_type = INPUTS[self.kind]
            part, whole = self.part(part_type), fields.get(part_type.value)
            if part.kind == "code":
                yield from self._code(part, whole)
            else:
                yield from add_rest(self, part, whole)
        elif call.input:
            yield ev.ToolArgs(self.base, call.input)
        if call.output is not None:
            yield ev.ServerToolResult(self.base, call.output)

    def _code(self, part: IncomingPart, whole: object) -> Iterator[ev.Event]:
        if not part.fragments:
            if isinstance(whole, str):
                yield ev.ToolArgs(self.base, code_text(whole))
            return
        yield from add_rest(self, part, whole)
        if not part.replaced:
            yield ev.ToolArgs(self.base, END if part.text else code_text(""))

    def _signature(self, encrypted: str) -> Iterator[ev.Event]:
        """The signature of a reasoning item; an empty fragment where it has no text either. The
        service sends reasoning items without summary, which must not get lost."""
        if encrypted:
            yield ev.Signature(self.last_key, encrypted)
        elif not self.parts:
            yield ev.ReasoningDelta(self.base, "")

    def finish(self) -> Iterator[ev.Event]:
        """Closes the item, once."""
        if self.closed:
            return
        yield from self.announce()
        if self.kind in CALLS:
            part = self.part(INPUTS[self.kind])
            if not part.text and self.early_arguments:
                yield from add_fragment(self, part, self.early_arguments)
        self.closed = True
        for part in self.parts.values():
            yield from _cites(part, part.annotations)
            yield ev.PartEnd(part.key)
        if self.kind in SERVER_TOOLS and not self.parts:
            yield ev.PartEnd(self.base)


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
        case "code":
            yield from item.announce()
            if text:
                first = len(part.text) == len(text)
                yield ev.ToolArgs(part.key, begin_code(text) if first else escape_code(text))
        case kind:
            yield ev.ReasoningDelta(part.key, text, kind == "summary")


def add_rest(
    item: IncomingItem, part: IncomingPart, whole: object, logprobs: bool = False
) -> Iterator[ev.Event]:
    """Adds what the whole value has beyond the fragments so far, or replaces them by it. An empty
    value replaces nothing: some servers do not repeat what they streamed."""
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
    part.fragments, part.replaced = [whole], True
    if part.kind != "arguments" or item.announced:
        yield ev.Replacement(part.key, code_text(whole) if part.kind == "code" else whole)


def add_content(
    item: IncomingItem, part: IncomingPart, content: Fields, part_type: PartType
) -> Iterator[ev.Event]:
    """Adds what a finished content or summary has beyond the fragments so far."""
    yield from add_rest(item, part, content.get(part_type.value), bool(content.get("logprobs")))
    annotations = content.get("annotations")
    if not isinstance(annotations, list) or not annotations:
        annotations = part.annotations
    yield from _cites(part, annotations)


def _cites(part: IncomingPart, annotations: list[Any]) -> Iterator[ev.Event]:
    """The new citations of a text; their cited text is cut from the complete text."""
    cites = [a for a in map(mapping, annotations) if a.get("type") in ANNOTATIONS]
    if part.kind != "text" or len(cites) <= part.cited:
        return
    text = part.text
    yield from (citation(part.key, cite, text) for cite in cites[part.cited :])
    part.cited = len(cites)


def arguments_of(fields: Fields, kind: str = "function_call") -> str:
    """The input of a call as text; some compatible servers send arguments as an object."""
    arguments = fields.get(CALLS.get(kind, "arguments"))
    return dumps(arguments) if isinstance(arguments, Mapping) else string(arguments)


def whole_number(value: object) -> int | None:
    """The value if it can be an index or a count, else None."""
    # Larger numbers would run into the keys of other items.
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 20:
        return value
    return None
