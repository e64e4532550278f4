"""The ways in which documented clients read an answer of Cohere: the first or the last end, the
counted tokens, and calls with the arguments that their start has, or without."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mockllm.wire.protocols.records import Fields, NamedEvent, Way
from mockllm.wire.protocols.values import mapping, string
from mockllm.wire.protocols.ways import first_and_last, usage_ways


def ways(events: Sequence[NamedEvent]) -> Iterator[Way]:
    """All ways of reading an answer."""
    values = [event for _, event in events]
    ends = [mapping(event.get("delta")) for event in values if event.get("type") == "message-end"]
    yield from first_and_last(
        "finish", "`finish_reason`", (end.get("finish_reason") for end in ends)
    )
    tokens = (mapping(end.get("usage")).get("tokens") for end in ends)
    yield from usage_ways(tokens, ("input_tokens", "output_tokens"))
    yield from _starts(values)


def _starts(values: Sequence[Fields]) -> Iterator[Way]:
    """What the starts of texts and calls have beside the deltas: some clients leave it out, others
    put the deltas behind it."""
    for event in values:
        message = mapping(mapping(event.get("delta")).get("message"))
        of = f"{event.get('type')} {event.get('index')}"
        if event.get("type") == "content-start":
            begun = string(mapping(message.get("content")).get("text"))
            yield Way("text", "the start", begun, of)
            yield Way("text", "the deltas alone", "", of)
        elif event.get("type") == "tool-call-start":
            function = mapping(mapping(message.get("tool_calls")).get("function"))
            begun = string(function.get("arguments"))
            yield Way("calls", "the start", (("", begun or "{}"),), of)
            yield Way("calls", "the deltas alone", (("", "{}"),), of)
