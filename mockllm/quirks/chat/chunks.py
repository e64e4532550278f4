"""Chunks of Chat Completions as quirks take them apart: choices, deltas, fragments of calls.

Only what is formed as our encoder forms it is found: chunks that a scenario gives as raw frames
may hold anything, and what is not understood is left as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from mockllm.quirks.base import Item

__all__ = [
    "Fragment",
    "Spot",
    "alike",
    "by_choice",
    "calls",
    "contiguous",
    "finishes",
    "fragments",
    "inserted",
    "later",
    "put",
    "removed",
    "spots",
    "whole",
]


@dataclass(frozen=True, slots=True, eq=False)
class Spot:
    """A choice of a chunk; its values are the item's own and may be changed."""

    item: Item
    choice: dict[str, Any]

    @property
    def delta(self) -> dict[str, Any]:
        """What the choice says."""
        delta: dict[str, Any] = self.choice["delta"]
        return delta

    @property
    def index(self) -> int:
        """Which of the `n` answers it belongs to."""
        index: int = self.choice["index"]
        return index


@dataclass(frozen=True, slots=True, eq=False)
class Fragment:
    """An entry of `tool_calls`; its values are the item's own and may be changed."""

    spot: Spot
    entry: dict[str, Any]

    @property
    def function(self) -> dict[str, Any]:
        """Name and arguments, as far as they are there."""
        function: dict[str, Any] = self.entry["function"]
        return function

    @property
    def arguments(self) -> str:
        """The fragment of the arguments; empty where there is none."""
        text = self.function.get("arguments")
        return text if isinstance(text, str) else ""


def spots(items: Iterable[Item]) -> Iterator[Spot]:
    """Every choice of every chunk that has an index and a delta, in order."""
    for item in items:
        choices = item.data.get("choices") if isinstance(item.data, dict) else None
        for choice in choices if isinstance(choices, list) else ():
            if not isinstance(choice, dict) or type(choice.get("index")) is not int:
                continue
            if isinstance(choice.get("delta"), dict):
                yield Spot(item, choice)


def fragments(items: Iterable[Item]) -> Iterator[Fragment]:
    """Every entry of every `tool_calls` that has an index and a function, in order."""
    for spot in spots(items):
        entries = spot.delta.get("tool_calls")
        for entry in entries if isinstance(entries, list) else ():
            if not isinstance(entry, dict) or type(entry.get("index")) is not int:
                continue
            if isinstance(entry.get("function"), dict):
                yield Fragment(spot, entry)


def by_choice(items: Iterable[Item]) -> list[list[Fragment]]:
    """The fragments of all calls of each choice, in order."""
    found: dict[int, list[Fragment]] = {}
    for fragment in fragments(items):
        found.setdefault(fragment.spot.index, []).append(fragment)
    return list(found.values())


def calls(items: Iterable[Item]) -> list[list[Fragment]]:
    """The fragments of each call, in order of the openings; each choice has its own calls."""
    found: dict[tuple[int, int], list[Fragment]] = {}
    for fragment in fragments(items):
        key = fragment.spot.index, fragment.entry["index"]
        found.setdefault(key, []).append(fragment)
    return list(found.values())


def later(items: Iterable[Item]) -> Iterator[tuple[Fragment, Fragment]]:
    """Every fragment but the openings, each behind the opening of its call."""
    for opening, *others in calls(items):
        for fragment in others:
            yield opening, fragment


def finishes(items: Iterable[Item]) -> list[Spot]:
    """The choices that tell a finish reason."""
    told = [(spot, spot.choice.get("finish_reason")) for spot in spots(items)]
    return [spot for spot, word in told if word and isinstance(word, str)]


def put(fragment: Fragment, **fields: Any) -> None:
    """Sets fields of an entry, in the order given; they come right after its index."""
    rest = {key: value for key, value in fragment.entry.items() if key not in fields}
    index = rest.pop("index")
    fragment.entry.clear()
    fragment.entry.update({"index": index, **fields, **rest})


def alike(spot: Spot, delta: dict[str, Any]) -> Item:
    """A chunk like the one of `spot`, for the same choice and time, with another delta; it
    tells no finish reason and no usage."""
    item = Item(spot.item.at, {**spot.item.data})
    if "usage" in item.data:
        item.data["usage"] = None
    choice: dict[str, Any] = {"index": spot.index, "delta": delta}
    if "logprobs" in spot.choice:
        choice["logprobs"] = None
    choice["finish_reason"] = None
    item.data["choices"] = [choice]
    return item.copy()


def inserted(
    items: Sequence[Item], near: Item, new: Iterable[Item], *, before: bool = False
) -> list[Item]:
    """The items with `new` ones behind (or `before`) the one that `near` is."""
    place = next(i for i, item in enumerate(items) if item is near)
    place += not before
    return [*items[:place], *new, *items[place:]]


def removed(items: Sequence[Item], gone: Iterable[Fragment]) -> list[Item]:
    """The items without some fragments; a chunk that says nothing without them goes, too."""
    emptied: set[int] = set()
    for fragment in gone:
        delta, item = fragment.spot.delta, fragment.spot.item
        entries = [entry for entry in delta["tool_calls"] if entry is not fragment.entry]
        if entries:
            delta["tool_calls"] = entries
            continue
        del delta["tool_calls"]
        if not _says(item.data):
            emptied.add(id(item))
    return [item for item in items if id(item) not in emptied]


def whole(items: Sequence[Item]) -> list[Item]:
    """The items with all arguments of a call in its opening fragment."""
    gone: list[Fragment] = []
    for opening, *others in calls(items):
        if others:
            text = "".join(fragment.arguments for fragment in (opening, *others))
            opening.function["arguments"] = text
            gone += others
    return removed(items, gone)


def contiguous(items: Sequence[Item]) -> list[Item]:
    """The items with the fragments of each call in a row: what would come after the opening of
    another call is said with the last fragment before it."""
    gone: list[Fragment] = []
    for own in by_choice(items):
        latest: dict[int, Fragment] = {}
        current = None
        for fragment in own:
            index = fragment.entry["index"]
            if index == current or index not in latest:
                latest[index] = fragment
                current = index
                continue
            kept = latest[index]
            kept.function["arguments"] = kept.arguments + fragment.arguments
            gone.append(fragment)
    return removed(items, gone)


def _says(chunk: dict[str, Any]) -> bool:
    """Whether a chunk says anything besides what is in each chunk."""
    return bool(chunk.get("usage")) or any(
        not isinstance(choice, dict)
        or bool(choice.get("delta"))
        or choice.get("finish_reason") is not None
        for choice in chunk["choices"]
    )
