"""The numbers of the events of a response: each has the next `sequence_number`."""

from __future__ import annotations

import json
from dataclasses import replace

from mockllm.core.frame import Frame
from mockllm.protocols.base import dumps

__all__ = ["numbered"]


def numbered(frames: list[Frame], before: int) -> list[Frame]:
    """Events with the numbers that they have after so many others."""
    found = []
    for number, frame in enumerate(frames, before):
        value = json.loads(frame.data or "null")
        if isinstance(value, dict) and "sequence_number" in value:
            frame = replace(frame, data=dumps({**value, "sequence_number": number}))
        found.append(frame)
    return found
