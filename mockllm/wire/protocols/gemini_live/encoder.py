"""The messages of an answer, as Google sends them: each has one thing.

https://ai.google.dev/api/live#BidiGenerateContentServerMessage

All calls of a turn are one message, and nothing ends a turn with calls: the model waits for their
results. What is spoken is sent as text just before its sound. An error is the close frame
that ends the connection; it stands here as a message.
"""

from __future__ import annotations

from mockllm.core import events as ev
from mockllm.core.events import Frame
from mockllm.core.seeded import derive
from mockllm.core.timeline import expand
from mockllm.core.turn import ToolCall, Turn
from mockllm.wire.protocols.base import Reply
from mockllm.wire.protocols.custom_calls import with_functions
from mockllm.wire.protocols.gemini_common import arguments_of, wire, write_media
from mockllm.wire.protocols.gemini_live import API, fields
from mockllm.wire.protocols.records import Fields, Json
from mockllm.wire.protocols.sound import spoken
from mockllm.wire.protocols.values import json_object, mapping, value_or_text


def answer_id(reply: Reply) -> str:
    """The id of an answer, which no message has."""
    return derive(reply.seed, "live", length=22)


class Encoder:
    """Turns the events of one turn into messages."""

    def __init__(self, turn: Turn, reply: Reply) -> None:
        turn = self._turn = with_functions(turn)
        self._reply = reply
        self._options: fields.Options = reply.options
        self._open = {at for at, part in enumerate(turn.parts) if isinstance(part, ToolCall)}
        self._calls: dict[int, Json] = {}
        self._malformed = self._ended = self._heard = False

    def encode(self, event: ev.Event) -> list[Frame]:
        """The frames of one event, in order."""
        match event:
            case ev.TextDelta(text=text) | ev.RefusalDelta(text=text) if text:
                return self._speak(text) if self._options.spoken else [_part({"text": text})]
            case ev.ReasoningDelta(text=text) if text:
                return [_part({"text": text, "thought": True})]
            case ev.MediaDelta():
                return self._media(event)
            case ev.PartEnd(part=part) if part in self._open:
                return self._end_call(part)
            case ev.Raw(api=api, frame=frame) if api == API:
                self._ended = self._ended or is_end(json_object(frame.data) or {})
                return [frame]
            case ev.Finish() if not self._ended:
                return self._finish(event)
            case ev.StreamError():
                return [Frame(wire(fields.write_close(event)))]
        return []

    def _speak(self, text: str) -> list[Frame]:
        """A text as speech; its words are left out where the client does not ask for them."""
        self._heard = True
        asked = self._options.transcribed
        words = [_content(outputTranscription={"text": text})] if asked else []
        seed = derive(self._reply.seed, text)
        sound = spoken(text, "audio/pcm", self._reply.speech, seed)
        return [*words, *(_part(write_media(fields.SPEECH, piece)) for piece in sound)]

    def _media(self, event: ev.MediaDelta) -> list[Frame]:
        self._heard = self._heard or event.media_type.startswith("audio/")
        if event.data:
            return [_part(write_media(event.media_type, event.data))]
        # A transcription names no type: it is that of speech as the service sends it.
        if event.text and event.media_type == fields.SPEECH:
            return [_content(outputTranscription={"text": event.text})]
        return []

    def _end_call(self, part: int) -> list[Frame]:
        """The message with all calls, once the last of them is whole."""
        call = self._turn.parts[part]
        assert isinstance(call, ToolCall)
        self._open.discard(part)
        arguments = arguments_of(call)
        if arguments is None:
            self._malformed = True  # the service sends no call that its parser rejects
        else:
            self._calls[part] = {"name": call.name, "args": arguments, "id": call.id}
        if self._open or not self._calls:
            return []
        calls = [call for _, call in sorted(self._calls.items())]
        return [Frame(wire({"toolCall": {"functionCalls": calls}}))]

    def _finish(self, finish: ev.Finish) -> list[Frame]:
        if self._calls:
            return []
        reason = fields.write_finish(finish, malformed=self._malformed)
        ending: Json = {"serverContent": {"turnComplete": True}}
        if reason:
            ending["serverContent"]["turnCompleteReason"] = reason
        if self._turn.usage is not None:
            modality = "AUDIO" if self._heard else "TEXT"
            ending["usageMetadata"] = fields.write_usage(self._turn.usage, modality)
        return [_content(generationComplete=True), Frame(wire(ending))]


def _content(**fields: object) -> Frame:
    return Frame(wire({"serverContent": fields}))


def _part(part: Json) -> Frame:
    return _content(modelTurn={"parts": [part]})


def is_end(message: Fields) -> bool:
    """Whether a message begins the end of a turn: that with calls ends it, too."""
    content = mapping(message.get("serverContent"))
    ends = ("generationComplete", "turnComplete", "interrupted")
    return "close" in message or "toolCall" in message or any(content.get(name) for name in ends)


def encode_body(turn: Turn, reply: Reply) -> Json:
    """All messages of an answer, with each part in one piece: no answer is sent this way."""
    encoder = Encoder(turn.whole(), reply)
    frames = [frame for item in expand(turn.whole()) for frame in encoder.encode(item.event)]
    return {"messages": [value_or_text(frame.data or "") for frame in frames]}
