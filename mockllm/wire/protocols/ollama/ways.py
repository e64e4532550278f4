"""The ways in which documented clients read an answer of Ollama: the first or the last end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mockllm.wire.protocols.ollama.encoder import is_end
from mockllm.wire.protocols.records import NamedEvent, Way
from mockllm.wire.protocols.ways import first_and_last, usage_ways


def ways(events: Sequence[NamedEvent]) -> Iterator[Way]:
    """All ways of reading an answer."""
    ends = [event for _, event in events if is_end(event)]
    reasons = (event.get("done_reason") for event in ends)
    yield from first_and_last("finish", "`done_reason`", reasons)
    yield from usage_ways(ends, ("prompt_eval_count", "eval_count"))
