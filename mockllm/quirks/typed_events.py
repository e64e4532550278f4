"""Access to events that name their type in the field `type`, for the quirks of AG-UI and Responses.

A scenario may send raw frames with any content. A frame that is not an event counts as an empty
event. Only small functions on items may live here.
"""

from __future__ import annotations

from typing import Any

from mockllm.quirks.base import Item


def event(item: Item) -> dict[str, Any]:
    """The event in an item; {} where it holds none."""
    data = item.data
    return data if isinstance(data, dict) and isinstance(data.get("type"), str) else {}


def kind(item: Item) -> str:
    """The type of the event in an item; "" where it holds none."""
    return str(event(item).get("type", ""))


def last(items: list[Item], *types: str) -> int | None:
    """The position of the last event that has one of these types; None where none has."""
    return next((i for i in reversed(range(len(items))) if kind(items[i]) in types), None)
