"""The neutral events of a stream, as far as it can be read. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from mockllm.core.events import Event
from mockllm.errors import MockLLMError
from mockllm.framing.sse import decode
from mockllm.protocols import PROTOCOLS


def readable_events(data: bytes, api: str) -> Iterator[list[Event]]:
    """The events of each frame, up to the first frame that cannot be read: the streams of the kit
    are broken on purpose."""
    decoder = PROTOCOLS[api].decoder()
    for frame in decode(data):
        try:
            events = list(decoder.decode(frame))
        except MockLLMError:
            return
        yield events
