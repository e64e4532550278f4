"""Acts of the Echo API: which of them end an answer, and where they hold text."""

from __future__ import annotations

from mockllm.protocols.records import StreamEvents
from mockllm.protocols.values import mapped_text

__all__ = ["EVENTS"]

_SPOKEN = frozenset({"line", "musing", "balk"})

EVENTS = StreamEvents(
    is_end=lambda act: act.get("act") in ("bow", "heckle"),
    map_text=mapped_text(lambda name, act: name == "bit" and act.get("act") in _SPOKEN),
)
