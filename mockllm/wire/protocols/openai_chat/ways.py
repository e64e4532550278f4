"""The ways in which documented clients read an answer of Chat Completions.

`accumulate_delta` of openai-python appends every string of a delta but `type`; so the id, the name
and the role of a stream come once. Other clients keep the first, or the last.
https://github.com/openai/openai-python/blob/main/src/openai/lib/streaming/_deltas.py
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import itemgetter

from mockllm.wire.protocols.records import Fields, NamedEvent, Way
from mockllm.wire.protocols.values import mapping, objects, string
from mockllm.wire.protocols.ways import choice_ways

_REASONING = ("reasoning_content", "reasoning")
"""The fields with reasoning that clients know; each reads one of them."""


def ways(events: Sequence[NamedEvent]) -> Iterator[Way]:
    """All ways of reading an answer."""
    chunks = [event for _, event in events]
    yield from choice_ways(chunks, "delta")
    deltas = [
        mapping(choice.get("delta"))
        for chunk in chunks
        for choice in objects(chunk.get("choices"))
        if not choice.get("index")
    ]
    roles = [role for delta in deltas if (role := string(delta.get("role")))]
    if roles:
        yield Way("role", "the first role", roles[0])
        yield Way("role", "all roles joined", "".join(roles))
    for name in _REASONING:
        if text := "".join(string(delta.get(name)) for delta in deltas):
            yield Way("reasoning", f"`{name}`", text)
    yield from _calls(deltas)


def _calls(deltas: Sequence[Fields]) -> Iterator[Way]:
    calls: dict[object, list[Fields]] = {}
    for delta in deltas:
        for entry in objects(delta.get("tool_calls")):
            calls.setdefault(entry.get("index"), []).append(entry)
    arguments = ["".join(_texts(call, "arguments")) for call in calls.values()]
    names = [list(_texts(call, "name")) for call in calls.values()]
    ids = [[id for entry in call if (id := string(entry.get("id")))] for call in calls.values()]
    for way, at in (("the first {} of each call", 0), ("the last {} of each call", -1)):
        chosen = [given[at] if given else "" for given in names]
        yield Way("calls", way.format("name"), tuple(zip(chosen, arguments, strict=True)))
        yield Way("ids", way.format("id"), tuple(given[at] if given else "" for given in ids))
    joined = zip(map("".join, names), arguments, strict=True)
    yield Way("calls", "all names of each call joined", tuple(joined))
    yield Way("ids", "all ids of each call joined", tuple(map("".join, ids)))
    if all(type(number) is int for number in calls):
        firsts = zip((given[0] if given else "" for given in names), arguments, strict=True)
        by_index = sorted(zip(calls, firsts, strict=True), key=itemgetter(0))
        yield Way("calls", "the calls by their index", tuple(call for _, call in by_index))


def _texts(call: Sequence[Fields], name: str) -> Iterator[str]:
    """The texts in a field of the function in the fragments of a call."""
    for entry in call:
        function = mapping(entry.get("function", entry.get("custom")))
        value = function.get(name, function.get("input") if name == "arguments" else None)
        if text := string(value):
            yield text
