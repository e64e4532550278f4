"""What Ollama cannot express, written by hand: the projection of a turn."""

from __future__ import annotations

import json
from collections.abc import Iterator

from mockllm.core import events as ev
from mockllm.core.timeline import expand, fold
from mockllm.core.turn import ToolCall, Turn
from mockllm.wire.protocols.custom_calls import with_functions

__all__ = ["project"]


def project(turn: Turn) -> Turn:
    """The turn that the Decoder reads from the stream of a turn: neighbouring texts are one, calls
    are whole, and only the reasons `stop` and `length` and the counts are kept."""
    turn = with_functions(turn)
    decoded = _Decoded(turn)
    return fold(
        ev.Timed(item.at, event) for item in expand(turn) for event in decoded.events(item.event)
    )


class _Decoded:
    """The events of a turn as the Decoder returns them."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._run: type | None = None
        self._key = 0
        self._called = False

    def events(self, event: ev.Event) -> Iterator[ev.Event]:
        match event:
            case ev.TextDelta(text=text) | ev.RefusalDelta(text=text) if text:
                logprobs = isinstance(event, ev.TextDelta) and event.logprobs and event.tokens != ()
                yield ev.TextDelta(self._in_run(ev.TextDelta), text, logprobs)
            case ev.ReasoningDelta(text=text) if text:
                yield ev.ReasoningDelta(self._in_run(ev.ReasoningDelta), text)
            case ev.PartEnd(part=part) if isinstance(self._turn.parts[part], ToolCall):
                yield from self._call(self._turn.parts[part])
            case ev.Finish(reason=reason):
                usage = self._turn.usage
                if usage is not None and (usage.input or usage.output or usage.cached):
                    yield ev.Usage(usage.input, usage.output, 0, usage.cached)
                stopped = "tool_calls" if self._called else "stop"
                yield ev.Finish("length" if reason == "length" else stopped)
            case ev.StreamError(message=message):
                yield ev.StreamError(message)

    def _in_run(self, kind: type) -> int:
        if self._run is not kind:
            self._run, self._key = kind, self._key + 1
        return self._key

    def _call(self, call: ToolCall) -> Iterator[ev.Event]:
        try:
            arguments = json.loads(call.arguments)
        except ValueError:
            return
        if not isinstance(arguments, dict):
            return
        self._run, self._key, self._called = None, self._key + 1, True
        yield ev.ToolStart(self._key, call.id, call.name)
        yield ev.ToolArgs(
            self._key, json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))
        )
