"""What Gemini cannot express: the projection of a turn, and a list of the losses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mockllm.core import events as ev
from mockllm.core.timeline import expand, fold
from mockllm.core.turn import Reasoning, ToolCall, Turn
from mockllm.protocols.gemini.errors import NO_MESSAGE, status_of
from mockllm.protocols.gemini.fields import (
    API,
    arguments_of,
    blocked_reason,
    compact,
    ends,
    read_finish,
    signature_of,
    write_finish,
)

__all__ = ["LOSSES", "project"]

LOSSES = (
    "Parts have no boundaries: consecutive texts are joined, and so are consecutive thoughts; "
    "where they alternate, each change begins a new part. Empty fragments are lost.",
    "A refusal is sent as text, and a summary of reasoning as reasoning.",
    "A call is sent when its arguments are complete, in that order; only with "
    "`toolConfig.functionCallingConfig.streamFunctionCallArguments` is it sent in fragments. "
    "Arguments are a JSON value: they come back as compact text.",
    "Calls have no id, except on Vertex AI and from models whose name begins with `gemini-3`.",
    "A call whose arguments are not a JSON object is not sent; a complete answer then ends in "
    "`MALFORMED_FUNCTION_CALL`.",
    "The signature of reasoning is sent with the first call after it that has none, else at the"
    " end as that of the last reasoning. A signature that is not base64 is encoded as base64.",
    "Citations come back at the end, with the last text, and not without a text. They are not "
    "sent in an answer without an end.",
    "Log probabilities are not sent.",
    "`stop` and `tool_calls` are derived from the parts; `refusal` is `stop`. A finish reason "
    "of another protocol is replaced by the equivalent one of this protocol.",
    "Usage comes back at the end only: a stream that is cut or ends in an error has none. "
    "Output tokens are at least those of reasoning.",
    "An error always has one of Google's statuses as type, and a number as code.",
    "Frames of other protocols are not sent. A frame of this protocol with a neutral form comes"
    " back in that form; one with a finish reason, or with a blocked prompt, replaces the end of "
    "the turn.",
    "With `candidateCount` above 1 every candidate has the same content; only the first comes "
    "back.",
)


def project(turn: Turn) -> Turn:
    """The turn that the Decoder reads from the stream of a turn, without ids and without fragments
    of arguments; `LOSSES` lists what is dropped."""
    decoded = _Decoded(turn)
    return fold(
        ev.Timed(item.at, event) for item in expand(turn) for event in decoded.events(item.event)
    )


class _Decoded:
    """The events of a turn as the Decoder returns them."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._next = 0
        self._run: tuple[type[ev.Event], int] | None = None
        self._text: int | None = None
        self._thought: int | None = None
        self._signature: str | None = None
        self._cites: list[ev.Cite] = []
        self._usage: ev.Usage | None = None
        self._calls = self._malformed = self._ended = False

    def events(self, event: ev.Event) -> Iterator[ev.Event]:
        match event:
            case ev.TextDelta(text=text) | ev.RefusalDelta(text=text) if text:
                self._text = self._within(ev.TextDelta)
                yield ev.TextDelta(self._text, text)
            case ev.ReasoningDelta(text=text) if text:
                self._thought = self._within(ev.ReasoningDelta)
                yield ev.ReasoningDelta(self._thought, text)
            case ev.Signature(part=part, value=value) if value:
                if isinstance(self._turn.parts[part], Reasoning):
                    self._signature = signature_of(value)
            case ev.PartEnd(part=part):
                call = self._turn.parts[part]
                if isinstance(call, ToolCall):
                    yield from self._call(call)
            case ev.Cite():
                self._cites.append(event)
            case ev.Usage():
                self._usage = replace(event, output=max(event.output, event.reasoning))
            case ev.Raw(api="gemini", frame=frame):
                self._ended = self._ended or ends(frame)
                if frame.data is None or frame.data.strip() not in ("", "[DONE]"):
                    yield ev.Raw(self._key(), API, frame)
            case ev.Finish():
                yield from self._finish(event)
            case ev.StreamError(message=message):
                code, status = status_of(event)
                yield ev.StreamError(message or NO_MESSAGE, status, str(code))

    def _key(self) -> int:
        self._next += 1
        return self._next - 1

    def _within(self, kind: type[ev.Event]) -> int:
        """The key of the current run of this kind of text, or of a new one."""
        if self._run is None or self._run[0] is not kind:
            self._run = kind, self._key()
        return self._run[1]

    def _call(self, call: ToolCall) -> Iterator[ev.Event]:
        arguments = arguments_of(call)
        if arguments is None:
            self._malformed = True
            return
        key = self._key()
        self._run, self._calls = None, True
        yield ev.ToolStart(key, "", call.name)
        if arguments:
            yield ev.ToolArgs(key, compact(arguments))
        if call.signature:
            yield ev.Signature(key, signature_of(call.signature))
        elif self._signature is not None:
            yield ev.Signature(key, self._signature)
            self._signature = None

    def _finish(self, event: ev.Finish) -> Iterator[ev.Event]:
        reason = write_finish(event.reason, event.raw, malformed=self._malformed)
        if blocked_reason(reason) is None and not self._ended:
            if self._signature is not None:
                key = self._key() if self._thought is None else self._thought
                yield ev.Signature(key, self._signature)
            if self._text is not None:
                yield from (replace(cite, part=self._text) for cite in self._cites)
        if self._usage is not None:
            yield self._usage
        finish = read_finish(reason, calls=self._calls)
        assert finish is not None
        yield finish
