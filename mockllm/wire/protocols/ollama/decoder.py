"""Reads streams and bodies of Ollama, and of servers that imitate it.

https://github.com/ollama/ollama/blob/main/docs/api.md#generate-a-chat-completion

No field is required. Any object may have calls, the last one too; arguments may be a string with
JSON. Consecutive texts are one part, and so are consecutive pieces of thinking. A line without a
neutral form is kept as `Raw`. In an object thinking comes first, then text, then calls.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Literal

from mockllm.core import events as ev
from mockllm.core.events import Frame
from mockllm.core.jsontext import json_bytes
from mockllm.core.timeline import fold
from mockllm.core.turn import Turn
from mockllm.wire.protocols.base import dumps, no_body
from mockllm.wire.protocols.ollama import API
from mockllm.wire.protocols.ollama.encoder import is_end
from mockllm.wire.protocols.ollama.errors import error_of
from mockllm.wire.protocols.ollama.objects import COUNTS, DURATIONS, read_finish, read_usage
from mockllm.wire.protocols.records import Fields
from mockllm.wire.protocols.values import json_object, mapping, objects, string

Kind = Literal["text", "thinking"]

_READ = {"model", "created_at", "message", "response", "thinking", "tool_calls", "done"}
_READ |= {"done_reason", "context", "logprobs", *COUNTS, *DURATIONS}


class Decoder:
    """Turns the frames of one stream into events. `complete` is true once an object ended the
    answer."""

    def __init__(self) -> None:
        self.complete = False
        self._started = False
        self._kind: Kind | None = None
        self._key = -1
        self._called = False

    def decode(self, frame: Frame) -> list[ev.Event]:
        """The events of a frame; none for a blank line, `Raw` for one without a neutral form."""
        if frame.data is None or not frame.data.strip():
            return []
        value = json_object(frame.data)
        events: list[ev.Event] | None = None
        if value is not None:
            # JSON that could be parsed may still be nested too deeply to be encoded again.
            with suppress(RecursionError):
                events = list(self._object(value))
        if events is None or (not events and not _READ.issuperset(value or {})):
            events = [*self.close(), ev.Raw(self._next(), API, frame)]
        if events and not self._started:
            self._started = True
            events.insert(0, ev.Start("", string((value or {}).get("model"))))
        return events

    def close(self) -> list[ev.Event]:
        """The end of the part that is still open when the stream ends."""
        kind, self._kind = self._kind, None
        return [] if kind is None else [ev.PartEnd(self._key)]

    def _next(self) -> int:
        self._key += 1
        return self._key

    def _object(self, value: Fields) -> Iterator[ev.Event]:
        error = error_of(value)
        message = mapping(value.get("message", value))
        if error is None:
            yield from self._text("thinking", message.get("thinking"))
            text = message.get("content", message.get("response"))
            yield from self._text("text", text, logprobs=bool(value.get("logprobs")))
            for call in objects(message.get("tool_calls")):
                yield from self._call(call)
        if not is_end(value):
            return
        self.complete = True
        yield from self.close()
        if error is not None:
            yield error
            return
        usage = read_usage(value)
        if usage is not None:
            yield usage
        yield read_finish(string(value.get("done_reason")), calls=self._called)

    def _text(self, kind: Kind, text: object, *, logprobs: bool = False) -> Iterator[ev.Event]:
        if not isinstance(text, str) or not text:
            return
        if self._kind != kind:
            yield from self.close()
            self._kind, self._key = kind, self._next()
        if kind == "text":
            yield ev.TextDelta(self._key, text, logprobs)
        else:
            yield ev.ReasoningDelta(self._key, text)

    def _call(self, call: Fields) -> Iterator[ev.Event]:
        function = mapping(call.get("function"))
        given = function.get("arguments")
        text = given if isinstance(given, str) else json_bytes(dumps(given)).decode()
        yield from self.close()
        key = self._next()
        self._called = True
        yield ev.ToolStart(key, string(call.get("id")), string(function.get("name")))
        if given is not None and text.strip():
            yield ev.ToolArgs(key, text)
        yield ev.PartEnd(key)


def decode_body(body: Fields) -> Turn:
    """The turn of an answer, or of an error body; raises `WireError` if it is neither."""
    if not body.keys() & {"message", "response", "error"}:
        raise no_body("an Ollama body", "`message`, `response` or `error`", body)
    decoder = Decoder()
    events = [*decoder.decode(Frame(dumps(body))), *decoder.close()]
    return fold(ev.Timed(0, event) for event in events).whole()
