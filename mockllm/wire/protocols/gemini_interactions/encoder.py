"""The stream and the body of an answer, as Interactions sends them.

https://ai.google.dev/gemini-api/docs/interactions/streaming

Each part is a step, or two (a tool of the service and its result). The payload is in the deltas
alone, since clients pass over that of `step.start`; `index` counts the steps of all kinds. The last
event has no steps. The body is what the stream adds up to.
"""

from __future__ import annotations

from typing import Any

from mockllm.core import events as ev
from mockllm.core.events import Frame
from mockllm.core.timeline import expand
from mockllm.core.turn import Media, Reasoning, ServerTool, Text, ToolCall, Turn
from mockllm.wire.protocols.base import Reply, dumps
from mockllm.wire.protocols.custom_calls import function
from mockllm.wire.protocols.gemini_interactions import API, fields, steps
from mockllm.wire.protocols.gemini_interactions.errors import error_body, whole_error, write_error
from mockllm.wire.protocols.records import Json
from mockllm.wire.protocols.values import json_object

_DONE = Frame("[DONE]", event="done")


class Encoder:
    """Turns the events of one turn into the frames of a stream."""

    def __init__(self, turn: Turn, reply: Reply) -> None:
        self._turn = turn
        self._reply = reply
        self._of_custom = {
            index: iter(function(part).fragments)
            for index, part in enumerate(turn.parts)
            if isinstance(part, ToolCall) and part.custom
        }
        self._indexes: dict[int, int] = {}
        self._next = 0
        self._count = 0

    def encode(self, event: ev.Event) -> list[Frame]:
        """The frames of one event, in order; none for what the API cannot express."""
        if isinstance(event, ev.Raw):
            return self._raw(event)
        frames = [Frame(dumps(value), event=value["event_type"]) for value in self.values(event)]
        return [*frames, _DONE] if isinstance(event, ev.Finish) and not self._blocks else frames

    @property
    def _blocks(self) -> bool:
        return self._turn.finish == "content_filter"

    def values(self, event: ev.Event) -> list[Json]:
        """The JSON objects of one event, in order."""
        values = self._values(event)
        self._count += len(values)
        return values

    def _values(self, event: ev.Event) -> list[Json]:
        match event:
            case ev.Start():
                return self._start()
            case ev.TextDelta(text=text) | ev.RefusalDelta(text=text):
                return self._deltas(event.part, {"text": text, "type": "text"})
            case ev.ReasoningDelta():
                return self._deltas(event.part, *self._summary(event))
            case ev.MediaDelta() if event.data:
                return self._media(event)
            case ev.ToolStart() | ev.ServerToolStart():
                return self._open(event.part)
            case ev.ToolArgs() if isinstance(self._turn.parts[event.part], ToolCall):
                text = next(self._of_custom.get(event.part, iter((event.text,))))
                return self._deltas(event.part, {"arguments": text, "type": "arguments_delta"})
            case ev.Cite() if event.has_address:
                return self._cite(event)
            case ev.PartEnd():
                return self._close(event.part)
            case ev.Finish():
                return [self._finish(event)]
            case ev.StreamError():
                return [write_error(event)]
        return []

    def _start(self) -> list[Json]:
        opened = fields.empty_interaction(self._reply)
        state = {"interaction_id": opened["id"], "status": opened["status"]}
        return [
            {"interaction": opened, "event_type": "interaction.created"},
            {**state, "event_type": "interaction.status_update"},
        ]

    # Steps

    def _open(self, part: int) -> list[Json]:
        """The start of the step of a part, once; none for a part that is not sent."""
        if part in self._indexes:
            return []
        match self._turn.parts[part]:
            case Reasoning():
                step: Json = {"type": steps.THOUGHT}
            case ToolCall() as call:
                step = steps.opened_call(call)
            case ServerTool() as tool:
                opened = steps.call_step(tool)
                if opened is None:
                    return []
                step = opened[0]
            case _:
                step = {"type": steps.TEXT}
        return [self._start_step(part, step)]

    def _start_step(self, part: int, step: Json) -> Json:
        index = self._indexes[part] = self._next
        self._next += 1
        return {"index": index, "step": step, "event_type": "step.start"}

    def _deltas(self, part: int, *deltas: Json) -> list[Json]:
        """The start of a step, where it has none yet, and deltas of it."""
        started = self._open(part)
        return [*started, *self._more(part, deltas, self._count + len(started))]

    def _more(self, part: int, deltas: tuple[Json, ...], number: int) -> list[Json]:
        index = self._indexes[part]
        values: list[Json] = []
        for at, delta in enumerate(deltas, number):
            id = {"event_id": fields.event_id(index, delta["type"], at)}
            resumable = id if self._reply.options.background else {}
            values.append({"index": index, "delta": delta, **resumable, "event_type": "step.delta"})
        return values

    def _stop(self, part: int) -> Json:
        return {"index": self._indexes[part], "event_type": "step.stop"}

    def _summary(self, event: ev.ReasoningDelta) -> list[Json]:
        """The delta with a fragment of a summary; none where the thought has a signature only."""
        part = self._turn.parts[event.part]
        if isinstance(part, Reasoning) and part.fragments == ("",):
            return []
        content = {"text": event.text, "type": "text"}
        return [{"content": content, "type": "thought_summary"}]

    def _media(self, event: ev.MediaDelta) -> list[Json]:
        """A piece of sound. Images are sent whole, when their step ends."""
        if not event.media_type.startswith("audio/"):
            return []
        return self._deltas(event.part, steps.media(event.media_type, event.data))

    def _cite(self, cite: ev.Cite) -> list[Json]:
        part = self._turn.parts[cite.part]
        assert isinstance(part, Text)  # no other part has citations
        annotation = steps.annotation(cite, part.text)
        delta = {"annotations": [annotation], "type": "text_annotation_delta"}
        return self._deltas(cite.part, delta)

    def _close(self, part: int) -> list[Json]:
        match self._turn.parts[part]:
            case Reasoning() as thought:
                signature = steps.thought_signature(thought)
                signed = {"signature": signature, "type": "thought_signature"}
                return [*self._deltas(part, signed), self._stop(part)]
            case ServerTool() as tool:
                return self._close_tool(part, tool)
            case Media(media_type=media_type, data=data) if _is_image(media_type) and any(data):
                image = steps.media(media_type, b"".join(data))
                return [*self._deltas(part, image), self._stop(part)]
        return [self._stop(part)] if part in self._indexes else []

    def _close_tool(self, part: int, tool: ServerTool) -> list[Json]:
        """A call and its result, each in a single delta, whose type is that of its step."""
        values: list[Json] = []
        for sent, is_open in ((steps.call_step(tool), True), (steps.result_step(tool), False)):
            if sent is None:
                continue
            step, given = sent
            if not is_open:
                values.append(self._start_step(part, step))
            delta = {"type": step["type"], **given}
            values += self._more(part, (delta,), self._count + len(values))
            values.append(self._stop(part))
        return values

    def _raw(self, event: ev.Raw) -> list[Frame]:
        if event.api != API:
            return []
        value = json_object(event.frame.data) or {}
        index = value.get("index")
        if value.get("event_type") == "step.start" and type(index) is int:
            self._next = max(self._next, index + 1)
        self._count += 1
        return [event.frame]

    # The end

    def _finish(self, event: ev.Finish) -> Json:
        blocked = whole_error(self._turn)
        if blocked is not None:
            return write_error(ev.StreamError(blocked.message, blocked.code))
        status = fields.STATUSES.write(event)
        interaction = fields.whole_interaction(self._reply, status, self._turn.usage)
        return {"interaction": interaction, "event_type": "interaction.completed"}


def _is_image(media_type: str) -> bool:
    return media_type.startswith("image/")


# The body


def encode_body(turn: Turn, reply: Reply) -> Json:
    """The interaction of an answer that is not streamed. That of a turn with an error is the error
    only."""
    refused = whole_error(turn)
    if refused is not None:
        return error_body(refused)
    encoder, accumulator = Encoder(turn, reply), steps.Accumulator()
    for timed in expand(turn):
        if isinstance(timed.event, ev.Raw):
            for frame in encoder.encode(timed.event):
                accumulator.add(json_object(frame.data) or {})
        else:
            for value in encoder.values(timed.event):
                accumulator.add(value)
    finish = turn.finish and ev.Finish(turn.finish, turn.finish_raw, turn.stop_sequence)
    status = fields.STATUSES.write(finish) if finish else "in_progress"
    body = fields.whole_interaction(reply, status, turn.usage)
    made = accumulator.steps()
    if finish or made:
        body["steps"] = made
    named: dict[str, Any] = {name: body.pop(name) for name in ("object", reply.options.names)}
    return body | named
