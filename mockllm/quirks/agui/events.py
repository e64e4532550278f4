"""Calls in AG-UI streams, and new events. Only small functions on items may live here."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from itertools import groupby
from typing import Any

from mockllm.quirks.base import Context, Item, parametrised, quirks_of
from mockllm.quirks.streams import event, kind

quirk = quirks_of("agui")
"""A quirk of AG-UI."""

START, ARGS, END = "TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END"


def call_id(item: Item) -> str | None:
    """The id of the call that an event belongs to; None where it belongs to none."""
    value = event(item)
    named = value.get("toolCallId")
    if value.get("subtype") == "tool-call":
        named = value.get("entityId")
    return named if isinstance(named, str) else None


def new_event(at: int, type: str, **fields: Any) -> Item:
    """A new event."""
    return Item(at, {"type": type, **fields})


# Consecutive calls

Calls = list[list[Item]]
"""The events of several calls, each from its start to its end."""


@parametrised
def in_runs(
    items: list[Item], context: Context, change: Callable[[Calls], list[Item]]
) -> list[Item]:
    """Changes each run of several calls with no other event between them.

    Args:
        change: from the events of these calls, the events that replace them. Each position keeps
            its time.
    """

    out: list[Item] = []
    for called, group in groupby(items, key=lambda item: call_id(item) is not None):
        run = list(group)
        calls = _whole_calls(run) if called else []
        out += _timed(change(calls), run) if len(calls) > 1 else run
    return out


def _whole_calls(run: list[Item]) -> Calls:
    """The calls of a run; none where one of them is incomplete, or where two share an id."""
    calls: defaultdict[str | None, list[Item]] = defaultdict(list)
    for item in run:
        calls[call_id(item)].append(item)
    return list(calls.values()) if all(map(_whole, calls.values())) else []


def _whole(call: list[Item]) -> bool:
    kinds = [kind(item) for item in call]
    end = kinds.index(END) if END in kinds else 0
    inside, after = kinds[1:end], kinds[end + 1 :]
    return (
        kinds[0] == START
        and end > 0
        and all(type == ARGS for type in inside)
        and all(type == "REASONING_ENCRYPTED_VALUE" for type in after)
    )


def _timed(changed: list[Item], run: list[Item]) -> list[Item]:
    times = [item.at for item in run]
    for at, item in zip(times, changed, strict=False):
        item.at = at
    return changed
