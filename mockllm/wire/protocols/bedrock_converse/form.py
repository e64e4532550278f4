"""The rules by which the blocks of a stream of Converse open and close.

https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStreamOutput.html
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mockllm.wire.protocols.records import Fields, FormMistake
from mockllm.wire.protocols.values import mapping

_INDEX = "contentBlockIndex"


def mistakes(events: Sequence[Fields]) -> Iterator[FormMistake]:
    """The breaches of the form of a stream. A block of text need not have a start."""
    opened: set[object] = set()
    ended: set[object] = set()
    for number, event in enumerate(events):
        name = next(iter(event), "")
        # An end without an index is that of the first block: an empty payload is sent, too.
        index = mapping(event.get(name)).get(_INDEX, 0 if name == "contentBlockStop" else None)
        if number == 0 and name != "messageStart" and index is not None:
            yield f"the first event is {name}, not messageStart", True
        if name == "contentBlockStart":
            if index in opened:
                yield f"a second block opens with the index {index}", True
            opened.add(index)
        elif name == "contentBlockDelta":
            if index in ended:
                yield f"contentBlockDelta for the block {index}, which has ended", True
            opened.add(index)
        elif name == "contentBlockStop":
            if index not in opened:
                yield f"contentBlockStop for the block {index}, which is not open", True
            ended.add(index)
    if any("messageStop" in event for event in events) and opened - ended:
        yield f"the block {min(map(str, opened - ended))} never ends", True
