"""What Cohere cannot express, written by hand: the projection of a turn."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

from mockllm.core import events as ev
from mockllm.core.timeline import expand, fold
from mockllm.core.turn import ToolCall, Turn
from mockllm.wire.protocols.cohere.fields import read_finish, write_finish
from mockllm.wire.protocols.custom_calls import with_functions

__all__ = ["project"]


def project(turn: Turn) -> Turn:
    """The turn that the Decoder reads from the stream of a turn: its parts in the order in which
    they begin, the texts until the first call as one (the tool plan)."""
    decoded = _Decoded(with_functions(turn))
    events = ((item.at, decoded.event(item.event)) for item in expand(decoded.turn))
    return fold(ev.Timed(at, event) for at, event in events if event is not None)


class _Decoded:
    """The events of a turn as the Decoder returns them."""

    def __init__(self, turn: Turn) -> None:
        self.turn = turn
        self._keys: dict[Hashable, int] = {}
        self._planning = bool(turn.tool_calls)
        self._plan: set[int] = set()

    def event(self, event: ev.Event) -> ev.Event | None:
        match event:
            case ev.TextDelta() | ev.RefusalDelta():
                return self._text(event)
            case ev.ReasoningDelta():
                return replace(event, part=self._key(event.part), summary=False)
            case ev.ToolStart():
                self._planning = False
                return replace(event, part=self._key(event.part))
            case ev.ToolArgs() if isinstance(self.turn.parts[event.part], ToolCall):
                return replace(event, part=self._key(event.part))
            case ev.Cite():
                part = "plan" if event.part in self._plan else event.part
                url = event.url or (f"doc:{event.passage.source}" if event.passage else "")
                return replace(event, part=self._key(part), url=url, passage=None)
            case ev.Usage() if self.turn.finish or self.turn.error:
                return replace(event, reasoning=0, cache_written=0)
            case ev.Finish(reason=reason, raw=raw):
                called = bool(self.turn.tool_calls)
                return read_finish(write_finish(reason, raw), None, called=called)
            case ev.StreamError(message=message, type=type):
                return ev.StreamError(message, type if type == "TIMEOUT" else None)
            case ev.Start():
                return event
        return None

    def _text(self, event: ev.TextDelta | ev.RefusalDelta) -> ev.Event:
        logprobs = isinstance(event, ev.TextDelta) and event.logprobs
        is_new = event.part not in self._keys
        if event.part in self._plan or (self._planning and is_new):
            self._plan.add(event.part)
            return ev.TextDelta(self._key("plan"), event.text)
        return ev.TextDelta(self._key(event.part), event.text, logprobs)

    def _key(self, part: Hashable) -> int:
        return self._keys.setdefault(part, len(self._keys))
