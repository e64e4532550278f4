"""Chunks of Gemini as quirks take them apart: candidates, their parts, calls, the last chunk.

Frames that a scenario holds as they are may say anything: what is no chunk of the expected shape
counts as an empty one, and is left as it is. So does every frame of a stream that is an array.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mockllm.core import events as ev
from mockllm.core.timeline import expand
from mockllm.core.turn import Reasoning, Text, ToolCall, Turn
from mockllm.protocols.gemini.fields import arguments_of, wire
from mockllm.protocols.values import string
from mockllm.quirks.base import Item
from mockllm.quirks.framing.changes import is_end

__all__ = [
    "EMPTY",
    "call_of",
    "calls",
    "candidates",
    "chunk",
    "empty_end",
    "ended",
    "ending",
    "finish",
    "parts",
    "respelt",
    "said",
    "until",
    "with_parts",
    "without_candidates",
]

_Json = dict[str, Any]

EMPTY: _Json = {"text": ""}
"""The part that the last chunk usually has."""


# What a chunk is about


def chunk(item: Item) -> _Json:
    """The chunk in an item; an empty one where it holds none."""
    return item.data if item.raw is None and isinstance(item.data, dict) else {}


def candidates(item: Item) -> list[_Json]:
    """The candidates of a chunk; its values are the item's own."""
    listed = chunk(item).get("candidates")
    return [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []


def _own_parts(candidate: Mapping[str, Any]) -> list[_Json]:
    content = candidate.get("content")
    listed = content.get("parts") if isinstance(content, dict) else None
    return [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []


def parts(item: Item) -> list[_Json]:
    """The parts of a chunk, where all of its candidates have the same; they are not to be
    changed."""
    first, *others = [_own_parts(each) for each in candidates(item)] or [[]]
    return first if all(other == first for other in others) else []


def calls(item: Item) -> Iterator[_Json]:
    """Every `functionCall` of a chunk; its values are the item's own."""
    for candidate in candidates(item):
        for part in _own_parts(candidate):
            if isinstance(part.get("functionCall"), dict):
                yield part["functionCall"]


def call_of(item: Item) -> _Json | None:
    """The call that a chunk says, if it says nothing else and does not end the answer."""
    own = parts(item)
    if len(own) != 1 or ending([item]) == 0:
        return None
    call = own[0].get("functionCall")
    return call if isinstance(call, dict) and string(call.get("name")) else None


def finish(item: Item) -> str:
    """Why the answer ends, where a chunk says so of its candidates."""
    words = (string(each.get("finishReason")) for each in candidates(item))
    return next(filter(None, words), "")


def empty_end(item: Item) -> bool:
    """Whether a chunk ends the answer with an empty text, and nothing else."""
    return finish(item) == "STOP" and parts(item) == [EMPTY]


def ending(items: Sequence[Item]) -> int:
    """The place of the chunk that ends the answer; behind the last item where none does."""
    ends = (place for place, item in enumerate(items) if is_end(chunk(item), "gemini"))
    return next(ends, len(items))


def said(items: Sequence[Item]) -> int | None:
    """The place of the first chunk that has words or a call in it."""
    for place, item in enumerate(items):
        for part in parts(item):
            if part.get("text") or part.get("functionCall"):
                return place
    return None


# Changes of items


def respelt(item: Item) -> Item:
    """The item with its chunk written as Google's servers write JSON."""
    return replace(item, text=wire(item.data))


def with_parts(
    item: Item, parts: Sequence[_Json], change: Callable[[_Json], None] | None = None
) -> Item:
    """A chunk like another, with these parts and, in every candidate, a further change."""
    new = item.copy()
    for candidate in candidates(new):
        candidate["content"] = {"parts": copy.deepcopy([*parts]), "role": "model"}
        if change is not None:
            change(candidate)
    return respelt(new)


def without_candidates(item: Item) -> Item:
    """A chunk that says of the answer what another one says, and has no candidates."""
    about = ("usageMetadata", "modelVersion", "responseId")
    told = {name: chunk(item)[name] for name in about if name in chunk(item)}
    return respelt(Item(item.at, copy.deepcopy(told)))


# The same for turns


def ended(turn: Turn) -> Turn:
    """A turn of which all is said, but not how it ended."""
    return replace(turn, finish=None, finish_raw=None, usage=None, error=None)


def until(turn: Turn) -> Turn:
    """A turn cut behind the first words or the first call, which comes whole; the same turn
    where there is neither. `said` finds that place in its stream."""
    for timed in expand(turn):
        match timed.event:
            case ev.TextDelta(text=text) | ev.RefusalDelta(text=text) if text:
                first: Text | Reasoning | ToolCall = Text((text,))
            case ev.ReasoningDelta(text=text) if text:
                first = Reasoning((text,))
            case ev.PartEnd(part=part) if _told(turn, part):
                call = turn.parts[part]
                assert isinstance(call, ToolCall)
                first = call
            case _:
                continue
        return replace(ended(turn), parts=(first,), order=(), gaps=())
    return turn


def _told(turn: Turn, part: int) -> bool:
    """Whether a part is a call that is sent: one whose arguments are an object."""
    call = turn.parts[part]
    return isinstance(call, ToolCall) and arguments_of(call) is not None
