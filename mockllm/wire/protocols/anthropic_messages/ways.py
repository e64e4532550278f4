"""The ways in which documented clients read an answer of Messages.

anthropic-python appends the deltas to what the start of a block has, at the place in `content` that
`index` names, and takes the first usage of the input and the last of the output. Others begin with
nothing, find a block by the index of its start, or show the usage of `message_start`.
https://github.com/anthropics/anthropic-sdk-python/blob/main/src/anthropic/lib/streaming/_messages.py
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from mockllm.wire.protocols.base import dumps
from mockllm.wire.protocols.records import Fields, NamedEvent, Way, WayPart
from mockllm.wire.protocols.values import count, mapping, string
from mockllm.wire.protocols.ways import first_and_last

_TEXTS: Mapping[str, WayPart] = {"text": "text", "thinking": "reasoning"}
_READ_TWICE = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


def ways(events: Sequence[NamedEvent]) -> Iterator[Way]:
    """All ways of reading an answer."""
    values = [event for _, event in events]
    starts = [event for event in values if event.get("type") == "content_block_start"]
    if not starts:
        return
    # The SDKs of Anthropic pass over events whose frame has no name, or another one.
    named = [event for name, event in events if name == event.get("type")]
    for way, read in (("the events by their type", values), ("the events by their name", named)):
        yield from _content(way, read)
    yield from _content("the blocks by their place", _by_place(values))
    yield from _starts(values)
    deltas = [event for event in values if event.get("type") == "message_delta"]
    reasons = (mapping(event.get("delta")).get("stop_reason") for event in deltas)
    yield from first_and_last("finish", "`stop_reason`", reasons)
    yield from _usage(values, deltas)


def _content(way: str, values: Sequence[Fields]) -> Iterator[Way]:
    """What the deltas of all blocks add up to."""
    blocks: dict[object, tuple[Fields, list[Fields]]] = {}
    for event in values:
        if event.get("type") == "content_block_start":
            blocks[event.get("index")] = mapping(event.get("content_block")), []
        elif event.get("type") == "content_block_delta" and event.get("index") in blocks:
            blocks[event.get("index")][1].append(mapping(event.get("delta")))
    for kind, part in _TEXTS.items():
        yield Way(part, way, "".join(_join(deltas, kind) for _, deltas in blocks.values()))
    uses = [(block, deltas) for block, deltas in blocks.values() if "input" in block]
    calls = ((string(use.get("name")), _join(deltas, "partial_json")) for use, deltas in uses)
    yield Way("calls", way, tuple(calls))
    yield Way("ids", way, tuple(string(use.get("id")) for use, _ in uses))


def _join(deltas: Sequence[Fields], name: str) -> str:
    return "".join(string(delta.get(name)) for delta in deltas)


def _by_place(values: Sequence[Fields]) -> list[Fields]:
    """The events, where each start has its place in the content for its index."""
    starts = 0
    placed = []
    for event in values:
        if event.get("type") == "content_block_start":
            event = {**event, "index": starts}
            starts += 1
        placed.append(event)
    return placed


def _starts(values: Sequence[Fields]) -> Iterator[Way]:
    """What the starts of blocks have beside the deltas: some clients leave it out, others put the
    deltas behind it. Of several signatures some take the last, and others all."""
    deltas: dict[object, list[Fields]] = {}
    for event in values:
        if event.get("type") == "content_block_delta":
            deltas.setdefault(event.get("index"), []).append(mapping(event.get("delta")))
    for event in values:
        index, block = event.get("index"), mapping(event.get("content_block"))
        own, of = deltas.get(index, []), f"block {index}"
        for kind, part in _TEXTS.items():
            if begun := string(block.get(kind)):
                text = _join(own, kind)
                yield Way(part, "the deltas", text, of)
                yield Way(part, "the start of the block and its deltas", begun + text, of)
        if input := block.get("input"):
            yield Way("calls", "the deltas", (("", _join(own, "partial_json")),), of)
            yield Way("calls", "the input in the start of the block", (("", dumps(input)),), of)
        if given := [text for delta in own if (text := string(delta.get("signature")))]:
            yield Way("signatures", "the last signature", given[-1], of)
            yield Way("signatures", "all signatures joined", "".join(given), of)


def _usage(values: Sequence[Fields], deltas: Sequence[Fields]) -> Iterator[Way]:
    """The input that the first and the last usage name. A service that does not know it yet says 0
    at first."""
    first = next((mapping(event["message"]) for event in values if "message" in event), {})
    usages = [mapping(first.get("usage")), *(mapping(event.get("usage")) for event in deltas)]
    for name in _READ_TWICE:
        given = [number for usage in usages if (number := count(usage.get(name)))]
        yield from first_and_last("usage", f"`{name}`", given)
