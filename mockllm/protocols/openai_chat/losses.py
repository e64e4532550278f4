"""What Chat Completions cannot say: a turn as it comes back, and the losses in words."""

from __future__ import annotations

from dataclasses import replace

from mockllm.core import events as ev
from mockllm.core.timeline import expand, fold
from mockllm.core.turn import ToolCall, Turn
from mockllm.protocols.openai_chat.fields import (
    CALLS,
    RAWS,
    REASONING,
    REFUSAL,
    TEXT,
    error_type,
    read_finish,
    write_finish,
)

__all__ = ["LOSSES", "project"]


def project(turn: Turn) -> Turn:
    """The turn as it comes back from a stream whose request asked for usage.

    All reasoning becomes one part, then all text, then all refusals, then come the calls, then
    the frames of this API in order of their arrival. `LOSSES` tells what is dropped. A frame
    that is itself a chunk with something to say counts as what it says, not as a frame.
    """
    keys = _Keys(turn)
    timed = []
    for item in expand(turn):
        event = keys.told(item.event)
        if event is not None:
            timed.append(ev.Timed(item.at, event))
    return fold(timed)


class _Keys:
    """The part keys under which a turn's events come back from the Decoder."""

    def __init__(self, turn: Turn) -> None:
        calls = [i for i, part in enumerate(turn.parts) if isinstance(part, ToolCall)]
        self._calls = {part: CALLS + index for index, part in enumerate(calls)}
        self._refused = bool(turn.refusal)
        self._error = turn.error is not None
        self._raws = RAWS

    def told(self, event: ev.Event) -> ev.Event | None:
        """The event as it comes back; None if it does not."""
        match event:
            case ev.TextDelta() | ev.Cite():
                return replace(event, part=TEXT)
            case ev.ReasoningDelta():
                return replace(event, part=REASONING, summary=False)
            case ev.RefusalDelta():
                return replace(event, part=REFUSAL)
            case ev.ToolStart() | ev.ToolArgs():
                return replace(event, part=self._calls[event.part])
            case ev.Raw(api="chat"):
                self._raws += 1
                return replace(event, part=self._raws)
            case ev.Finish(reason=reason, raw=raw):
                word = write_finish(reason, raw)
                return read_finish(word, calls=bool(self._calls), refused=self._refused)
            case ev.StreamError():
                return replace(event, type=error_type(event.type))
            case ev.Usage() if not self._error:
                return event
            case ev.Start():
                return event
        return None


LOSSES = (
    "Parts of one kind (text, reasoning, refusal) are one: they merge in order of arrival.",
    "Reasoning comes back before text, text before refusals, then calls, then frames.",
    "Signatures are not sent, and a summary of reasoning is sent as reasoning.",
    "Whether log probabilities travel is said by the first fragment of text for all of it.",
    "A finish of `stop` comes back as `refusal` after a refusal, as `tool_calls` (raw: `stop`) "
    "after calls; a finish of `refusal` without a refusal comes back as `stop`.",
    "A finish word of another protocol is said in this one's words.",
    "Usage is streamed only if `stream_options.include_usage` asks for it, and not before an "
    "error; an error without a type is a `server_error`.",
    "With `n` above 1 every choice says the same; only the first comes back.",
    "What a chunk says beyond the neutral words (fields of providers, real log probabilities, "
    "spans of citations) comes back as a frame of its own behind it; of an error only message, "
    "type and code, of several different usages, finishes or reasonings in one chunk the first, "
    "and no `event` or `id` line. Citations are of the whole text.",
    "A body holds no frames of their own and no error after a part of the answer; without a "
    "finish it ends in the usual one.",
)
