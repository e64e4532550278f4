"""What Chat Completions cannot express, written by hand: the projection of a turn."""

from __future__ import annotations

from dataclasses import replace

from mockllm.core import events as ev
from mockllm.core.timeline import expand, fold
from mockllm.core.turn import ToolCall, Turn
from mockllm.wire.protocols.openai_chat.fields import (
    AUDIO,
    CALLS,
    RAWS,
    REASONING,
    REFUSAL,
    TEXT,
    read_finish,
    write_finish,
)


def project(turn: Turn) -> Turn:
    """The turn that the Decoder reads from the stream of a turn, with `include_usage`.

    All reasoning becomes one part, then all text, then all refusals, then the sound, the calls, and
    the frames of this API in order of arrival. A frame that is itself a chunk with known content is
    read as that content, not kept as a frame.
    """
    keys = _Keys(turn)
    timed = []
    for item in expand(turn):
        event = keys.decoded(item.event)
        if event is not None:
            timed.append(ev.Timed(item.at, event))
    return fold(timed)


class _Keys:
    """The part keys that the Decoder gives to a turn's events."""

    def __init__(self, turn: Turn) -> None:
        calls = [i for i, part in enumerate(turn.parts) if isinstance(part, ToolCall)]
        self._calls = {part: CALLS + index for index, part in enumerate(calls)}
        self._refused = bool(turn.refusal)
        self._error = turn.error is not None
        self._raws = RAWS

    def decoded(self, event: ev.Event) -> ev.Event | None:
        """The event as the Decoder returns it; None if it is lost."""
        match event:
            case ev.TextDelta():
                return replace(event, part=TEXT, tokens=None)
            case ev.Cite(url=url, passage=passage):
                bare = replace(event, part=TEXT, passage=None)
                return bare if url or passage is None else None
            case ev.ReasoningDelta():
                return replace(event, part=REASONING, summary=False)
            case ev.RefusalDelta():
                return replace(event, part=REFUSAL)
            case ev.MediaDelta(media_type=media_type) if media_type.startswith("audio/"):
                sent = event.data or event.text
                return replace(event, part=AUDIO, media_type="audio/*") if sent else None
            case ev.ToolStart() | ev.ToolArgs() if event.part in self._calls:
                return replace(event, part=self._calls[event.part])
            case ev.Raw(api="chat"):
                self._raws += 1
                return replace(event, part=self._raws)
            case ev.Finish(reason=reason, raw=raw):
                value = write_finish(reason, raw)
                return read_finish(value, calls=bool(self._calls), refused=self._refused)
            case ev.StreamError():
                return replace(event, type=event.type or "server_error")
            case ev.Usage() if not self._error:
                return event
            case ev.Start():
                return event
        return None
