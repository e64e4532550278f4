"""Quirks of Messages streams that change no block: further events, other forms of events."""

from __future__ import annotations

from dataclasses import replace

from mockllm.quirks.anthropic.events import (
    NEUTRAL,
    blocks,
    event,
    insert_after,
    kind,
    new_event,
    quirk,
    start_of,
)
from mockllm.quirks.base import Context, Item, Variant, each_with, parametrised
from mockllm.quirks.ends import with_done
from mockllm.quirks.samples import TEXT

# Further events


@parametrised
def _pings(items: list[Item], _: Context, data: str, name: str | None = "ping") -> list[Item]:
    pinged = []
    for item in items[1:]:
        pinged += [Item(item.at, text=data, event=name), item]
    return [*items[:1], *pinged]


def _ping_first(items: list[Item], _: Context) -> list[Item]:
    return [*(Item(item.at, text='{"type": "ping"}', event="ping") for item in items[:1]), *items]


def _unknown_block(items: list[Item], _: Context) -> list[Item]:
    opened = blocks(items)
    stops = [block.stop for block in opened if block.stop is not None]
    position = max(stops) if stops else None if opened else start_of(items)
    if position is None:
        return items
    index = max((block.index for block in opened), default=-1) + 1
    start = new_event(0, "content_block_start", index=index, content_block={"type": "kit_block"})
    return insert_after(items, position, start, new_event(0, "content_block_stop", index=index))


def _unknown_event(items: list[Item], _: Context) -> list[Item]:
    start = start_of(items)
    return items if start is None else insert_after(items, start, new_event(0, "vertex_event"))


def _unknown_delta(items: list[Item], _: Context) -> list[Item]:
    block = next((block for block in blocks(items) if block.kind in NEUTRAL), None)
    if block is None:
        return items
    added = new_event(0, "content_block_delta", index=block.index, delta={"type": "kit_delta"})
    return insert_after(items, block.start, added)


# Events in another form


@each_with(list)
def _padded(item: Item, spaces: int) -> None:
    if event(item) and kind(item) != "ping":
        text = item.frame().data or ""
        item.text = f"{text.rstrip()[:-1].rstrip()}{' ' * spaces}}}"


# The table

STREAM = (
    quirk(
        "anth-ping",
        TEXT,
        Variant("everywhere", _pings('{"type": "ping"}')),
        Variant("first", _ping_first),
        Variant("untyped", _pings("{}")),
        Variant("bare", _pings("{}", None)),
    ),
    quirk(
        "anth-no-event-lines",
        TEXT,
        Variant(
            frames=lambda items, _: [
                replace(item, event=None) if event(item) else item for item in items
            ]
        ),
    ),
    quirk(
        "anth-unknown-types",
        TEXT,
        Variant("block", _unknown_block),
        Variant("event", _unknown_event),
        Variant("delta", _unknown_delta),
    ),
    quirk("anth-padded-json", TEXT, Variant("usual", _padded(6)), Variant("wide", _padded(1000))),
    quirk(
        "anth-done-sentinel",
        TEXT,
        Variant(
            frames=with_done(lambda items: any(kind(item) == "message_stop" for item in items))
        ),
    ),
)
