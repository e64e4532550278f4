"""The rules by which the items of a stream of Responses open and close.

https://platform.openai.com/docs/api-reference/responses-streaming
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mockllm.wire.protocols.records import Fields, FormMistake
from mockllm.wire.protocols.values import string

_ENDS = ("response.completed", "response.incomplete", "response.failed")


def mistakes(events: Sequence[Fields]) -> Iterator[FormMistake]:
    """The breaches of the form of a stream."""
    kinds = [string(event.get("type")) for event in events]
    if kinds and kinds[0] not in ("response.created", "error"):
        yield f"the first event is {kinds[0]}, not response.created", True
    ends = [number for number, kind in enumerate(kinds) if kind in _ENDS]
    if ends and ends[0] != len(kinds) - 1:
        yield f"{kinds[-1]} comes after {kinds[ends[0]]}", True
    yield from _numbers(events)
    yield from _items(events)


def _numbers(events: Sequence[Fields]) -> Iterator[FormMistake]:
    numbers = [event["sequence_number"] for event in events if "sequence_number" in event]
    if any(not isinstance(number, int) for number in numbers) or numbers != sorted(set(numbers)):
        yield "the sequence numbers do not grow", False


def _items(events: Sequence[Fields]) -> Iterator[FormMistake]:
    opened: set[object] = set()
    used: set[object] = set()
    for event in events:
        kind, index = string(event.get("type")), event.get("output_index")
        if kind == "response.output_item.added":
            if index in used:
                yield f"a second item opens with the output_index {index}", True
            opened.add(index)
            used.add(index)
        elif kind == "response.output_item.done":
            if index not in opened:
                yield f"the item {index} ends, which is not open", True
            opened.discard(index)
        elif index is not None and index not in opened:
            yield f"{kind} for the item {index}, which is not open", True
    if opened and any(event.get("type") == _ENDS[0] for event in events):
        yield f"the item {min(map(str, opened))} never ends", True
