"""The rules by which the blocks of a stream of Messages open and close.

https://docs.claude.com/en/docs/build-with-claude/streaming#event-types
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mockllm.wire.protocols.records import Fields, FormMistake

_OF_BLOCKS = ("content_block_delta", "content_block_stop")


def mistakes(events: Sequence[Fields]) -> Iterator[FormMistake]:
    """The breaches of the form of a stream."""
    kinds = [event.get("type") for event in events if event.get("type") != "ping"]
    if kinds and kinds[0] not in ("message_start", "error"):
        yield f"the first event is {kinds[0]}, not message_start", True
    if kinds.count("message_start") > 1:
        yield f"message_start comes {kinds.count('message_start')} times", True
    if "message_stop" in kinds[:-1]:
        yield f"{kinds[-1]} comes after message_stop", True
    yield from _blocks(events)


def _blocks(events: Sequence[Fields]) -> Iterator[FormMistake]:
    opened: set[object] = set()
    used: set[object] = set()
    for event in events:
        kind, index = event.get("type"), event.get("index")
        if kind == "content_block_start":
            if index in used:
                yield f"a second block opens with the index {index}", True
            opened.add(index)
            used.add(index)
        elif kind in _OF_BLOCKS and index not in opened:
            yield f"{kind} for the block {index}, which is not open", True
        elif kind == "content_block_stop":
            opened.discard(index)
        elif kind == "message_stop" and opened:
            yield f"the block {min(map(str, opened))} never ends", True
