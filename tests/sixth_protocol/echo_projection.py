"""What the Echo API cannot express, written by hand: the projection of a turn."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import replace

from mockllm.core import events as ev
from mockllm.core.timeline import expand, fold
from mockllm.core.turn import Turn
from tests.sixth_protocol.echo.acts import API, read_finish, write_finish
from tests.sixth_protocol.echo.decoder import Decoder


def project(turn: Turn) -> Turn:
    """The turn as it comes back from the stream."""
    return fold(_Kept(turn).events())


class _Kept:
    """The events of a turn as they come back from the Decoder."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._keys: dict[Hashable, int] = {}
        self._frames = Decoder()

    def events(self) -> Iterator[ev.Timed]:
        for item in expand(self._turn):
            for event in self._event(item.event):
                yield ev.Timed(item.at, event)

    def _event(self, event: ev.Event) -> Iterator[ev.Event]:
        match event:
            case ev.TextDelta():
                yield ev.TextDelta(self._key(event.part), event.text)
            case ev.ReasoningDelta():
                yield ev.ReasoningDelta(self._key(event.part), event.text)
            case ev.RefusalDelta() | ev.ToolStart() | ev.ToolArgs() | ev.Signature():
                yield replace(event, part=self._key(event.part))
            case ev.Raw(api=api, frame=frame) if api == API:
                for inner in self._frames.decode(frame):
                    yield self._of_frame(inner)
            case ev.Finish(reason=reason, raw=raw):
                yield read_finish(write_finish(reason, raw))
            case ev.Usage() if self._turn.finish is None and self._turn.error is None:
                return
            case ev.Start() | ev.Usage() | ev.StreamError():
                yield event

    def _of_frame(self, event: ev.Event) -> ev.Event:
        if isinstance(event, ev.Start | ev.Usage | ev.Finish | ev.StreamError):
            return event
        return replace(event, part=self._key(("frame", event.part)))

    def _key(self, part: Hashable) -> int:
        return self._keys.setdefault(part, len(self._keys))
