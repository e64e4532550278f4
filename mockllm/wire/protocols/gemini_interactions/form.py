"""The rules by which the steps of a stream open and close.

https://ai.google.dev/gemini-api/docs/interactions/streaming
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mockllm.wire.protocols.records import Fields, FormMistake

_FIRST, _LAST = "interaction.created", "interaction.completed"


def mistakes(events: Sequence[Fields]) -> Iterator[FormMistake]:
    """The breaches of the form of a stream."""
    kinds = [str(event.get("event_type", "")) for event in events]
    if kinds and kinds[0] not in (_FIRST, "error"):
        yield f"the first event is {kinds[0]}, not {_FIRST}", True
    if kinds.count(_FIRST) > 1:
        yield f"{_FIRST} comes {kinds.count(_FIRST)} times", True
    if _LAST in kinds[:-1]:
        yield f"{kinds[-1]} comes after {_LAST}", True
    opened: set[object] = set()
    used: set[object] = set()
    for event, kind in zip(events, kinds, strict=True):
        index = event.get("index")
        if kind == "step.start":
            if index in used:
                yield f"a second step opens with the index {index}", True
            opened.add(index)
            used.add(index)
        elif kind in ("step.delta", "step.stop") and index not in opened:
            yield f"{kind} for the step {index}, which is not open", True
        if kind == "step.stop":
            opened.discard(index)
        elif kind == _LAST and opened:
            yield f"the step {min(map(str, opened))} never ends", True
