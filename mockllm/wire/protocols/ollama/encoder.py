"""The stream and the body of an answer.

https://github.com/ollama/ollama/blob/main/docs/api.md#generate-a-chat-completion

Each object has the next piece of text or thinking, or a whole call; the last one has `done: true`
and no content. An answer that is not streamed is all objects joined.
"""

from __future__ import annotations

from mockllm.core import events as ev
from mockllm.core.events import Frame
from mockllm.core.timeline import expand
from mockllm.core.turn import ToolCall, Turn
from mockllm.wire.protocols.base import Reply, tokens_in
from mockllm.wire.protocols.custom_calls import with_functions
from mockllm.wire.protocols.ollama import API
from mockllm.wire.protocols.ollama.objects import (
    Options,
    arguments_of,
    created_at,
    metrics,
    wire,
    write_finish,
)
from mockllm.wire.protocols.records import Fields, Json
from mockllm.wire.protocols.values import json_object, merge


class Encoder:
    """Turns the events of one turn into the objects of one stream. An opaque frame that ends the
    answer replaces the end of the turn."""

    def __init__(self, turn: Turn, reply: Reply) -> None:
        self._turn = with_functions(turn)
        self._options: Options = reply.options
        self._head = {"model": reply.model, "created_at": created_at(reply)}
        self._calls = 0
        self._over = False

    def encode(self, event: ev.Event) -> list[Frame]:
        """The frames of one event, in order."""
        match event:
            case ev.TextDelta(text=text, logprobs=True) if text:
                written = [_write_token(token) for token in tokens_in(event)]
                probabilities = {"logprobs": written} if written else {}
                return [Frame(wire({**self.object(text), **probabilities}))]
            case ev.TextDelta(text=text) | ev.RefusalDelta(text=text) if text:
                return [Frame(wire(self.object(text)))]
            case ev.ReasoningDelta(text=text) if text:
                return [Frame(wire(self.object("", {"thinking": text})))]
            case ev.PartEnd(part=part):
                return self._call(part)
            case ev.Raw(api=api, frame=frame) if api == API and frame.data is not None:
                self._over = self._over or is_end(json_object(frame.data) or {})
                return [frame]
            case ev.Finish() if not self._over:
                return [self._end(event)]
            case ev.StreamError(message=message) if not self._over:
                return [Frame(wire({"error": message}))]
        return []

    def object(self, text: str, more: Fields | None = None) -> Json:
        """An object before the last one.

        Args:
            more: further fields of the message.
        """
        if self._options.generate:
            return {**self._head, "response": text, **(more or {}), "done": False}
        message = {"role": "assistant", "content": text, **(more or {})}
        return {**self._head, "message": message, "done": False}

    def _call(self, part: int) -> list[Frame]:
        call = self._turn.parts[part]
        arguments = arguments_of(call) if isinstance(call, ToolCall) else None
        if not isinstance(call, ToolCall) or arguments is None:
            return []  # the service sends no call that its parser rejects
        function = {"index": self._calls, "name": call.name, "arguments": arguments}
        self._calls += 1
        id = {"id": call.id} if call.id else {}
        return [Frame(wire(self.object("", {"tool_calls": [{**id, "function": function}]})))]

    def _end(self, event: ev.Finish) -> Frame:
        reason = write_finish(event.reason, event.raw)
        end = {"done": True, "done_reason": reason, **metrics(self._turn)}
        return Frame(wire({**self.object(""), **end}))


def _write_token(token: ev.Token) -> Json:
    top = [{"token": other.text, "logprob": other.logprob} for other in token.top]
    own: Json = {"token": token.text, "logprob": token.logprob}
    return {**own, "top_logprobs": top} if top else own


def is_end(value: Fields) -> bool:
    """Whether an object is the last one of a stream: by `done`, by an error, or by the reason of an
    end alone, as some servers send it (ollama/ollama-vscode#61)."""
    if value.get("error") is not None:
        return True
    done = value.get("done")
    return bool(value.get("done_reason")) if done is None else done is True


def encode_body(turn: Turn, reply: Reply) -> Json:
    """The body of an answer that is not streamed: all objects of the stream joined. The body of a
    turn with an error is the error."""
    encoder = Encoder(turn, reply)
    body = encoder.object("")
    for item in expand(turn):
        for frame in encoder.encode(item.event):
            value = json_object(frame.data) or {}
            if "error" in value:
                return {"error": value["error"]}
            merge(body, value, _GROWING)
    return body


_GROWING = frozenset({"content", "thinking", "response", "tool_calls", "logprobs"})
