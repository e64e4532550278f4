"""The ways in which documented clients read an answer of Completions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mockllm.wire.protocols.records import NamedEvent, Way
from mockllm.wire.protocols.ways import choice_ways


def ways(events: Sequence[NamedEvent]) -> Iterator[Way]:
    """All ways of reading an answer."""
    yield from choice_ways([event for _, event in events], "text")
