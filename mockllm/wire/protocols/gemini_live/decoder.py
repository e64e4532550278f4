"""Reads the messages of an answer.

https://ai.google.dev/api/live#BidiGenerateContentServerMessage

Consecutive texts are one part, and so are consecutive thoughts, and pieces of sound with what is
spoken in them. Messages about the connection, and fields without a neutral form, are kept as `Raw`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mockllm.core import events as ev
from mockllm.core.events import Frame
from mockllm.core.timeline import fold
from mockllm.core.turn import Turn
from mockllm.wire.protocols.base import dumps, no_body
from mockllm.wire.protocols.gemini_common import compact, read_media, read_usage, wire
from mockllm.wire.protocols.gemini_live import API, fields
from mockllm.wire.protocols.records import Fields, Json
from mockllm.wire.protocols.values import array, json_object, mapping, objects, string


class Decoder:
    """Turns the messages of one answer into events. `complete` is true once the turn is, or the
    model waits for the results of its calls."""

    def __init__(self) -> None:
        self.complete = False
        self._started = self._interrupted = self._called = False
        self._kind, self._last = "", -1

    def decode(self, frame: Frame) -> list[ev.Event]:
        """The events of a message; what of it has no neutral form is kept."""
        message = json_object(frame.data)
        rest = dict(message or {})
        events = list(self._read(rest))
        if message is None or rest or not message:
            kept = frame if rest == (message or {}) else Frame(wire(rest))
            events += [*self._end(), ev.Raw(self._key(), API, kept)]
        if not self._started:
            self._started = True
            events.insert(0, ev.Start())
        return events

    def close(self) -> list[ev.Event]:
        """The end of a part that is open when the stream ends."""
        return self._end()

    def _read(self, rest: Json) -> Iterator[ev.Event]:
        """The events of a message, whose neutral fields are taken out of it."""
        content = rest.get("serverContent")
        if isinstance(content, dict):
            left = dict(content)
            yield from self._content(left)
            rest["serverContent"] = left
            if not left and content:
                del rest["serverContent"]
        if isinstance(rest.get("toolCall"), dict):
            yield from self._calls(rest.pop("toolCall"))
        usage = read_usage(rest.get("usageMetadata"), "responseTokenCount")
        if usage is not None:
            del rest["usageMetadata"]
            yield usage
        if isinstance(rest.get("close"), dict):
            self.complete = True
            yield fields.read_close(rest.pop("close"))

    def _content(self, left: Json) -> Iterator[ev.Event]:
        spoken = string(mapping(left.get("outputTranscription")).get("text"))
        if spoken:
            del left["outputTranscription"]
            yield from self._begin(fields.SPEECH)
            yield ev.MediaDelta(self._last, fields.SPEECH, text=spoken)
        turn = left.pop("modelTurn", None)
        lost = []
        for part in array(mapping(turn).get("parts")):
            events = list(self._part(mapping(part)))
            yield from events
            if not events and part != {"text": ""}:
                lost.append(part)
        if lost or (turn is not None and not isinstance(turn, dict)):
            left["modelTurn"] = {**turn, "parts": lost} if isinstance(turn, dict) else turn
        left.pop("generationComplete", None)
        self._interrupted = bool(left.pop("interrupted", False)) or self._interrupted
        reason = string(left.pop("turnCompleteReason", None))
        if left.pop("turnComplete", None):
            self.complete = True
            if not self._interrupted:
                is_call = self._called and not reason
                yield ev.Finish("tool_calls") if is_call else fields.read_finish(reason)

    def _part(self, part: Fields) -> Iterator[ev.Event]:
        text, media = part.get("text"), read_media(part)
        if isinstance(text, str) and text and part.keys() <= {"text", "thought"}:
            kind = "thought" if part.get("thought") else "text"
            yield from self._begin(kind)
            key = self._last
            yield ev.ReasoningDelta(key, text) if part.get("thought") else ev.TextDelta(key, text)
        elif media is not None and part.keys() == {"inlineData"}:
            if not media[0].startswith("audio/"):
                yield from self._end()  # each image is whole
            yield from self._begin(media[0])
            yield ev.MediaDelta(self._last, *media)

    def _calls(self, tool_call: Fields) -> Iterator[ev.Event]:
        yield from self._end()
        for call in objects(tool_call.get("functionCalls")):
            key, arguments = self._key(), call.get("args")
            yield ev.ToolStart(key, string(call.get("id")), string(call.get("name")))
            if arguments:
                yield ev.ToolArgs(key, compact(arguments))
            yield ev.PartEnd(key)
            self._called = self.complete = True
        if self._called:
            yield ev.Finish("tool_calls")

    def _begin(self, kind: str) -> Iterator[ev.Event]:
        """Opens a part, unless one of this kind is open."""
        if self._kind != kind:
            yield from self._end()
            self._kind, self._last = kind, self._last + 1

    def _end(self) -> list[ev.Event]:
        kind, self._kind = self._kind, ""
        return [ev.PartEnd(self._last)] if kind else []

    def _key(self) -> int:
        self._last += 1
        return self._last


def decode_body(body: Fields) -> Turn:
    """The turn of all messages of an answer.

    Raises:
        WireError: the body has no list of messages.
    """
    if not isinstance(body.get("messages"), list):
        raise no_body("a list of messages of Gemini Live", "`messages`", body)
    decoder = Decoder()
    frames = [Frame(dumps(message)) for message in body["messages"]]
    events = [event for frame in frames for event in decoder.decode(frame)]
    turn = fold(ev.Timed(0, event) for event in [*events, *decoder.close()])
    return replace(turn.whole(), order=(), gaps=())
