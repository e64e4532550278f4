"""The answers of Cohere: the events of a turn to those of its stream, and a body.

https://docs.cohere.com/reference/chat-stream

An answer with calls has no content before them: the texts until the first call are the tool plan.
(Reasoning has blocks of its own.)
"""

from __future__ import annotations

from typing import Any

from mockllm.core import events as ev
from mockllm.core.events import Frame
from mockllm.core.seeded import derive_int
from mockllm.core.timeline import expand
from mockllm.core.turn import Text, ToolCall, Turn
from mockllm.wire.protocols.base import Reply, tokens_in
from mockllm.wire.protocols.cohere import API, fields
from mockllm.wire.protocols.custom_calls import function
from mockllm.wire.protocols.openai_common import function_call
from mockllm.wire.protocols.records import Json
from mockllm.wire.protocols.values import merge

_DONE = Frame("[DONE]")


class Encoder:
    """Encodes the events of a turn as those of its stream. Content blocks and calls have indexes of
    their own, each from 0."""

    def __init__(self, turn: Turn, reply: Reply) -> None:
        self._turn = turn
        self._reply = reply
        self._planning = bool(turn.tool_calls)
        self._plan: set[int] = set()
        self._blocks: dict[int, int] = {}
        self._calls: dict[int, int] = {}
        self._sent: dict[int, int] = {}
        self._cited = 0

    def encode(self, event: ev.Event) -> list[Frame]:
        """The frames of one event of `expand(turn)`; none for an event that the API cannot
        express."""
        if isinstance(event, ev.Raw):
            return [event.frame] if event.api == API else []
        frames = [fields.event_frame(value) for value in self.values(event)]
        ended = isinstance(event, (ev.Finish, ev.StreamError))
        return [*frames, _DONE] if ended else frames

    def values(self, event: ev.Event) -> list[Json]:
        """The JSON objects of one event, in order."""
        match event:
            case ev.Start():
                return [_message_start(self._reply)]
            case ev.TextDelta() | ev.RefusalDelta():
                return self._text(event)
            case ev.ReasoningDelta():
                return self._content(event.part, "thinking", event.text)
            case ev.ToolStart():
                return [self._call(event)]
            case ev.ToolArgs() if event.part in self._calls:
                return [self._arguments(event.part, self._fragment(event))]
            case ev.Cite():
                return self._cite(event)
            case ev.PartEnd():
                return self._end(event.part)
            case ev.Finish():
                at_sequence = event.stop_sequence is not None
                reason = fields.write_finish(event.reason, event.raw, at_sequence=at_sequence)
                return [self._message_end(finish_reason=reason)]
            case ev.StreamError():
                return [self._message_end(**fields.write_failure(event))]
        return []

    def _text(self, event: ev.TextDelta | ev.RefusalDelta) -> list[Json]:
        part, text = event.part, event.text
        if part in self._plan or (self._planning and part not in self._blocks):
            self._plan.add(part)
            return [{"type": "tool-plan-delta", "delta": {"message": {"tool_plan": text}}}]
        values = self._content(part, "text", text)
        if isinstance(event, ev.TextDelta) and event.logprobs:
            values[-1]["logprobs"] = _logprobs(event)
        return values

    def _content(self, part: int, type: str, text: str) -> list[Json]:
        started = part in self._blocks
        index = self._blocks.setdefault(part, len(self._blocks))
        start = _event("content-start", index, content={"type": type, type: ""})
        delta = _event("content-delta", index, content={type: text})
        return [delta] if started else [start, delta]

    def _call(self, event: ev.ToolStart) -> Json:
        self._planning = False
        index = self._calls[event.part] = len(self._calls)
        call = function_call(event.id, event.name, "")
        return _event("tool-call-start", index, tool_calls=call)

    def _arguments(self, part: int, text: str) -> Json:
        call = {"function": {"arguments": text}}
        return _event("tool-call-delta", self._calls[part], tool_calls=call)

    def _fragment(self, event: ev.ToolArgs) -> str:
        number = self._sent[event.part] = self._sent.get(event.part, -1) + 1
        call = self._turn.parts[event.part]
        if isinstance(call, ToolCall) and call.custom:
            return function(call).fragments[number]
        return event.text

    def _cite(self, cite: ev.Cite) -> list[Json]:
        part = self._turn.parts[cite.part]
        assert isinstance(part, Text)  # no other part has citations
        number, self._cited = self._cited, self._cited + 1
        citation = fields.write_cite(cite, part.text, number, self._blocks.get(cite.part))
        start = _event("citation-start", number, citations=citation)
        return [start, {"type": "citation-end", "index": number}]

    def _end(self, part: int) -> list[Json]:
        if part in self._calls:
            # A call without arguments has an empty object.
            none = [] if part in self._sent else [self._arguments(part, "{}")]
            return [*none, {"type": "tool-call-end", "index": self._calls[part]}]
        if part not in self._blocks:
            return []
        return [{"type": "content-end", "index": self._blocks[part]}]

    def _message_end(self, **ending: Any) -> Json:
        usage = self._turn.usage
        counted = {} if usage is None else {"usage": fields.write_usage(usage)}
        return {"type": "message-end", "delta": {**ending, **counted}}


def _message_start(reply: Reply) -> Json:
    message = {
        "role": "assistant",
        "content": [],
        "tool_plan": "",
        "tool_calls": [],
        "citations": [],
    }
    return {"id": fields.answer_id(reply), "type": "message-start", "delta": {"message": message}}


def _event(type: str, index: int, **message: Json) -> Json:
    return {"type": type, "index": index, "delta": {"message": message}}


def _logprobs(delta: ev.TextDelta) -> Json:
    """The log probabilities of a fragment; Cohere's tokens have numbers."""
    tokens = tokens_in(delta)
    return {
        "text": delta.text,
        "token_ids": [derive_int(token.text, "token", below=255_000) for token in tokens],
        "logprobs": [token.logprob for token in tokens],
    }


# The body


def encode_body(turn: Turn, reply: Reply) -> Json:
    """The body of an answer that is not streamed: what its stream adds up to. The body of a turn
    with an error is the error only."""
    if turn.error is not None:
        return {"id": fields.answer_id(reply), "message": turn.error.message}
    encoder = Encoder(turn, reply)
    message: Json = {"role": "assistant"}
    body: Json = {"id": fields.answer_id(reply), "finish_reason": "COMPLETE", "message": message}
    for timed in expand(turn):
        for value in encoder.values(timed.event):
            _add(body, message, value)
    if turn.usage is not None:  # also of a turn without an end
        body["usage"] = fields.write_usage(turn.usage)
    return body


_GROWING = frozenset({"text", "thinking", "tool_plan", "arguments"})


def _add(body: Json, message: Json, value: Json) -> None:
    """Adds one event of the stream to the body."""
    part = value.get("delta", {}).get("message", {})
    match value["type"]:
        case "content-start":
            message.setdefault("content", []).append(dict(part["content"]))
        case "content-delta":
            merge(message["content"][value["index"]], part["content"], _GROWING)
            if "logprobs" in value:
                body.setdefault("logprobs", []).append(value["logprobs"])
        case "tool-plan-delta":
            merge(message, part, _GROWING)
        case "tool-call-start":
            message.setdefault("tool_calls", []).append(part["tool_calls"])
        case "tool-call-delta":
            merge(message["tool_calls"][value["index"]], part["tool_calls"], _GROWING)
        case "citation-start":
            message.setdefault("citations", []).append(part["citations"])
        case "message-end":
            body["finish_reason"] = value["delta"]["finish_reason"]
