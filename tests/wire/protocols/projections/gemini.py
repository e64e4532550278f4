"""What Gemini cannot express, written by hand: the projection of a turn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from mockllm.core import events as ev
from mockllm.core.timeline import expand, fold
from mockllm.core.turn import Reasoning, ServerTool, ToolCall, Turn
from mockllm.wire.protocols.custom_calls import with_functions
from mockllm.wire.protocols.gemini import API
from mockllm.wire.protocols.gemini.errors import NO_MESSAGE, status_of
from mockllm.wire.protocols.gemini.fields import (
    blocked_reason,
    ends,
    has_part,
    read_finish,
    write_finish,
)
from mockllm.wire.protocols.gemini.native import NATIVE, write_field
from mockllm.wire.protocols.gemini.server_tools import (
    call_part,
    read_call,
    read_result,
    result_part,
)
from mockllm.wire.protocols.gemini_common import arguments_of, compact
from tests.wire.protocols.projections.gemini_signatures import Signatures


def project(turn: Turn) -> Turn:
    """The turn that the Decoder reads from the stream of a turn, without ids and without fragments
    of arguments."""
    turn = with_functions(turn)
    decoded = _Decoded(turn)
    return fold(
        ev.Timed(item.at, event) for item in expand(turn) for event in decoded.events(item.event)
    )


class _Decoded:
    """The events of a turn as the Decoder returns them."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._signatures = Signatures()
        self._runs = self._signatures.runs
        self._called: tuple[str, int] | None = None
        self._cites: list[ev.Cite] = []
        self._native: dict[str, Any] = {}
        self._usage: ev.Usage | None = None
        self._calls = self._malformed = self._ended = False

    def events(self, event: ev.Event) -> Iterator[ev.Event]:
        match event:
            case ev.TextDelta(part=part, text=text):
                signature = self._signatures.of_fragment(part, self._turn.parts[part], text)
                logprobs = event.logprobs and event.tokens != ()
                if text:
                    yield from self._late()
                    yield from self._runs.delta("text", text, signature, logprobs=logprobs)
            case ev.RefusalDelta(text=text) if text:
                yield from self._late()
                yield from self._runs.delta("text", text)
            case ev.ReasoningDelta(text=text) if text:
                yield from self._late()
                yield from self._runs.delta("thought", text)
            case ev.MediaDelta(part=part, media_type=media_type, data=data) if data:
                yield from self._late()
                signature = self._signatures.of_media(part, self._turn.parts[part])
                yield from self._runs.media(media_type, data, signature)
            case ev.Signature(part=part, value=value):
                if isinstance(self._turn.parts[part], Reasoning):
                    self._signatures.of_reasoning(value)
            case ev.PartEnd(part=part):
                yield from self._end(part)
            case ev.Cite():
                self._cites.append(replace(event, passage=None))
            case ev.Usage():
                output = max(event.output, event.reasoning)
                self._usage = replace(event, output=output, cache_written=0)
            case ev.Raw(api="gemini", frame=frame, native=True):
                self._native |= write_field(frame)
            case ev.Raw(api="gemini", frame=frame):
                yield from self._late()
                self._ended = self._ended or ends(frame)
                if has_part(frame):
                    yield from self._runs.end()
                if frame.data is None or frame.data.strip() not in ("", "[DONE]"):
                    yield ev.Raw(self._runs.key(), API, frame)
            case ev.Finish():
                yield from self._finish(event)
            case ev.StreamError(message=message):
                code, status = status_of(event)
                yield ev.StreamError(message or NO_MESSAGE, status, str(code))

    def _late(self) -> Iterator[ev.Event]:
        yield from self._signatures.flush()[1]

    def _end(self, part: int) -> Iterator[ev.Event]:
        match self._turn.parts[part]:
            case ToolCall() as call:
                yield from self._call(call)
            case ServerTool() as tool:
                yield from self._server_tool(tool)

    def _call(self, call: ToolCall) -> Iterator[ev.Event]:
        arguments = arguments_of(call)
        if arguments is None:
            self._malformed = True
            return
        yield from self._late()
        yield from self._runs.end()
        key = self._runs.key()
        self._calls = True
        yield ev.ToolStart(key, "", call.name)
        if arguments:
            yield ev.ToolArgs(key, compact(arguments))
        signature = self._signatures.of_call(call)
        if signature:
            yield ev.Signature(key, signature)

    def _server_tool(self, tool: ServerTool) -> Iterator[ev.Event]:
        called, answered = call_part(tool), result_part(tool)
        if called is not None or answered is not None:
            yield from self._late()
            yield from self._runs.end()
        call = read_call(called or {})
        if call is not None:
            key = self._runs.key()
            self._called = call.id, key
            yield ev.ServerToolStart(key, call.id, call.kind, call.name)
            if call.input:
                yield ev.ToolArgs(key, call.input)
        result = read_result(answered or {})
        if result is not None:
            yield from self._result(result)

    def _result(self, result: ServerTool) -> Iterator[ev.Event]:
        """A result: of the call directly before it, or a part of its own."""
        key = self._runs.last
        if self._called != (result.id, key):
            key = self._runs.key()
            yield ev.ServerToolStart(key, result.id, result.kind, result.name)
        self._called = None
        yield ev.ServerToolResult(key, result.output or "")

    def _finish(self, event: ev.Finish) -> Iterator[ev.Event]:
        reason = write_finish(event.reason, event.raw, malformed=self._malformed)
        if blocked_reason(reason) is None and not self._ended:
            for signature in self._signatures.last():
                yield from self._runs.empty(signature)
            if self._runs.text is not None:
                yield from (replace(cite, part=self._runs.text) for cite in self._cites)
            for name in filter(self._native.__contains__, NATIVE):
                value = self._native[name]
                keys = value if isinstance(value, dict) else {"token": value}
                text = compact({"type": name, **keys})
                yield ev.Raw(self._runs.key(), API, ev.Frame(text), native=True)
        if self._usage is not None:
            yield self._usage
        finish = read_finish(reason, calls=self._calls)
        assert finish is not None
        yield finish
