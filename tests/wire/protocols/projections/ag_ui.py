"""What AG-UI cannot express, written by hand: the projection of a turn."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import replace

from mockllm.core import events as ev
from mockllm.core.timeline import expand, fold
from mockllm.core.turn import Reasoning, ToolCall, Turn
from mockllm.wire.protocols.ag_ui import API
from mockllm.wire.protocols.ag_ui.decoder import Decoder
from mockllm.wire.protocols.custom_calls import with_functions


def project(turn: Turn) -> Turn:
    """The turn that the Decoder reads from the stream of a turn."""
    return fold(_Decoded(turn).events())


class _Decoded:
    """The events of a turn as the Decoder returns them."""

    def __init__(self, turn: Turn) -> None:
        self._turn = with_functions(turn)
        self._keys: dict[Hashable, int] = {}
        self._frames = Decoder()
        self._called = False

    def events(self) -> Iterator[ev.Timed]:
        for item in expand(self._turn):
            for event in self._decoded(item.event):
                self._called = self._called or isinstance(event, ev.ToolStart)
                yield ev.Timed(item.at, event)

    def _decoded(self, event: ev.Event) -> Iterable[ev.Event]:
        match event:
            case ev.TextDelta(part=part, text=text) | ev.RefusalDelta(part=part, text=text):
                yield ev.TextDelta(self._key(part), text)
            case ev.ReasoningDelta():
                yield replace(event, part=self._key(event.part), summary=False)
            case ev.ToolStart() | ev.ToolArgs() | ev.Signature() if self._is_sent(event):
                yield replace(event, part=self._key(event.part))
            case ev.Raw(native=True, api=api, frame=frame) if api == API:
                yield ev.Raw(self._key(("native", event.part)), API, frame, native=True)
            case ev.Raw(api=api, frame=frame) if api == API:
                for decoded in self._frames.decode(frame):
                    yield self._renumbered(decoded)
            case ev.Start():
                yield event
            case ev.Usage() | ev.Finish() | ev.StreamError() if not self._frames.complete:
                yield from self._ending(event)

    def _is_sent(self, event: ev.ToolStart | ev.ToolArgs | ev.Signature) -> bool:
        part = self._turn.parts[event.part]
        return isinstance(part, ToolCall | Reasoning)

    def _key(self, part: Hashable) -> int:
        return self._keys.setdefault(part, len(self._keys))

    def _renumbered(self, event: ev.Event) -> ev.Event:
        """An event of a frame, with a key among those of the turn."""
        match event:
            case ev.Finish():
                return self._finish()
            case ev.Start() | ev.Usage() | ev.StreamError():
                return event
        return replace(event, part=self._key(("frame", event.part)))

    def _ending(self, event: ev.Usage | ev.Finish | ev.StreamError) -> Iterable[ev.Event]:
        match event:
            case ev.StreamError(message=message, type=type, code=code):
                yield ev.StreamError(message, None, code or type)
            case ev.Finish():
                yield self._finish()
            case ev.Usage() if self._turn.finish is not None or self._turn.error is not None:
                yield event

    def _finish(self) -> ev.Finish:
        return ev.Finish("tool_calls" if self._called else "stop")
