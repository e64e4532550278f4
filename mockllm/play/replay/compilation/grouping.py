"""Several fragments as one, as servers send what is ready at once (`wire.group`). Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mockllm.core import events as ev
from mockllm.core.timeline import expand, fold
from mockllm.core.turn import Turn
from mockllm.wire.protocols.base import tokens_in


def in_groups(turn: Turn, size: int) -> Turn:
    """The turn with up to `size` consecutive fragments of a part in one, which is due when the last
    of them is."""
    events: list[ev.Timed] = []
    count = 0
    for item in expand(turn):
        joined = _join(events[-1].event, item.event) if 0 < count < size else None
        if joined is None:
            events.append(item)
            count = 1
        else:
            events[-1] = ev.Timed(item.at, joined)
            count += 1
    return fold(events)


def _join(first: ev.Event, second: ev.Event) -> ev.Event | None:
    """One fragment with the content of two; None where they are no fragments of one part."""
    if not isinstance(first, ev.Delta) or not isinstance(second, ev.Delta):
        return None
    if first.part != second.part:
        return None
    more: dict[str, Any] = {}
    if isinstance(first, ev.TextDelta) and isinstance(second, ev.TextDelta) and first.logprobs:
        # Derived tokens stay those of the single fragments, which a body has, too.
        more["tokens"] = (*tokens_in(first), *tokens_in(second))
    if isinstance(first, ev.MediaDelta) and isinstance(second, ev.MediaDelta):
        if bool(first.text) != bool(second.text):  # one has bytes, the other a transcript
            return None
        more["data"] = first.data + second.data
    return replace(first, text=first.text + second.text, **more)
