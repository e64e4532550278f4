"""The answers of Realtime: the events of a turn to those of the service, and a whole answer.

https://platform.openai.com/docs/api-reference/realtime-server-events

In a session that speaks, a text is a transcript, and each fragment has its sound behind it.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from dataclasses import dataclass

from mockllm.core import events as ev
from mockllm.core.events import Frame
from mockllm.core.seeded import derive
from mockllm.core.timeline import expand
from mockllm.core.turn import ToolCall, Turn
from mockllm.wire.protocols import sound
from mockllm.wire.protocols.base import Reply, dumps
from mockllm.wire.protocols.custom_calls import function
from mockllm.wire.protocols.openai_realtime import API, objects
from mockllm.wire.protocols.openai_realtime.request import Options
from mockllm.wire.protocols.records import Json

_PADDED = 16
"""A fragment and its padding have a multiple of so many characters, which hides its length."""


@dataclass(slots=True)
class _Item:
    """An item of the answer on its way.

    Args:
        index: among the items.
        text: what was said, or the arguments of a call.
        fragments: how many there were.
    """

    index: int
    value: Json
    text: str = ""
    fragments: int = 0


class Encoder:
    """Encodes the events of a turn as those of the service."""

    def __init__(self, turn: Turn, reply: Reply) -> None:
        self._turn, self._reply = turn, reply
        self._options: Options = reply.options
        self._spoken = self._options.modality == "audio"
        self._items: dict[int, _Item] = {}
        self._done: dict[int, Json] = {}
        self._previous = self._options.previous
        self._events = 0

    def encode(self, event: ev.Event) -> list[Frame]:
        """The frames of one event of `expand(turn)`; none for an event that the API cannot
        express."""
        if isinstance(event, ev.Raw):
            return [event.frame] if event.api == API else []
        return [Frame(dumps(value)) for value in self.values(event)]

    def values(self, event: ev.Event) -> list[Json]:
        """The JSON objects of one event, in order."""
        match event:
            case ev.Start():
                created = objects.response(self._reply, "in_progress", None, [])
                return [self._event("response.created", response=created)]
            case ev.TextDelta(part=part, text=text) | ev.RefusalDelta(part=part, text=text):
                sounds = sound.spoken(text, self._options.sound, self._reply.speech, self._seed)
                return self._say(part, text, sounds if self._spoken else ())
            case ev.MediaDelta(media_type=kind) if kind.startswith("audio/"):
                if not (self._spoken or event.text):
                    return []
                format = sound.format_of(self._options.sound)
                sounds = sound.pieces(sound.samples(event.data), format)
                return self._say(event.part, event.text, sounds if self._spoken else ())
            case ev.ToolStart():
                call = {"name": event.name, "call_id": event.id, "arguments": ""}
                return self._open(event.part, {"type": "function_call", **call})
            case ev.ToolArgs() if event.part in self._items:
                return [self._arguments(self._items[event.part], event)]
            case ev.PartEnd() if event.part in self._items:
                return self._close(event.part, self._items[event.part])
            case ev.Finish():
                return [self._end(*objects.ending(event))]
            case ev.StreamError():
                return [self._end("failed", objects.failure(event))]
        return []

    @property
    def _seed(self) -> str:
        return f"{self._reply.seed} {self._events}"

    def _event(self, kind: str, **fields: object) -> Json:
        number, self._events = self._events, self._events + 1
        return {"type": kind, "event_id": objects.event_id(self._reply.seed, number), **fields}

    def _open(self, part: int, fields: Json) -> list[Json]:
        id = objects.item_id(self._reply.token, len(self._items))
        kind = {"id": id, "type": fields["type"], "status": "in_progress"}
        item = self._items[part] = _Item(len(self._items), {**kind, **fields})
        added = self._event("response.output_item.added", **self._place(item), item=item.value)
        previous, self._previous = self._previous, id
        known = {"previous_item_id": previous, "item": item.value}
        return [added, self._event("conversation.item.added", **known)]

    def _place(self, item: _Item) -> Json:
        id = objects.response_id(self._reply.token)
        return {"response_id": id, "output_index": item.index}

    def _within(self, item: _Item) -> Json:
        id = objects.response_id(self._reply.token)
        return {"response_id": id, "item_id": item.value["id"], "output_index": item.index}

    def _say(self, part: int, text: str, sounds: Iterable[bytes]) -> list[Json]:
        """A fragment of a message; its first one begins the message."""
        events = []
        if part not in self._items:
            events += self._open(part, {"type": "message", "role": "assistant", "content": []})
            item = self._items[part]
            empty = self._part("")
            events.append(self._in_content("response.content_part.added", item, part=empty))
        item = self._items[part]
        item.text += text
        kind = "output_audio_transcript" if self._spoken else "output_text"
        if text:
            padded = {"delta": text, "obfuscation": self._padding(text)}
            events.append(self._in_content(f"response.{kind}.delta", item, **padded))
        for data in sounds:
            delta = b64encode(data).decode()
            events.append(self._in_content("response.output_audio.delta", item, delta=delta))
        return events

    def _in_content(self, kind: str, item: _Item, **fields: object) -> Json:
        return self._event(kind, **self._within(item), content_index=0, **fields)

    def _part(self, text: str) -> Json:
        """The content of a message as events of parts have it; in items it has other names."""
        if self._spoken:
            return {"type": "audio", "transcript": text}
        return {"type": "text", "text": text}

    def _padding(self, text: str) -> str:
        return derive(self._seed, "padding", length=-len(text) % _PADDED)

    def _arguments(self, item: _Item, event: ev.ToolArgs) -> Json:
        call, text = self._turn.parts[event.part], event.text
        if isinstance(call, ToolCall) and call.custom:
            text = function(call).fragments[item.fragments]
        item.fragments += 1
        item.text += text
        place = {**self._within(item), "call_id": item.value["call_id"]}
        padded = {"delta": text, "obfuscation": self._padding(text)}
        return self._event("response.function_call_arguments.delta", **place, **padded)

    def _close(self, part: int, item: _Item) -> list[Json]:
        value = item.value
        if value["type"] == "function_call":
            events = self._end_arguments(item)
            value = {**value, "arguments": item.text}
        else:
            events = self._end_content(item)
            kind = {"type": "output_audio", "transcript": item.text}
            plain = {"type": "output_text", "text": item.text}
            value = {**value, "content": [kind if self._spoken else plain]}
        cut = self._turn.finish in ("length", "content_filter")
        is_last = part == max(index for index, _ in enumerate(self._turn.parts))
        value = {**value, "status": "incomplete" if cut and is_last else "completed"}
        self._done[item.index] = value
        # Its predecessor stands on the event that added it; here the service has often null.
        known = self._event("conversation.item.done", previous_item_id=None, item=value)
        done = self._event("response.output_item.done", **self._place(item), item=value)
        return [*events, known, done]

    def _end_arguments(self, item: _Item) -> list[Json]:
        events = []
        if not item.fragments:
            item.text = "{}"
            place = {**self._within(item), "call_id": item.value["call_id"], "delta": "{}"}
            padding = {"obfuscation": self._padding("{}")}
            kind = "response.function_call_arguments.delta"
            events.append(self._event(kind, **place, **padding))
        named = {name: item.value[name] for name in ("call_id", "name")}
        whole = {**self._within(item), **named, "arguments": item.text}
        return [*events, self._event("response.function_call_arguments.done", **whole)]

    def _end_content(self, item: _Item) -> list[Json]:
        part = self._part(item.text)
        ended = self._in_content("response.content_part.done", item, part=part)
        if not self._spoken:
            return [self._in_content("response.output_text.done", item, text=item.text), ended]
        kind = "response.output_audio_transcript.done"
        return [
            self._in_content("response.output_audio.done", item),
            self._in_content(kind, item, transcript=item.text),
            ended,
        ]

    def _end(self, status: str, details: Json | None) -> Json:
        return self._event("response.done", response=self.response(status, details))

    def response(self, status: str, details: Json | None) -> Json:
        """The object of the answer; items on their way are incomplete."""
        output = [
            self._done.get(item.index) or {**item.value, "status": "incomplete"}
            for item in self._items.values()
        ]
        whole, usage = objects.response(self._reply, status, details, output), self._turn.usage
        if usage is not None:
            whole["usage"] = objects.usage_object(usage, self._options)
        return whole


def encode_body(turn: Turn, reply: Reply) -> Json:
    """The object of the last event of an answer."""
    encoder = Encoder(turn, reply)
    last: Json = {}
    for timed in expand(turn):
        for value in encoder.values(timed.event):
            last = value
    if last.get("type") == "response.done":
        return dict(last["response"])
    return encoder.response("in_progress", None)
