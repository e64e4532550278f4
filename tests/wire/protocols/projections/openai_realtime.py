"""What Realtime cannot express, written by hand: the projection of a turn."""

from __future__ import annotations

from collections.abc import Iterator

from mockllm.core import events as ev
from mockllm.core.timeline import expand, fold
from mockllm.core.turn import ToolCall, Turn
from mockllm.wire.protocols.custom_calls import with_functions

__all__ = ["project"]


def project(turn: Turn) -> Turn:
    """The turn that the Decoder reads from a written answer: texts and calls, without what the
    service has no events for."""
    turn = with_functions(turn)
    decoded = _Decoded(turn)
    return fold(
        ev.Timed(item.at, event) for item in expand(turn) for event in decoded.events(item.event)
    )


class _Decoded:
    """The events of a turn as the Decoder returns them."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._keys: dict[int, int] = {}
        self._open: set[int] = set()
        self._used: set[int] = set()
        self._called = False

    def events(self, event: ev.Event) -> Iterator[ev.Event]:
        match event:
            case ev.Start():
                yield event
            case ev.TextDelta(part=part, text=text) | ev.RefusalDelta(part=part, text=text):
                yield from self._text(part, text)
            case ev.MediaDelta(part=part, media_type=kind, text=text):
                if kind.startswith("audio/") and text:
                    yield from self._text(part, text)
            case ev.ToolStart(part=part, id=id, name=name):
                self._called = True
                self._open.add(part)
                yield ev.ToolStart(self._key(part), id, name)
            case ev.ToolArgs(part=part, text=text) if isinstance(self._turn.parts[part], ToolCall):
                if text:
                    yield ev.ToolArgs(self._key(part), text)
            case ev.PartEnd(part=part) if part in self._open:
                if part not in self._used and not isinstance(self._turn.parts[part], ToolCall):
                    yield ev.TextDelta(self._key(part), "")
                yield ev.PartEnd(self._key(part))
            case ev.Raw(part=part, api="realtime", frame=frame):
                yield ev.Raw(self._key(part), "realtime", frame)
            case ev.Usage(input=read, output=written, cached=cached):
                if self._turn.finish or self._turn.error:
                    yield ev.Usage(read, written, cached=min(cached, read))
            case ev.Finish(reason=reason):
                usual = "tool_calls" if self._called else "stop"
                yield ev.Finish(reason if reason in ("length", "content_filter") else usual)
            case ev.StreamError(message=message, type=type, code=code):
                yield ev.StreamError(message, type or "server_error", code)

    def _text(self, part: int, text: str) -> Iterator[ev.Event]:
        self._open.add(part)
        if text:
            self._used.add(part)
            yield ev.TextDelta(self._key(part), text)

    def _key(self, part: int) -> int:
        return self._keys.setdefault(part, len(self._keys))
