"""Access to events of the Messages API for the quirks: blocks, deltas, ends.

A scenario may send raw frames with any content. A frame that is not an event of the expected shape
counts as an empty event, and is not changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mockllm.play.quirks import streams
from mockllm.play.quirks.base import Item, quirks_of
from mockllm.play.quirks.streams import event, kind
from mockllm.wire.protocols.anthropic_messages.assembly import DELTAS
from mockllm.wire.protocols.records import Json
from mockllm.wire.protocols.values import sendable_value, string

quirk = quirks_of("anthropic")
"""A quirk of Anthropic Messages."""

NEUTRAL = frozenset({"text", "thinking", "tool_use"})
_FRAGMENTS = ("text_delta", "thinking_delta", "input_json_delta")


# Reading


def index_of(item: Item) -> int | None:
    """The index of the block that an event belongs to; None where it has none."""
    index = event(item).get("index")
    return index if type(index) is int else None


def started_block(item: Item) -> Json:
    """The block that an event starts; {} where it starts none. Changes of it change the event."""
    block = event(item).get("content_block") if kind(item) == "content_block_start" else None
    return block if isinstance(block, dict) else {}


def delta(item: Item) -> Json:
    """The delta of an event; {} where it has none. Changes of it change the event."""
    added = event(item).get("delta")
    return added if isinstance(added, dict) else {}


def fragment_of(item: Item) -> str:
    """The fragment of text, reasoning or arguments in an event; "" where it has none."""
    kind = string(delta(item).get("type"))
    return string(delta(item).get(DELTAS[kind][1])) if kind in _FRAGMENTS else ""


def stop_reason(item: Item) -> str:
    """The stop reason in an event; "" where it has none."""
    return string(delta(item).get("stop_reason")) if kind(item) == "message_delta" else ""


def end_position(items: Sequence[Item]) -> int:
    """The position of the event that begins the end; the number of items where none does."""
    position = streams.end_position(map(event, items), "anthropic")
    return len(items) if position is None else position


def start_of(items: Sequence[Item]) -> int | None:
    """The position of the event that starts the message; None where none does."""
    starts = (position for position, item in enumerate(items) if kind(item) == "message_start")
    return next(starts, None)


# Blocks


@dataclass(slots=True)
class Block:
    """A content block: its index and type, and the positions of its events among the items."""

    index: int
    kind: str
    start: int
    deltas: list[int] = field(default_factory=list)
    stop: int | None = None

    @property
    def positions(self) -> list[int]:
        """The positions of all of its events, in order."""
        return [self.start, *self.deltas, *(() if self.stop is None else (self.stop,))]


def blocks(items: Iterable[Item]) -> list[Block]:
    """All blocks, in the order in which they start."""
    opened: list[Block] = []
    running: dict[int, Block] = {}
    for position, item in enumerate(items):
        index = index_of(item)
        if index is None:
            continue
        match kind(item):
            case "content_block_start":
                running[index] = Block(index, string(started_block(item).get("type")), position)
                opened.append(running[index])
            case "content_block_delta" if index in running:
                running[index].deltas.append(position)
            case "content_block_stop" if index in running:
                running.pop(index).stop = position
    return opened


def calls(items: Sequence[Item]) -> list[tuple[Block, str]]:
    """The blocks of tool calls, each with its arguments as JSON text."""
    return [
        (block, "".join(fragment_of(items[position]) for position in block.deltas))
        for block in blocks(items)
        if block.kind == "tool_use"
    ]


def arguments(text: str) -> Json:
    """The JSON object in the arguments; {} where they are not one, or where JSON text cannot hold
    a value in it (NaN)."""
    value = sendable_value(text)
    return value if isinstance(value, dict) else {}


def first_output(items: Sequence[Item], *kinds: str) -> int | None:
    """The position of the first fragment that is not empty; None where there is none.

    Args:
        kinds: the types of blocks to look at; by default those that are parts of a turn.
    """
    looked_at = kinds or NEUTRAL
    positions = (
        position
        for block in blocks(items)
        if block.kind in looked_at
        for position in block.deltas
        if fragment_of(items[position])
    )
    return min(positions, default=None)


def behind_first(items: Sequence[Item]) -> int:
    """The position behind `first_output`; that of the end where there is no output."""
    first = first_output(items)
    return end_position(items) if first is None else first + 1


# Changes of items


def new_event(at: int, type: str, **fields: Any) -> Item:
    """A new event, due at a time in microseconds."""
    return Item(at, {"type": type, **fields}, event=type)


def without(items: Iterable[Item], positions: Iterable[int]) -> list[Item]:
    """The items without those at some positions."""
    dropped = frozenset(positions)
    return [item for position, item in enumerate(items) if position not in dropped]


def insert_after(items: Sequence[Item], position: int, *more: Item) -> list[Item]:
    """The items with more after a position, due at the time of the item there."""
    new = [replace(item, at=items[position].at) for item in more]
    return [*items[: position + 1], *new, *items[position + 1 :]]


# Fragments


def cut(fragments: Sequence[str], limit: int) -> tuple[str, ...]:
    """The fragments, cut after `limit` characters in all."""
    shortened = []
    for fragment in fragments:
        if limit <= 0:
            break
        shortened.append(fragment[:limit])
        limit -= len(fragment)
    return tuple(shortened)
