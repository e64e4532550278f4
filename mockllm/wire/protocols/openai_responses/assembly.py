"""Finds the output item of a Responses stream that an event belongs to.

`output_index` identifies an item. Where several items share an index (`resp-output-index`) or none
is given, the item's id decides, and for calls the `call_id`: GitHub Copilot, vLLM and proxies send
a new item id in every event (`resp-item-id-rotates`).
"""

from __future__ import annotations

from collections.abc import Iterator

from mockllm.core import events as ev
from mockllm.core.events import Frame
from mockllm.wire.protocols.base import dumps
from mockllm.wire.protocols.native import native_event
from mockllm.wire.protocols.openai_responses import API
from mockllm.wire.protocols.openai_responses.items import (
    ITEM,
    IncomingItem,
    IncomingPart,
    whole_number,
)
from mockllm.wire.protocols.openai_responses.parts import KINDS, NATIVE, PartType
from mockllm.wire.protocols.records import Fields
from mockllm.wire.protocols.values import array, mapping, string

_FINISHED = "response.output_item.done"


class Assembly:
    """The items of one stream."""

    def __init__(self) -> None:
        self.items: list[IncomingItem] = []
        self._used: set[int] = set()
        self._by_index: dict[int, IncomingItem] = {}
        self._by_id: dict[str, IncomingItem] = {}
        self._hosted: set[object] = set()
        self._last_key = -ITEM
        self._raws = 0

    def open(self, value: Fields, *, done: bool) -> IncomingItem:
        """The item of an `added` or `done` event, created if it is new."""
        fields = mapping(value.get("item"))
        index = whole_number(value.get("output_index"))
        item = self._by_id.get(string(fields.get("id")))
        if item is None and index is not None:
            item = self._by_index.get(index)
        elif item is None and self.items and done:
            item = self.items[-1]
        if item is None or item.kind != fields["type"] or _another(item, fields, done=done):
            return self.new(fields["type"], index, fields)
        self._identify(item, fields)
        return item

    def find(self, value: Fields, kind: str) -> IncomingItem:
        """The item of any other event, created if no event opened it (`resp-missing-openers`)."""
        id, index = string(value.get("item_id")), whole_number(value.get("output_index"))
        item = self._by_id.get(id)
        if item is None or item.kind != kind or index not in (None, item.wire_index):
            if index is not None:
                item = self._by_index.get(index)
            elif item is None and self.items:
                item = self.items[-1]
        if item is None or item.kind != kind:
            item = self.new(kind, index, {"id": id})
        return item

    def part(self, value: Fields, part_type: PartType) -> tuple[IncomingItem, IncomingPart]:
        """The item and the part of an event."""
        item = self.find(value, part_type.item)
        index = value.get(part_type.index)
        if index is None:
            index = max(0, item.unnumbered[part_type.index] - 1)
        part = item.part(part_type, index)
        self._last_key = max(self._last_key, part.key)
        return item, part

    def new(self, kind: str, index: int | None, fields: Fields) -> IncomingItem:
        """A new item; its key follows its index, unless another item uses that already."""
        number = index if index is not None else len(self.items)
        if number in self._used:
            number = max(self._used) + 1
        self._used.add(number)
        item = IncomingItem(number * ITEM, kind, index)
        self.items.append(item)
        self._last_key = max(self._last_key, item.base)
        if index is not None:
            self._by_index[index] = item
        self._identify(item, fields)
        return item

    def _identify(self, item: IncomingItem, fields: Fields) -> None:
        item.identify(fields)
        if id := string(fields.get("id")):
            self._by_id[id] = item

    def raw(self, frame: Frame, value: Fields) -> ev.Raw:
        """The event that keeps a frame: in the item that it names, else after the last part."""
        index = whole_number(value.get("output_index"))
        key = self._last_key
        if index is not None:
            item = self._by_index.get(index)
            key = item.last_key if item else index * ITEM
        if value.get("type") == _FINISHED:
            self._hosted |= {index, string(mapping(value.get("item")).get("id"))} - {None, ""}
        self._last_key = max(self._last_key, key)
        self._raws += 1
        unnumbered = {name: item for name, item in value.items() if name != "sequence_number"}
        native = native_event(key + self._raws, API, unnumbered, NATIVE)
        return native or ev.Raw(key + self._raws, API, frame)

    def read_output(self, output: object) -> Iterator[ev.Event]:
        """The events of what only the final `output` has, and of the ends of all items."""
        unmatched = list(self.items)
        for index, value in enumerate(array(output)):
            kind = string(mapping(value).get("type"))
            if kind not in KINDS:
                yield from self._read_hosted(index, mapping(value))
                continue
            item = _match(unmatched, kind, value, index)
            if item is None:
                item = self.new(kind, index, value)
            else:
                unmatched.remove(item)
            yield from item.complete(value)
        for item in unmatched:
            yield from item.finish()

    def _read_hosted(self, index: int, value: Fields) -> Iterator[ev.Event]:
        if value and not {index, string(value.get("id"))} & self._hosted:
            data = {"type": _FINISHED, "output_index": index, "item": value}
            yield self.raw(Frame(dumps(data), event=_FINISHED), data)


def _another(item: IncomingItem, fields: Fields, *, done: bool) -> bool:
    call_id, id = string(fields.get("call_id")), string(fields.get("id"))
    if call_id and item.call_id:
        return call_id != item.call_id
    if done or not item.added:
        return False
    return item.closed or bool(id and item.id and id != item.id)


def _match(
    unmatched: list[IncomingItem], kind: str, value: Fields, index: int
) -> IncomingItem | None:
    """The streamed item of an entry of the final output: by id, by index, or by kind."""
    candidates = [item for item in unmatched if item.kind == kind]
    id, call_id = string(value.get("id")), string(value.get("call_id"))
    for item in candidates:
        if (call_id and item.call_id == call_id) or (id and item.id == id):
            return item
    if call_id:
        candidates = [item for item in candidates if not item.call_id]
    return next(
        (item for item in candidates if item.wire_index == index), next(iter(candidates), None)
    )
