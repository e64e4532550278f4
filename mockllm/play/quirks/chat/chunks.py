"""Access to chunks of Chat Completions for the quirks: choices, deltas, fragments of calls.

Only chunks with the shape of our encoder are found. A scenario may send raw frames with any
content; chunks of another shape are not changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from mockllm.play.quirks.base import Item, quirks_of
from mockllm.wire.protocols.records import Json
from mockllm.wire.protocols.values import objects

quirk = quirks_of("chat")
"""A quirk of Chat Completions."""

_Element = TypeVar("_Element")


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """An element of `choices`. Changes of `fields` change the chunk."""

    item: Item
    fields: Json

    @property
    def delta(self) -> Json:
        """Its delta."""
        delta: Json = self.fields["delta"]
        return delta

    @property
    def index(self) -> int:
        """Its `index`: which of the `n` answers it belongs to."""
        index: int = self.fields["index"]
        return index


@dataclass(frozen=True, slots=True, eq=False)
class CallFragment:
    """An element of `tool_calls`. Changes of `entry` change the chunk."""

    choice: Choice
    entry: Json

    @property
    def function(self) -> Json:
        """Its `function`: name and arguments, either may be missing."""
        function: Json = self.entry["function"]
        return function

    @property
    def arguments(self) -> str:
        """The fragment of the arguments; "" where there is none."""
        text = self.function.get("arguments")
        return text if isinstance(text, str) else ""


def choices_of(items: Iterable[Item]) -> Iterator[Choice]:
    """Every choice of every chunk that has an index and a delta, in order."""
    for item in items:
        for choice in objects(item.data.get("choices") if isinstance(item.data, dict) else None):
            if type(choice.get("index")) is int and isinstance(choice.get("delta"), dict):
                yield Choice(item, choice)


def fragments(items: Iterable[Item]) -> Iterator[CallFragment]:
    """Every entry of every `tool_calls` that has an index and a function, in order."""
    for choice in choices_of(items):
        for entry in objects(choice.delta.get("tool_calls")):
            if type(entry.get("index")) is int and isinstance(entry.get("function"), dict):
                yield CallFragment(choice, entry)


def grouped_by(
    key: Callable[[_Element], object], elements: Iterable[_Element]
) -> list[list[_Element]]:
    """The elements with one key together, in the order of the first of each."""
    groups: dict[object, list[_Element]] = {}
    for element in elements:
        groups.setdefault(key(element), []).append(element)
    return list(groups.values())


def by_choice(items: Iterable[Item]) -> list[list[CallFragment]]:
    """The fragments of all calls of each choice, in order."""
    return grouped_by(lambda fragment: fragment.choice.index, fragments(items))


def call_key(fragment: CallFragment) -> tuple[int, int]:
    """Which call of which choice a fragment belongs to."""
    return fragment.choice.index, fragment.entry["index"]


def calls(items: Iterable[Item]) -> list[list[CallFragment]]:
    """The fragments of each call, in order of the openings; each choice has its own calls."""
    return grouped_by(call_key, fragments(items))


def openings(items: Iterable[Item]) -> list[CallFragment]:
    """The first fragment of each call."""
    return [call[0] for call in calls(items)]


def continuations(items: Iterable[Item]) -> Iterator[tuple[CallFragment, CallFragment]]:
    """Every fragment but the openings, each as a pair: the opening of its call, the fragment."""
    for opening, *others in calls(items):
        for fragment in others:
            yield opening, fragment


def finishes(items: Iterable[Item]) -> list[Choice]:
    """The choices that have a finish reason."""
    reasons = [(choice, choice.fields.get("finish_reason")) for choice in choices_of(items)]
    return [choice for choice, reason in reasons if reason and isinstance(reason, str)]


def set_fields(fragment: CallFragment, **fields: Any) -> None:
    """Sets fields of an entry, in the order given, directly after its index."""
    rest = {key: value for key, value in fragment.entry.items() if key not in fields}
    index = rest.pop("index")
    fragment.entry.clear()
    fragment.entry.update({"index": index, **fields, **rest})


def with_delta(choice: Choice, delta: Json) -> Item:
    """A copy of a choice's chunk with another delta, without finish reason and usage."""
    item = Item(choice.item.at, {**choice.item.data})
    if "usage" in item.data:
        item.data["usage"] = None
    fields: Json = {"index": choice.index, "delta": delta}
    if "logprobs" in choice.fields:
        fields["logprobs"] = None
    fields["finish_reason"] = None
    item.data["choices"] = [fields]
    return item.copy()


def insert(
    items: Sequence[Item], anchor: Item, new: Iterable[Item], *, before: bool = False
) -> list[Item]:
    """The items with `new` ones after (or `before`) `anchor`, which is found by identity."""
    index = next(i for i, item in enumerate(items) if item is anchor)
    index += not before
    return [*items[:index], *new, *items[index:]]


def without_fragments(items: Sequence[Item], gone: Iterable[CallFragment]) -> list[Item]:
    """The items without some fragments, and without the chunks that are empty then."""
    emptied: set[int] = set()
    for fragment in gone:
        delta, item = fragment.choice.delta, fragment.choice.item
        entries = [entry for entry in delta["tool_calls"] if entry is not fragment.entry]
        if entries:
            delta["tool_calls"] = entries
            continue
        del delta["tool_calls"]
        if not _has_content(item.data):
            emptied.add(id(item))
    return [item for item in items if id(item) not in emptied]


def whole(items: Sequence[Item]) -> list[Item]:
    """The items with all arguments of a call in its opening fragment."""
    gone: list[CallFragment] = []
    for opening, *others in calls(items):
        if others:
            text = "".join(fragment.arguments for fragment in (opening, *others))
            opening.function["arguments"] = text
            gone += others
    return without_fragments(items, gone)


def contiguous(items: Sequence[Item]) -> list[Item]:
    """The items with the fragments of each call in a row. Arguments that come after the opening of
    another call move to the last fragment before it."""
    gone: list[CallFragment] = []
    for own in by_choice(items):
        latest: dict[int, CallFragment] = {}
        current = None
        for fragment in own:
            index = fragment.entry["index"]
            if index == current or index not in latest:
                latest[index] = fragment
                current = index
                continue
            before = latest[index]
            before.function["arguments"] = before.arguments + fragment.arguments
            gone.append(fragment)
    return without_fragments(items, gone)


def _has_content(chunk: Json) -> bool:
    return bool(chunk.get("usage")) or any(
        not isinstance(choice, dict)
        or bool(choice.get("delta"))
        or choice.get("finish_reason") is not None
        for choice in chunk["choices"]
    )
