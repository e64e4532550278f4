"""What a turn loses on its way through AG-UI: in words, and as a function.

Only pure functions may live here.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import replace

from mockllm.core import events as ev
from mockllm.core.timeline import expand, fold
from mockllm.core.turn import Turn
from mockllm.protocols.ag_ui.decoder import Decoder
from mockllm.protocols.ag_ui.objects import API

__all__ = ["LOSSES", "project"]

LOSSES = (
    "Why a complete answer ended is not said: with calls it comes back as `tool_calls`, "
    "otherwise as `stop`; so do `length`, `content_filter` and `refusal`, and the words of other "
    "services.",
    "A refusal is sent as text.",
    "Parts have no index: they come back in the order in which they open.",
    "Citations, log probabilities and that reasoning is a summary are not sent.",
    "An error has no type; its type is sent as the code where it has no code.",
    "A stream that is cut tells no usage.",
    "Frames that say what neutral parts say come back as those parts; frames of other protocols "
    "are left out. A frame that ends the run stands in for the turn's own end and usage.",
    "A body, which is mockllm's own form, has no frames without an event, comments among them.",
)


def project(turn: Turn) -> Turn:
    """The turn as it comes back from the stream; `LOSSES` says what is missing."""
    return fold(_Told(turn).events())


class _Told:
    """The events of a turn as they come back from the Decoder."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._keys: dict[Hashable, int] = {}
        self._frames = Decoder()
        self._called = False

    def events(self) -> Iterator[ev.Timed]:
        for item in expand(self._turn):
            for event in self._told(item.event):
                self._called = self._called or isinstance(event, ev.ToolStart)
                yield ev.Timed(item.at, event)

    def _told(self, event: ev.Event) -> Iterable[ev.Event]:
        match event:
            case ev.TextDelta(part=part, text=text) | ev.RefusalDelta(part=part, text=text):
                yield ev.TextDelta(self._key(part), text)
            case ev.ReasoningDelta():
                yield replace(event, part=self._key(event.part), summary=False)
            case ev.ToolStart() | ev.ToolArgs() | ev.Signature():
                yield replace(event, part=self._key(event.part))
            case ev.Raw(api=api, frame=frame) if api == API:
                for said in self._frames.decode(frame):
                    yield self._said(said)
            case ev.Start():
                yield event
            case ev.Usage() | ev.Finish() | ev.StreamError() if not self._frames.complete:
                yield from self._ending(event)

    def _key(self, part: Hashable) -> int:
        return self._keys.setdefault(part, len(self._keys))

    def _said(self, event: ev.Event) -> ev.Event:
        """What a frame says, with keys of its own."""
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
