"""The rules by which the calls of a stream of Chat Completions are told apart.

https://platform.openai.com/docs/api-reference/chat-streaming
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mockllm.wire.protocols.records import Fields, FormMistake
from mockllm.wire.protocols.values import mapping, objects


def mistakes(events: Sequence[Fields]) -> Iterator[FormMistake]:
    """The breaches of the form of a stream."""
    calls: dict[object, object] = {}
    finished = False
    for event in events:
        for choice in objects(event.get("choices"))[:1]:
            delta = mapping(choice.get("delta"))
            if finished and any(delta.get(name) for name in ("content", "tool_calls", "refusal")):
                yield "content comes after the finish reason", True
            for call in objects(delta.get("tool_calls")):
                yield from _call(call, calls)
            finished = finished or bool(choice.get("finish_reason"))


def _call(call: Fields, calls: dict[object, object]) -> Iterator[FormMistake]:
    """A fragment of a call; `calls` has the id of each call so far by its index."""
    index, id = call.get("index"), call.get("id")
    if not isinstance(index, int):
        yield "a call has no index", True
        return
    if index not in calls:
        if not id:
            yield f"the call {index} begins without an id", True
        if id and id in calls.values():
            yield f"the id {id} belongs to two calls", True
        calls[index] = id
    elif id and id != calls[index]:
        yield f"two calls have the index {index}: {calls[index]} and {id}", True
