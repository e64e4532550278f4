"""Access to chunks of Gemini for the quirks: candidates, their parts, calls, the last chunk.

A scenario may send raw frames with any content. A frame that is not a chunk of the expected shape
counts as an empty chunk, and is not changed. The same holds for all frames of a JSON array.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from mockllm.play.quirks import streams
from mockllm.play.quirks.base import Item, quirks_of
from mockllm.wire.protocols.gemini_common import wire
from mockllm.wire.protocols.records import Fields, Json
from mockllm.wire.protocols.values import objects, string

quirk = quirks_of("gemini")
"""A quirk of Gemini."""

EMPTY: Json = {"text": ""}
"""The part that the last chunk usually has."""


# Reading


def chunk(item: Item) -> Json:
    """The chunk in an item; {} where it holds none."""
    return item.data if item.raw is None and isinstance(item.data, dict) else {}


def candidates(item: Item) -> list[Json]:
    """The candidates of a chunk. Changes of them change the chunk."""
    return objects(chunk(item).get("candidates"))


def _own_parts(candidate: Fields) -> list[Json]:
    content = candidate.get("content")
    return objects(content.get("parts")) if isinstance(content, dict) else []


def parts(item: Item) -> list[Json]:
    """The parts of a chunk, not to be changed; none where its candidates differ."""
    first, *others = [_own_parts(candidate) for candidate in candidates(item)] or [[]]
    return first if all(other == first for other in others) else []


def calls(item: Item) -> Iterator[Json]:
    """Every `functionCall` of a chunk. Changes of them change the chunk."""
    for candidate in candidates(item):
        for part in _own_parts(candidate):
            if isinstance(part.get("functionCall"), dict):
                yield part["functionCall"]


def call_of(item: Item) -> Json | None:
    """The call in a chunk that has no other part and does not end the answer; otherwise None."""
    own = parts(item)
    if len(own) != 1 or end_position([item]) == 0:
        return None
    call = own[0].get("functionCall")
    return call if isinstance(call, dict) and string(call.get("name")) else None


def finish(item: Item) -> str:
    """The finish reason in a chunk; "" where it has none."""
    reasons = (string(candidate.get("finishReason")) for candidate in candidates(item))
    return next(filter(None, reasons), "")


def is_empty_end(item: Item) -> bool:
    """Whether a chunk ends the answer and has only an empty text."""
    return finish(item) == "STOP" and parts(item) == [EMPTY]


def end_position(items: Sequence[Item]) -> int:
    """The position of the chunk that ends the answer; the number of items where none does."""
    position = streams.end_position(map(chunk, items), "gemini")
    return len(items) if position is None else position


def first_output(items: Sequence[Item]) -> int | None:
    """The position of the first chunk with text or a call; None where there is none."""
    for position, item in enumerate(items):
        for part in parts(item):
            if part.get("text") or part.get("functionCall"):
                return position
    return None


def behind_first(items: Sequence[Item]) -> int:
    """The position behind `first_output`; that of the end where there is no output."""
    first = first_output(items)
    return end_position(items) if first is None else first + 1


# Changes of items


def with_wire_json(item: Item) -> Item:
    """The item with its chunk written as Google's servers format JSON."""
    return replace(item, text=wire(item.data))


def with_parts(
    item: Item, parts: Sequence[Json], change: Callable[[Json], None] | None = None
) -> Item:
    """A copy of a chunk with these parts and, in every candidate, a further change."""
    new = item.copy()
    for candidate in candidates(new):
        candidate["content"] = {"parts": copy.deepcopy([*parts]), "role": "model"}
        if change is not None:
            change(candidate)
    return with_wire_json(new)


def without_candidates(item: Item) -> Item:
    """A copy of a chunk with usage, model and id, and without candidates."""
    names = ("usageMetadata", "modelVersion", "responseId")
    fields = {name: chunk(item)[name] for name in names if name in chunk(item)}
    return with_wire_json(Item(item.at, copy.deepcopy(fields)))
