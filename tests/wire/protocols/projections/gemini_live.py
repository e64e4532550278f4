"""What Gemini Live cannot express, written by hand: the projection of a turn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mockllm.core import events as ev
from mockllm.core.timeline import expand, fold
from mockllm.core.turn import ToolCall, Turn
from mockllm.wire.protocols.custom_calls import with_functions
from mockllm.wire.protocols.gemini_common import arguments_of, compact
from mockllm.wire.protocols.gemini_live import API
from mockllm.wire.protocols.gemini_live.decoder import Decoder
from mockllm.wire.protocols.gemini_live.fields import read_finish, write_finish


def project(turn: Turn) -> Turn:
    """The turn that the Decoder reads from the messages of a turn."""
    decoded = _Decoded(with_functions(turn))
    return fold(
        ev.Timed(item.at, event)
        for item in expand(decoded.turn)
        for event in decoded.events(item.event)
    )


class _Decoded:
    """The events of a turn as the Decoder returns them."""

    def __init__(self, turn: Turn) -> None:
        self.turn = turn
        self._kind, self._last = "", -1
        self._ended: set[int] = set()
        self._sent = self._malformed = self._raw_end = False
        self._usage: ev.Usage | None = None

    def events(self, event: ev.Event) -> Iterator[ev.Event]:
        match event:
            case ev.TextDelta(text=text) | ev.RefusalDelta(text=text) if text:
                yield ev.TextDelta(self._key("text"), text)
            case ev.ReasoningDelta(text=text) if text:
                yield ev.ReasoningDelta(self._key("thought"), text)
            case ev.MediaDelta():
                yield from self._media(event)
            case ev.PartEnd(part=part) if isinstance(self.turn.parts[part], ToolCall):
                self._ended.add(part)
                yield from self._calls()
            case ev.Usage():
                output = max(event.output, event.reasoning)
                self._usage = replace(event, output=output, cache_written=0)
            case ev.Raw(api=api, frame=frame) if api == API:
                frames = Decoder()
                for decoded in frames.decode(frame):
                    if isinstance(decoded, ev.Raw):
                        yield replace(decoded, part=self._key())
            case ev.Finish() if not self._sent:
                reason = write_finish(event, malformed=self._malformed)
                if self._usage is not None:
                    yield self._usage
                yield read_finish(reason)
            case ev.StreamError(message=message, code=code):
                is_close = code is not None and len(code) == 4 and code in ("1007", "1008", "4000")
                reason = message.encode("utf-8", "replace")[:123].decode("utf-8", "ignore")
                yield ev.StreamError(reason, None, code if is_close else None)

    def _media(self, event: ev.MediaDelta) -> Iterator[ev.Event]:
        if event.text:
            if event.media_type == "audio/pcm;rate=24000":
                yield replace(event, part=self._key(event.media_type))
        elif event.data and event.media_type.startswith("audio/"):
            yield replace(event, part=self._key(event.media_type))
        elif event.data:
            yield replace(event, part=self._key())

    def _calls(self) -> Iterator[ev.Event]:
        """All calls, when the last of them has ended."""
        calls = {at: part for at, part in enumerate(self.turn.parts) if isinstance(part, ToolCall)}
        if not self._ended.issuperset(calls):
            return
        for call in calls.values():
            arguments = arguments_of(call)
            if arguments is None:
                self._malformed = True
                continue
            key = self._key()
            self._sent = True
            yield ev.ToolStart(key, call.id, call.name)
            if arguments:
                yield ev.ToolArgs(key, compact(arguments))
        if self._sent:
            yield ev.Finish("tool_calls")

    def _key(self, kind: str = "") -> int:
        """The part of a fragment of this kind; a new one for "", which nothing continues."""
        if not kind or kind != self._kind:
            self._last += 1
        self._kind = kind
        return self._last
