"""The frames of a stream to its turn. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from mockllm.core.events import Start, Timed
from mockllm.core.frame import Frame
from mockllm.core.timeline import fold
from mockllm.core.turn import Turn
from mockllm.protocols.base import WireProtocol

__all__ = ["decoded"]


def decoded(protocol: WireProtocol, frames: Iterable[Frame]) -> tuple[Turn, str]:
    """The turn of a stream's frames, and the model that they name; "" if they name none."""
    decoder = protocol.decoder()
    events = [event for frame in frames for event in decoder.decode(frame)]
    events += decoder.close()
    models = [event.model for event in events if isinstance(event, Start) and event.model]
    return fold(Timed(0, event) for event in events), models[0] if models else ""
