"""Answers of Interactions back to events.

https://ai.google.dev/gemini-api/docs/interactions/streaming

Events are read by their `event_type`. What has no neutral form (unknown steps, deltas and events)
is kept as `Raw`. `interaction.completed` has no steps: all content is in the deltas, or, in a body
and from some servers, in the starts of the steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from mockllm.core import events as ev
from mockllm.core.events import Frame
from mockllm.core.timeline import fold
from mockllm.core.turn import Turn
from mockllm.wire.protocols.base import dumps, no_body
from mockllm.wire.protocols.gemini_interactions import API, steps
from mockllm.wire.protocols.gemini_interactions.errors import read_error
from mockllm.wire.protocols.gemini_interactions.fields import STATUSES, read_usage
from mockllm.wire.protocols.records import Fields, Json
from mockllm.wire.protocols.values import array, json_object, mapping, objects, string

_PENDING = ("in_progress", "queued")
_INPUT = ("user_input", "function_result")
"""Steps of the client, which look-ups repeat."""


@dataclass(slots=True)
class _Step:
    """A step while its deltas arrive.

    `kind` is its type, "" for one that is kept as frames. `key` is that of its part, or of the last
    part of several contents; None before the first one. `value` is what is known of it as a whole.
    """

    kind: str
    value: Json
    key: int | None = None
    content: object = None
    text: str = ""
    signature: str = ""
    has_deltas: bool = False


@dataclass(slots=True)
class Decoder:
    """Turns the frames of one stream into events. `complete` is true after the end of the
    interaction or an error; what follows is ignored."""

    complete: bool = False
    _begun: bool = False
    _last: int = -1
    _steps: dict[object, _Step] = field(default_factory=dict)
    _called: dict[tuple[str, str], int] = field(default_factory=dict)

    def decode(self, frame: Frame) -> list[ev.Event]:
        """The events of a frame; none for comments and `[DONE]`."""
        if frame.data is None or self.complete or frame.data.strip() in ("", "[DONE]"):
            return []
        value = json_object(frame.data) or {}
        handler = _HANDLERS.get(string(value.get("event_type")), _other)
        return [self._raw(frame) if event is None else event for event in handler(self, value)]

    def close(self) -> list[ev.Event]:
        """The ends of steps that are still open when the stream ends."""
        open_steps = list(self._steps)
        return [event for index in open_steps for event in self._end(index)]

    def _raw(self, frame: Frame) -> ev.Raw:
        return ev.Raw(self._new_key(), API, frame)

    def _new_key(self) -> int:
        self._last += 1
        return self._last

    # Events of the stream; None stands for the frame itself, kept as `Raw`

    def begin(self, value: Fields) -> Iterator[ev.Event | None]:
        interaction = mapping(value.get("interaction"))
        if not self._begun:
            self._begun = True
            model = string(interaction.get("model")) or string(interaction.get("agent"))
            yield ev.Start(string(interaction.get("id")), model)

    def finish(self, value: Fields) -> Iterator[ev.Event | None]:
        interaction = mapping(value.get("interaction"))
        yield from self.close()
        self.complete = True
        usage = read_usage(interaction.get("usage"))
        if usage is not None:
            yield usage
        errors = [read_error(error) for error in array(interaction.get("errors"))]
        status = string(interaction.get("status"))
        if any(errors):
            yield next(filter(None, errors))
        elif status not in _PENDING:
            yield STATUSES.read(status)

    def start(self, value: Fields) -> Iterator[ev.Event | None]:
        """The events of a `step.start`: the end of the step before, then the parts that it opens;
        None for a step that stays a frame."""
        step, index = mapping(value.get("step")), _hashable(value.get("index"))
        kind = string(step.get("type"))
        yield from self._end(index)
        opened = self._steps[index] = _Step(kind, dict(step))
        if kind in (steps.TEXT, steps.THOUGHT):
            opened.signature = string(step.get("signature"))
            for delta in steps.deltas_of(step):
                yield from self.delta({"index": index, "delta": delta})
        elif kind == steps.CALL:
            opened.key = self._new_key()
            yield ev.ToolStart(opened.key, string(step.get("id")), string(step.get("name")))
        elif steps.is_server_step(kind):
            yield from self._open_tool(opened)
        elif kind not in _INPUT:
            opened.kind = ""
            yield None

    def _open_tool(self, step: _Step) -> Iterator[ev.Event]:
        is_result, kind = steps.is_result(step.kind), steps.neutral_kind(step.kind)
        id = string(step.value.get("call_id" if is_result else "id"))
        if is_result and (kind, id) in self._called:
            step.key = self._called.pop((kind, id))
            return
        step.key = self._new_key()
        name = step.kind if is_result else ""
        if kind == "mcp" and not is_result:
            name = string(step.value.get("name"))
        if not is_result:
            self._called[kind, id] = step.key
        yield ev.ServerToolStart(step.key, id, kind, "" if name == kind else name)

    def delta(self, value: Fields) -> Iterator[ev.Event | None]:
        """The events of a `step.delta`; None where its step, or what it adds, stays a frame."""
        delta, index = mapping(value.get("delta")), _hashable(value.get("index"))
        kind = string(delta.get("type"))
        step = self._steps.get(index)
        if step is None and kind in _OPENED_BY:
            step = self._steps[index] = _Step(_OPENED_BY[kind], {})
        if step is None or step.kind in ("", *_INPUT):
            yield None
        elif kind == step.kind and steps.is_server_step(kind):
            step.value |= delta
        elif kind == "arguments_delta" and step.kind == steps.CALL:
            step.has_deltas = True
            assert step.key is not None
            yield ev.ToolArgs(step.key, string(delta.get("arguments")))
        elif kind == "thought_signature" and step.kind == steps.THOUGHT:
            # Empty ones come between the summaries; the last other one counts.
            step.signature = string(delta.get("signature")) or step.signature
        elif kind == "thought_summary" and step.kind == steps.THOUGHT:
            yield from self._summary(step, delta)
        elif step.kind == steps.TEXT:
            yield from self._contents(step, delta)
        else:
            yield None

    def _summary(self, step: _Step, delta: Fields) -> Iterator[ev.Event | None]:
        text = mapping(delta.get("content")).get("text")
        if not isinstance(text, str):
            yield None
            return
        yield ev.ReasoningDelta(self._key(step, "thought"), text)

    def _contents(self, step: _Step, content: Fields) -> Iterator[ev.Event | None]:
        """A content, or a delta of one: text, citations of it, an image or a piece of sound."""
        text, media = content.get("text"), steps.read_media(content)
        if content.get("type") == "text" and isinstance(text, str):
            key = self._key(step, "text")
            step.text += text
            yield ev.TextDelta(key, text)
        elif media is not None:
            is_sound = media[0].startswith("audio/")
            yield ev.MediaDelta(self._key(step, media if not is_sound else media[0]), *media)
        elif step.content == "text" and step.key is not None:
            cites = steps.read_annotations(content.get("annotations"), step.key, step.text)
            yield from [None] if cites is None else cites
        else:
            yield None

    def _key(self, step: _Step, content: object) -> int:
        """The key of the part that a content belongs to: another kind begins another part, and so
        does each image."""
        if step.key is None or step.content != content or isinstance(content, tuple):
            step.key, step.content, step.text = self._new_key(), content, ""
        return step.key

    def stop(self, value: Fields) -> Iterator[ev.Event | None]:
        index = _hashable(value.get("index"))
        is_kept = index in self._steps and not self._steps[index].kind
        yield from self._end(index)
        if is_kept:
            yield None

    def _end(self, index: object) -> Iterator[ev.Event]:
        """The end of a step that is open, with what no delta brought."""
        step = self._steps.pop(index, None)
        if step is None or step.kind in ("", *_INPUT):
            return
        if step.kind == steps.TEXT and step.key is None:
            yield ev.TextDelta(self._key(step, "text"), "")
        elif step.kind == steps.THOUGHT and step.key is None:
            step.key = self._new_key()
            if not step.signature:
                yield ev.ReasoningDelta(step.key, "")
        assert step.key is not None
        yield from self._rest(step, step.key)
        yield ev.PartEnd(step.key)

    def _rest(self, step: _Step, key: int) -> Iterator[ev.Event]:
        if step.kind == steps.CALL:
            arguments = step.value.get("arguments")
            if arguments and not step.has_deltas:
                yield ev.ToolArgs(
                    key, arguments if isinstance(arguments, str) else dumps(arguments)
                )
            step.signature = string(step.value.get("signature"))
        elif steps.is_result(step.kind):
            yield ev.ServerToolResult(key, steps.read_output(step.value))
        elif steps.is_server_step(step.kind) and steps.read_input(step.value):
            yield ev.ToolArgs(key, steps.read_input(step.value))
        if step.signature and not steps.is_server_step(step.kind):
            yield ev.Signature(key, step.signature)


_OPENED_BY = {
    "text": steps.TEXT,
    "thought_summary": steps.THOUGHT,
    "thought_signature": steps.THOUGHT,
}
"""Deltas that open their step where its start is missing."""


def _hashable(index: object) -> object:
    return index if isinstance(index, (int, str)) else None


def _other(decoder: Decoder, value: Fields) -> Iterator[ev.Event | None]:
    """An error, also in the form of a server before the service; every other event is kept."""
    error = read_error(value.get("error"))
    if error is None:
        yield None
        return
    yield from decoder.close()
    decoder.complete = True
    yield error


_HANDLERS: dict[str, Callable[[Decoder, Fields], Iterator[ev.Event | None]]] = {
    "interaction.created": Decoder.begin,
    "interaction.status_update": lambda _decoder, _value: iter(()),
    "interaction.completed": Decoder.finish,
    "step.start": Decoder.start,
    "step.delta": Decoder.delta,
    "step.stop": Decoder.stop,
}


def decode_body(body: Fields) -> Turn:
    """The turn of an interaction, or of an error body; raises `WireError` if it is neither."""
    error = read_error(body.get("error"))
    if error is not None:
        return Turn(error=error)
    if "status" not in body:
        raise no_body("an Interactions body", "`status` or `error`", body)
    values: list[Json] = [{"event_type": "interaction.created", "interaction": body}]
    for index, step in enumerate(objects(body.get("steps"))):
        bare = {name: value for name, value in step.items() if name not in steps.JOINED}
        values.append({"index": index, "step": bare, "event_type": "step.start"})
        values += [
            {"index": index, "delta": delta, "event_type": "step.delta"}
            for delta in steps.deltas_of(step)
        ]
        values.append({"index": index, "event_type": "step.stop"})
    values.append({"event_type": "interaction.completed", "interaction": body})
    decoder = Decoder()
    frames = [Frame(dumps(value), event=value["event_type"]) for value in values]
    events = [event for frame in frames for event in decoder.decode(frame)]
    return fold(ev.Timed(0, event) for event in [*events, *decoder.close()])
