"""What changes of AG-UI streams have in common: what an event is, and new events.

Frames that a scenario holds as they are may say anything: whatever is no event counts as an
empty one here. Only small functions on items may live here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from itertools import groupby
from typing import Any

from mockllm.quirks.base import Context, FramesChange, Item

__all__ = [
    "ARGS",
    "END",
    "ENDINGS",
    "START",
    "Calls",
    "call_id",
    "event",
    "in_runs",
    "kind",
    "last",
    "made",
]

START, ARGS, END = "TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END"
ENDINGS = ("RUN_FINISHED", "RUN_ERROR")
"""The events that end a run."""


def event(item: Item) -> dict[str, Any]:
    """The event in an item; an empty one where it holds none."""
    data = item.data
    return data if isinstance(data, dict) and isinstance(data.get("type"), str) else {}


def kind(item: Item) -> str:
    """The type of the event in an item; `""` where it holds none."""
    return str(event(item).get("type", ""))


def call_id(item: Item) -> str | None:
    """The call that an event is about."""
    value = event(item)
    named = value.get("toolCallId")
    if value.get("subtype") == "tool-call":
        named = value.get("entityId")
    return named if isinstance(named, str) else None


def last(items: list[Item], *types: str) -> int | None:
    """The place of the last event that has one of these types."""
    return next((i for i in reversed(range(len(items))) if kind(items[i]) in types), None)


def made(at: int, type: str, **fields: Any) -> Item:
    """A new event."""
    return Item(at, {"type": type, **fields})


# Calls next to each other

Calls = list[list[Item]]
"""The events of several calls, each from its start to its end."""


def in_runs(change: Callable[[Calls], list[Item]]) -> FramesChange:
    """Makes a change wherever several calls come one after the other, or interleaved, with
    nothing between them.

    `change` gets the events of these calls and gives the events in their place; each place
    keeps its time.
    """

    def changed(items: list[Item], context: Context) -> list[Item]:
        out: list[Item] = []
        for called, group in groupby(items, key=lambda item: call_id(item) is not None):
            run = list(group)
            calls = _whole_calls(run) if called else []
            out += _timed(change(calls), run) if len(calls) > 1 else run
        return out

    return changed


def _whole_calls(run: list[Item]) -> Calls:
    """The calls of a run; none where one of them is not there from start to end, or its id
    stands for two."""
    calls: defaultdict[str | None, list[Item]] = defaultdict(list)
    for item in run:
        calls[call_id(item)].append(item)
    return list(calls.values()) if all(map(_whole, calls.values())) else []


def _whole(call: list[Item]) -> bool:
    kinds = [kind(item) for item in call]
    end = kinds.index(END) if END in kinds else 0
    inside, behind = kinds[1:end], kinds[end + 1 :]
    return (
        kinds[0] == START
        and end > 0
        and all(word == ARGS for word in inside)
        and all(word == "REASONING_ENCRYPTED_VALUE" for word in behind)
    )


def _timed(changed: list[Item], run: list[Item]) -> list[Item]:
    times = [item.at for item in run]
    for at, item in zip(times, changed, strict=False):
        item.at = at
    return changed
