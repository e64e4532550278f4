"""The ways in which documented clients read an answer of Converse: the first or the last stop
reason and usage."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mockllm.wire.protocols.records import Fields, NamedEvent, Way
from mockllm.wire.protocols.values import mapping
from mockllm.wire.protocols.ways import first_and_last, usage_ways


def ways(events: Sequence[NamedEvent]) -> Iterator[Way]:
    """All ways of reading an answer."""
    values = [event for _, event in events]
    reasons = (value.get("stopReason") for value in _of(values, "messageStop"))
    yield from first_and_last("finish", "`stopReason`", reasons)
    usages = (value.get("usage") for value in _of(values, "metadata"))
    yield from usage_ways(usages, ("inputTokens", "outputTokens"))


def _of(values: Sequence[Fields], name: str) -> list[Fields]:
    return [mapping(value[name]) for value in values if name in value]
