"""Events of the Messages API as quirks take them apart: blocks, what their deltas say, ends.

Frames that a scenario holds as they are may say anything: what is no event of the expected shape
counts as an empty one, and is left as it is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mockllm.core.turn import Opaque, Part, Reasoning, Text, ToolCall, Turn, beats
from mockllm.protocols.values import json_object, string
from mockllm.quirks.base import Item
from mockllm.quirks.framing.changes import is_end

__all__ = [
    "NEUTRAL",
    "Block",
    "after",
    "arguments",
    "blocks",
    "calls",
    "cut",
    "delta",
    "ended",
    "ending",
    "event",
    "index_of",
    "kind",
    "made",
    "said",
    "start_of",
    "started",
    "stop_reason",
    "until",
    "without",
    "words",
]

_Json = dict[str, Any]

NEUTRAL = frozenset({"text", "thinking", "tool_use"})
_WORDS = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "input_json_delta": "partial_json",
}


# What an event is about


def event(item: Item) -> _Json:
    """The event in an item; an empty one where it holds none."""
    return item.data if item.raw is None and isinstance(item.data, dict) else {}


def kind(item: Item) -> str:
    """The type of the event in an item; `""` where it holds none."""
    return string(event(item).get("type"))


def index_of(item: Item) -> int | None:
    """The block that an event belongs to."""
    index = event(item).get("index")
    return index if type(index) is int else None


def started(item: Item) -> _Json:
    """The block that an event starts; its values are the item's own."""
    block = event(item).get("content_block") if kind(item) == "content_block_start" else None
    return block if isinstance(block, dict) else {}


def delta(item: Item) -> _Json:
    """What an event adds to its block, or to the message; its values are the item's own."""
    added = event(item).get("delta")
    return added if isinstance(added, dict) else {}


def words(item: Item) -> str:
    """The fragment of text, of reasoning or of arguments that an event adds."""
    name = _WORDS.get(string(delta(item).get("type")))
    return string(delta(item).get(name)) if name else ""


def stop_reason(item: Item) -> str:
    """Why the answer ends, where an event says so."""
    return string(delta(item).get("stop_reason")) if kind(item) == "message_delta" else ""


def ending(items: Sequence[Item]) -> int:
    """The place of the event that begins the end; behind the last item where none does."""
    ends = (place for place, item in enumerate(items) if is_end(event(item), "anthropic"))
    return next(ends, len(items))


def start_of(items: Sequence[Item]) -> int | None:
    """The place of the event that starts the message."""
    starts = (place for place, item in enumerate(items) if kind(item) == "message_start")
    return next(starts, None)


# Blocks


@dataclass(slots=True)
class Block:
    """A content block: its index and type, and the places of its events among the items."""

    index: int
    kind: str
    start: int
    deltas: list[int] = field(default_factory=list)
    stop: int | None = None

    @property
    def places(self) -> list[int]:
        """The places of all of its events, in order."""
        return [self.start, *self.deltas, *(() if self.stop is None else (self.stop,))]


def blocks(items: Iterable[Item]) -> list[Block]:
    """All blocks, in the order in which they start."""
    found: list[Block] = []
    running: dict[int, Block] = {}
    for place, item in enumerate(items):
        index = index_of(item)
        if index is None:
            continue
        match kind(item):
            case "content_block_start":
                running[index] = Block(index, string(started(item).get("type")), place)
                found.append(running[index])
            case "content_block_delta" if index in running:
                running[index].deltas.append(place)
            case "content_block_stop" if index in running:
                running.pop(index).stop = place
    return found


def calls(items: Sequence[Item]) -> list[tuple[Block, str]]:
    """The blocks of tool calls, each with its arguments as JSON text."""
    return [
        (block, "".join(words(items[place]) for place in block.deltas))
        for block in blocks(items)
        if block.kind == "tool_use"
    ]


def arguments(text: str) -> _Json:
    """The JSON object that arguments are; an empty one where they are none, or hold what an
    event cannot (NaN, half a surrogate pair)."""
    value = json_object(text)
    try:
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        return {}
    return value or {}


def said(items: Sequence[Item], *kinds: str) -> int | None:
    """The place of the first event that says something in a block of these types (default:
    all that are parts of a turn)."""
    wanted = kinds or NEUTRAL
    places = (
        place
        for block in blocks(items)
        if block.kind in wanted
        for place in block.deltas
        if words(items[place])
    )
    return min(places, default=None)


# Changes of items


def made(at: int, type: str, **fields: Any) -> Item:
    """A new event, due at a time in microseconds."""
    return Item(at, {"type": type, **fields}, event=type)


def without(items: Iterable[Item], places: Iterable[int]) -> list[Item]:
    """The items but for those at some places."""
    dropped = frozenset(places)
    return [item for place, item in enumerate(items) if place not in dropped]


def after(items: Sequence[Item], place: int, *more: Item) -> list[Item]:
    """The items with more behind that at a place, due when that is."""
    new = [replace(item, at=items[place].at) for item in more]
    return [*items[: place + 1], *new, *items[place + 1 :]]


# The same for turns


def ended(turn: Turn) -> Turn:
    """A turn of which all is said, but not how it ended."""
    return replace(turn, finish=None, finish_raw=None, usage=None, error=None)


def cut(fragments: Sequence[str], limit: int) -> tuple[str, ...]:
    """Fragments up to so many characters in all."""
    kept = []
    for fragment in fragments:
        if limit <= 0:
            break
        kept.append(fragment[:limit])
        limit -= len(fragment)
    return tuple(kept)


def until(turn: Turn, *, call: bool = False) -> Turn:
    """A turn cut behind the first fragment that says something, of a call if `call`; the same
    turn where none does. `said` finds that place in its stream.

    Blocks open in the order of the parts, so those before that part have begun.
    """
    seen = [0] * len(turn.parts)
    for index in turn.order or _sequential(turn):
        part = turn.parts[index]
        seen[index] += 1
        if _fragment(part, seen[index]) and (isinstance(part, ToolCall) or not call):
            opened = max(place for place, count in enumerate(seen) if count)
            parts = tuple(
                _told(turn.parts[place], seen[place], here=place == index)
                for place in range(opened + 1)
            )
            return replace(ended(turn), parts=parts, order=(), gaps=())
    return turn


def _sequential(turn: Turn) -> list[int]:
    return [index for index, part in enumerate(turn.parts) for _ in range(beats(part))]


def _fragment(part: Part, beat: int) -> str:
    """What a beat of a part (from 1) says; a call only opens with its first."""
    match part:
        case ToolCall():
            return part.fragments[beat - 2] if beat > 1 else ""
        case Opaque():
            return ""
    return part.fragments[beat - 1]


def _told(part: Part, count: int, *, here: bool) -> Part:
    """What so many beats tell of a part; of the one that the cut is in (`here`), its end with
    its signature or citations is not told any more."""
    if isinstance(part, Opaque) or (count == beats(part) and not here):
        return part
    fragments = part.fragments[: max(0, count - isinstance(part, ToolCall))]
    match part:
        case Text():
            return replace(part, fragments=fragments, citations=())
        case Reasoning() | ToolCall():
            return replace(part, fragments=fragments, signature=None)
    return replace(part, fragments=fragments)
