"""Answers of Realtime back to events.

https://platform.openai.com/docs/api-reference/realtime-server-events

Text and transcripts are text; sound has no neutral form beside the text that is spoken. The decoder
never fails: a frame without a neutral form is kept as `Raw`. The names of the beta, which Azure and
others still send, are read, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from mockllm.core import events as ev
from mockllm.core.events import Frame
from mockllm.core.timeline import fold
from mockllm.core.turn import Turn
from mockllm.wire.protocols.base import no_body
from mockllm.wire.protocols.openai_common import error_of
from mockllm.wire.protocols.openai_realtime import API
from mockllm.wire.protocols.openai_realtime.objects import read_ending, read_usage
from mockllm.wire.protocols.records import Fields, Json
from mockllm.wire.protocols.values import array, mapping, objects, plain_object, string

_Events = Iterator[ev.Event]


@dataclass(slots=True)
class _Part:
    key: int
    is_call: bool
    used: bool = False
    open: bool = True


class Decoder:
    """Turns the frames of one answer into events. `complete` is true after `response.done` or an
    error. Parts get their keys in the order in which they begin."""

    def __init__(self) -> None:
        self.complete = False
        self._begun = self._called = False
        self._keys = 0
        self._parts: dict[str, _Part] = {}

    def decode(self, frame: Frame) -> list[ev.Event]:
        """The events of a frame; `Raw` for a frame without a neutral form."""
        value = plain_object(frame)
        kind = "" if value is None else string(value.get("type"))
        handler = _HANDLERS.get(kind)
        if value is not None and handler is not None:
            return list(handler(self, value))
        if kind.startswith(_OF_SESSIONS):
            return []
        return [ev.Raw(self._new_key(), API, frame)]

    def close(self) -> list[ev.Event]:
        """The ends of parts that are still open when the stream ends."""
        return [event for part in self._parts.values() for event in self._end(part)]

    def _new_key(self) -> int:
        self._keys += 1
        return self._keys - 1

    def _part(self, value: Fields, *, is_call: bool = False) -> _Part:
        """The part that an event belongs to: an item has one."""
        id = string(value.get("item_id"))
        part = self._parts.get(id)
        if part is None:
            part = self._parts[id] = _Part(self._new_key(), is_call)
        return part

    def _end(self, part: _Part) -> _Events:
        if part.open:
            part.open = False
            if not part.used and not part.is_call:
                yield ev.TextDelta(part.key, "")
            yield ev.PartEnd(part.key)

    # Events of the service

    def start(self, value: Fields) -> _Events:
        if not self._begun:
            self._begun = True
            yield ev.Start(string(mapping(value.get("response")).get("id")))

    def item_added(self, value: Fields) -> _Events:
        item = mapping(value.get("item"))
        if item.get("type") != "function_call":
            return
        self._called = True
        part = self._part({"item_id": item.get("id")}, is_call=True)
        yield ev.ToolStart(part.key, string(item.get("call_id")), string(item.get("name")))
        yield from self._arguments(part, string(item.get("arguments")))

    def text(self, value: Fields) -> _Events:
        part = self._part(value)
        if part.open and not part.is_call:
            part.used = True
            yield ev.TextDelta(part.key, string(value.get("delta")))

    def text_done(self, value: Fields) -> _Events:
        """The whole text, where no fragments came before it."""
        part, text = self._part(value), value.get("text", value.get("transcript"))
        if part.open and not part.used and string(text):
            part.used = True
            yield ev.TextDelta(part.key, string(text))

    def nothing(self, value: Fields) -> _Events:
        """A part begins with its first words."""
        return iter(())

    def part_done(self, value: Fields) -> _Events:
        yield from self._end(self._part(value))

    def arguments(self, value: Fields) -> _Events:
        part = self._part(value, is_call=True)
        yield from self._arguments(part, string(value.get("delta")))

    def arguments_done(self, value: Fields) -> _Events:
        part = self._part(value, is_call=True)
        if not part.used:
            yield from self._arguments(part, string(value.get("arguments")))

    def _arguments(self, part: _Part, text: str) -> _Events:
        if text and part.open and part.is_call:
            part.used = True
            yield ev.ToolArgs(part.key, text)

    def item_done(self, value: Fields) -> _Events:
        part = self._parts.get(string(mapping(value.get("item")).get("id")))
        if part is not None:
            yield from self._end(part)

    def end(self, value: Fields) -> _Events:
        response = mapping(value.get("response"))
        yield from self.close()
        self.complete = True
        usage = read_usage(response.get("usage") or value.get("usage"))
        if usage is not None:
            yield usage
        ended = read_ending(response, called=self._called)
        if ended is not None:
            yield ended

    def error(self, value: Fields) -> _Events:
        yield from self.close()
        self.complete = True
        yield error_of(value)

    def body(self, response: Json) -> _Events:
        """The events of a whole answer."""
        yield from self.start({"response": response})
        for number, item in enumerate(objects(response.get("output"))):
            named = {**item, "id": f"{number}"}
            yield from self.item_added({"item": named})
            if item.get("type") == "message":
                for content in array(item.get("content")):
                    part = {"item_id": named["id"], **mapping(content)}
                    yield from self.text_done(part)
                self._part({"item_id": named["id"]})
            yield from self.item_done({"item": named})
        yield from self.end({"response": response})


_OF_SESSIONS = (
    *("session.", "conversation.", "input_audio_buffer.", "output_audio_buffer."),
    *("rate_limits.", "response.output_audio.", "response.audio.", "ping"),
)
"""How events begin that say nothing of the words of an answer."""

_TEXTS = ("output_text", "output_audio_transcript", "text", "audio_transcript")

_HANDLERS: dict[str, Callable[[Decoder, Fields], _Events]] = {
    "response.created": Decoder.start,
    "response.output_item.added": Decoder.item_added,
    "response.content_part.added": Decoder.nothing,
    **{f"response.{kind}.delta": Decoder.text for kind in _TEXTS},
    **{f"response.{kind}.done": Decoder.text_done for kind in _TEXTS},
    "response.content_part.done": Decoder.part_done,
    "response.function_call_arguments.delta": Decoder.arguments,
    "response.function_call_arguments.done": Decoder.arguments_done,
    "response.output_item.done": Decoder.item_done,
    "response.done": Decoder.end,
    "error": Decoder.error,
}


def decode_body(body: Fields) -> Turn:
    """The turn of a whole answer; raises `WireError` for another body."""
    if body.get("object") != "realtime.response":
        raise no_body("a response of Realtime", "`object: realtime.response`", body)
    return fold(ev.Timed(0, event) for event in Decoder().body(dict(body))).whole()
