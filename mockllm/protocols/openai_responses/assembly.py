"""Which item of a Responses stream an event belongs to.

Servers differ in what identifies an item. Here it is `output_index`; an item's id (and for
calls `call_id`) decides where several items share one index or none is given.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mockllm.core import events as ev
from mockllm.core.frame import Frame
from mockllm.protocols.base import dumps
from mockllm.protocols.openai_responses.items import ITEM, KINDS, Item, Shape, Slot, whole_number
from mockllm.protocols.openai_responses.objects import API
from mockllm.protocols.values import mapping, string

__all__ = ["Assembly"]

_FINISHED = "response.output_item.done"


class Assembly:
    """The items of one stream, found by whatever their events name."""

    def __init__(self) -> None:
        self.items: list[Item] = []
        self._used: set[int] = set()
        self._by_index: dict[int, Item] = {}
        self._by_id: dict[str, Item] = {}
        self._hosted: set[object] = set()
        self._place = -ITEM
        self._raws = 0

    def open(self, value: Mapping[str, Any], *, done: bool) -> Item:
        """The item that an `added` or `done` event is about, made if it is not there yet."""
        shown = mapping(value.get("item"))
        index = whole_number(value.get("output_index"))
        item = self._by_id.get(string(shown.get("id")))
        if item is None and index is not None:
            item = self._by_index.get(index)
        elif item is None and self.items and done:
            item = self.items[-1]
        if item is None or item.kind != shown["type"] or _another(item, shown, done=done):
            return self.new(shown["type"], index, shown)
        self._identify(item, shown)
        return item

    def find(self, value: Mapping[str, Any], kind: str) -> Item:
        """The item that an event about its inside names, made if nothing announced it."""
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

    def slot(self, value: Mapping[str, Any], shape: Shape) -> tuple[Item, Slot]:
        """The item and the part of it that an event names."""
        item = self.find(value, shape.item)
        slot = item.slot(shape, value.get(shape.index))
        self._place = max(self._place, slot.key)
        return item, slot

    def new(self, kind: str, index: int | None, shown: Mapping[str, Any]) -> Item:
        """One more item, sorted by its index where that is not taken."""
        place = index if index is not None else len(self.items)
        if place in self._used:
            place = max(self._used) + 1
        self._used.add(place)
        item = Item(place * ITEM, kind, index)
        self.items.append(item)
        self._place = max(self._place, item.base)
        if index is not None:
            self._by_index[index] = item
        self._identify(item, shown)
        return item

    def _identify(self, item: Item, shown: Mapping[str, Any]) -> None:
        item.identify(shown)
        if id := string(shown.get("id")):
            self._by_id[id] = item

    def raw(self, frame: Frame, value: Mapping[str, Any]) -> ev.Raw:
        """A frame kept as it is: in the item that it names, else after what came last."""
        index = whole_number(value.get("output_index"))
        place = self._place
        if index is not None:
            item = self._by_index.get(index)
            place = item.last_key if item else index * ITEM
        if value.get("type") == _FINISHED:
            self._hosted |= {index, string(mapping(value.get("item")).get("id"))} - {None, ""}
        self._place = max(self._place, place)
        self._raws += 1
        return ev.Raw(place + self._raws, API, frame)

    def harvest(self, output: object) -> Iterator[ev.Event]:
        """Takes from a final `output` what the stream did not tell, and closes all items."""
        left = list(self.items)
        for index, value in enumerate(output if isinstance(output, list) else ()):
            kind = string(mapping(value).get("type"))
            if kind not in KINDS:
                yield from self._harvest_hosted(index, mapping(value))
                continue
            item = _match(left, kind, value, index)
            if item is None:
                item = self.new(kind, index, value)
            else:
                left.remove(item)
            yield from item.complete(value)
        for item in left:
            yield from item.finish()

    def _harvest_hosted(self, index: int, value: Mapping[str, Any]) -> Iterator[ev.Event]:
        if value and not {index, string(value.get("id"))} & self._hosted:
            data = {"type": _FINISHED, "output_index": index, "item": value}
            yield self.raw(Frame(dumps(data), event=_FINISHED), data)


def _another(item: Item, shown: Mapping[str, Any], *, done: bool) -> bool:
    """Whether an event at a taken index is about another item than the one that is there."""
    call_id, id = string(shown.get("call_id")), string(shown.get("id"))
    if call_id and item.call_id:
        return call_id != item.call_id
    if done or not item.added:
        return False
    return item.closed or bool(id and item.id and id != item.id)


def _match(left: list[Item], kind: str, value: Mapping[str, Any], index: int) -> Item | None:
    """The streamed item that an entry of the final output is: by id, by place, or by kind."""
    alike = [item for item in left if item.kind == kind]
    id, call_id = string(value.get("id")), string(value.get("call_id"))
    for item in alike:
        if (call_id and item.call_id == call_id) or (id and item.id == id):
            return item
    if call_id:
        alike = [item for item in alike if not item.call_id]
    return next((item for item in alike if item.wire_index == index), next(iter(alike), None))
