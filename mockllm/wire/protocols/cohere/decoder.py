"""Answers of Cohere back to events.

https://docs.cohere.com/reference/chat-stream

Events are read by their JSON `type`. The decoder never fails: a frame without a neutral form is
kept as `Raw`, and so is everything after `[DONE]`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from mockllm.core import events as ev
from mockllm.core.events import Frame
from mockllm.core.timeline import fold
from mockllm.core.turn import Turn
from mockllm.wire.protocols.base import no_body
from mockllm.wire.protocols.cohere import API, fields
from mockllm.wire.protocols.cohere.errors import decode_error
from mockllm.wire.protocols.records import Fields, Json
from mockllm.wire.protocols.values import array, mapping, objects, string, typed_event

Kind = Literal["text", "thinking", "call"]


@dataclass(slots=True)
class _Part:
    """A block, the plan or a call. `used` is whether any event with its key was returned."""

    key: int
    kind: Kind
    used: bool = False
    open: bool = True


class Decoder:
    """Turns the frames of one stream into events. `complete` is true after `message-end`, `[DONE]`
    or an error. Parts get their keys in the order in which they begin."""

    def __init__(self) -> None:
        self.complete = False
        self._begun = self._done = self._called = False
        self._parts: list[_Part] = []
        self._keys = 0
        self._blocks: dict[object, _Part] = {}
        self._calls: dict[object, _Part] = {}
        self._plan: _Part | None = None
        self._text: _Part | None = None

    def decode(self, frame: Frame) -> list[ev.Event]:
        """The events of a frame; `Raw` for a frame without a neutral form."""
        if frame.data is None or self._done:
            return [self._raw(frame)]
        if frame.data.strip() == "[DONE]":
            self._done = self.complete = True
            return []
        value = typed_event(frame)
        handler = _HANDLERS.get(value["type"], _other)
        return [self._raw(frame) if event is None else event for event in handler(self, value)]

    def close(self) -> list[ev.Event]:
        """The ends of parts that are still open when the stream ends."""
        return [event for part in self._parts for event in self._end(part)]

    def _raw(self, frame: Frame) -> ev.Raw:
        return ev.Raw(self._new_key(), API, frame)

    def _new_key(self) -> int:
        self._keys += 1
        return self._keys - 1

    def _open(self, kind: Kind) -> _Part:
        part = _Part(self._new_key(), kind)
        self._parts.append(part)
        return part

    def _delta(self, part: _Part, text: str, *, logprobs: bool = False) -> ev.Event:
        part.used = True
        if part.kind == "thinking":
            return ev.ReasoningDelta(part.key, text)
        return ev.TextDelta(part.key, text, logprobs)

    def _end(self, part: _Part) -> Iterator[ev.Event]:
        """The end of a part that is open; one without content becomes an empty one."""
        if part.open:
            part.open = False
            if not part.used:
                yield self._delta(part, "")
            yield ev.PartEnd(part.key)

    # Events of the stream; None stands for the frame itself, kept as `Raw`

    def message_start(self, value: Fields) -> Iterator[ev.Event | None]:
        if not self._begun:
            self._begun = True
            yield ev.Start(string(value.get("id")), string(value.get("model")))

    def content_start(self, value: Fields) -> Iterator[ev.Event | None]:
        content = mapping(_message_in(value).get("content"))
        kind: Kind = "thinking" if content.get("type") == "thinking" else "text"
        part = self._open_block(value.get("index"), kind)
        text = string(content.get(kind))
        if text:
            yield self._delta(part, text)

    def _open_block(self, index: object, kind: Kind) -> _Part:
        part = self._blocks[_hashable(index)] = self._open(kind)
        if kind == "text":
            self._text = part
        return part

    def content_delta(self, value: Fields) -> Iterator[ev.Event | None]:
        content, index = mapping(_message_in(value).get("content")), value.get("index")
        kind: Kind = "thinking" if isinstance(content.get("thinking"), str) else "text"
        text = content.get(kind)
        if not isinstance(text, str):
            yield None
            return
        part = self._blocks.get(_hashable(index))
        # A block that was not begun, or a block of another kind with the same index.
        if part is None or part.kind != kind or not part.open:
            part = self._open_block(index, kind)
        yield self._delta(part, text, logprobs=isinstance(value.get("logprobs"), dict))

    def content_end(self, value: Fields) -> Iterator[ev.Event | None]:
        part = self._blocks.get(_hashable(value.get("index")))
        if part is None:
            yield None
        else:
            yield from self._end(part)

    def tool_plan(self, value: Fields) -> Iterator[ev.Event | None]:
        text = _message_in(value).get("tool_plan")
        if not isinstance(text, str):
            yield None
            return
        if self._plan is None:
            self._plan = self._open("text")
        yield self._delta(self._plan, text)

    def call_start(self, value: Fields) -> Iterator[ev.Event | None]:
        call = _call_in(value)
        function = mapping(call.get("function"))
        name, arguments = function.get("name"), string(function.get("arguments"))
        if not isinstance(name, str):
            yield None
            return
        part = self._calls[_hashable(value.get("index"))] = self._open("call")
        self._called = True
        yield ev.ToolStart(part.key, string(call.get("id")), name)
        if arguments:
            yield from self._arguments(part, arguments)

    def call_delta(self, value: Fields) -> Iterator[ev.Event | None]:
        part = self._calls.get(_hashable(value.get("index")))
        text = mapping(_call_in(value).get("function")).get("arguments")
        if part is None or not part.open or not isinstance(text, str):
            yield None
        else:
            yield from self._arguments(part, text)

    def _arguments(self, part: _Part, text: str) -> Iterator[ev.Event]:
        # A call without arguments may have the text `null` for them (`cohere-zero-arg`).
        if part.used or text != "null":
            part.used = True
            yield ev.ToolArgs(part.key, text)

    def call_end(self, value: Fields) -> Iterator[ev.Event | None]:
        part = self._calls.get(_hashable(value.get("index")))
        if part is None or not part.open:
            yield None
            return
        part.open = False
        yield ev.PartEnd(part.key)

    def citation(self, value: Fields) -> Iterator[ev.Event | None]:
        given = _message_in(value).get("citations")
        cited = list(self._cites(objects(given if isinstance(given, list) else [given])))
        yield from cited
        if not cited:
            yield None

    def _cites(self, citations: list[Json]) -> Iterator[ev.Event]:
        for citation in citations:
            part = self._cited_part(citation)
            if part is not None:
                if not part.used:
                    yield self._delta(part, "")
                yield from fields.read_cites(citation, part.key)

    def _cited_part(self, citation: Fields) -> _Part | None:
        """The text that a citation belongs to: it may come after the end of it."""
        if citation.get("type") == "PLAN":
            return self._plan
        block = self._blocks.get(_hashable(citation.get("content_index", 0)))
        is_text = block is not None and block.kind == "text"
        return block if is_text else self._text or self._plan

    def message_end(self, value: Fields) -> Iterator[ev.Event | None]:
        delta = mapping(value.get("delta"))
        yield from self._ending(delta.get("finish_reason"), delta.get("error"), delta.get("usage"))

    def _ending(self, finish: object, error: object, usage: object) -> Iterator[ev.Event]:
        yield from self.close()
        self.complete = True
        counted = fields.read_usage(usage)
        if counted is not None:
            yield counted
        if string(finish) or string(error):
            yield fields.read_finish(string(finish), error, called=self._called)

    def body(self, body: Fields, message: Fields) -> Iterator[ev.Event | None]:
        """The events of an answer that was not streamed, in the order in which streams have them:
        the reasoning that comes first, the plan, calls, other contents."""
        logprobs: Json = {"logprobs": {}} if body.get("logprobs") else {}
        contents = [mapping(content) for content in array(message.get("content"))]
        blocks = [
            {"index": index, **_message_delta(content=content), **logprobs}
            for index, content in enumerate(contents)
        ]
        texts = (index for index, content in enumerate(contents) if "thinking" not in content)
        first = next(texts, len(blocks))
        for block in blocks[:first]:
            yield from self.content_delta(block)
        if string(message.get("tool_plan")):
            yield from self.tool_plan({"delta": {"message": message}})
        for index, call in enumerate(objects(message.get("tool_calls"))):
            yield from self.call_start({"index": index, **_message_delta(tool_calls=call)})
        for block in blocks[first:]:
            yield from self.content_delta(block)
        yield from self._cites(objects(message.get("citations")))
        yield from self._ending(body.get("finish_reason"), None, body.get("usage"))


def _message_delta(**message: object) -> Json:
    return {"delta": {"message": message}}


def _message_in(value: Fields) -> Fields:
    return mapping(mapping(value.get("delta")).get("message"))


def _call_in(value: Fields) -> Fields:
    """The call in an event: an object, where a body has a list of them."""
    calls = _message_in(value).get("tool_calls")
    return mapping(calls[0] if isinstance(calls, list) and calls else calls)


def _hashable(index: object) -> object:
    """An index; None where it is neither a number nor a string."""
    return index if isinstance(index, (int, str)) else None


def _other(decoder: Decoder, value: Fields) -> Iterator[ev.Event | None]:
    """An error of the service or of a proxy before it; every other event is kept."""
    inner = value.get("error")
    error = decode_error(
        inner if isinstance(inner, dict) else {"message": inner or value.get("message")}
    )
    if error is None:
        yield None
        return
    yield from decoder.close()
    decoder.complete = True
    yield error


def _nothing(decoder: Decoder, value: Fields) -> Iterator[ev.Event | None]:
    return iter(())


_HANDLERS: dict[str, Callable[[Decoder, Fields], Iterator[ev.Event | None]]] = {
    "message-start": Decoder.message_start,
    "content-start": Decoder.content_start,
    "content-delta": Decoder.content_delta,
    "content-end": Decoder.content_end,
    "tool-plan-delta": Decoder.tool_plan,
    "tool-call-start": Decoder.call_start,
    "tool-call-delta": Decoder.call_delta,
    "tool-call-end": Decoder.call_end,
    "citation-start": Decoder.citation,
    "citation-end": _nothing,
    "message-end": Decoder.message_end,
}


def decode_body(body: Fields) -> Turn:
    """The turn of an answer that was not streamed; raises `WireError` for another body."""
    message, error = body.get("message"), decode_error(body)
    if error is not None:
        return Turn(error=error)
    if not isinstance(message, dict):
        raise no_body("an answer of Cohere", "`message` (an object)", body)
    events = Decoder().body(body, message)
    return fold(ev.Timed(0, event) for event in events if event is not None).whole()
