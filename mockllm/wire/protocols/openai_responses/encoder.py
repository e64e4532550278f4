"""The stream and the body of an answer, as OpenAI sends them.

https://platform.openai.com/docs/api-reference/responses-streaming

`layout` assigns the parts of the turn to output items; here each event becomes its frames. Every
event has an `event:` line and a `sequence_number` that counts from 0; there is no `[DONE]`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from mockllm.core import events as ev
from mockllm.core.events import Frame
from mockllm.core.seeded import derive
from mockllm.core.turn import Opaque, Part, Reasoning, Refusal, ServerTool, Text, ToolCall, Turn
from mockllm.wire.protocols.base import Reply, logprob
from mockllm.wire.protocols.openai_responses import API, objects, parts
from mockllm.wire.protocols.openai_responses.citations import annotations_of, ends
from mockllm.wire.protocols.openai_responses.images import with_image_calls
from mockllm.wire.protocols.openai_responses.item_fields import (
    PARTIAL_IMAGE,
    Details,
    code_deltas,
)
from mockllm.wire.protocols.openai_responses.layout import bare, lay_out, opening
from mockllm.wire.protocols.openai_responses.server_tools import SERVER_TOOLS, item_type
from mockllm.wire.protocols.records import Json
from mockllm.wire.protocols.values import json_object


def _part_type(part: Part) -> parts.PartType | None:
    """The names for a part; None for what only its item shows: reasoning without text, and the
    input of most hosted tools."""
    match part:
        case Text():
            return parts.OUTPUT_TEXT
        case Refusal():
            return parts.REFUSAL
        case ToolCall(custom=custom):
            return parts.INPUTS["custom_tool_call" if custom else "function_call"]
        case ServerTool():
            return parts.INPUTS.get(item_type(part).type)
        case Reasoning(summary=summary) if not bare(part):
            return parts.SUMMARY if summary else parts.REASONING
    return None


class _Citing:
    def __init__(self, text: Text) -> None:
        annotations = annotations_of(text)
        due = ends(annotations, text.text)
        self._pending = list(zip(due, enumerate(annotations), strict=True))
        self._length = 0

    def add(self, fragment: str) -> list[tuple[int, Json]]:
        """The annotations, with their numbers, that are due after this fragment."""
        self._length += len(fragment)
        due = [numbered for end, numbered in self._pending if end <= self._length]
        del self._pending[: len(due)]
        return due


def _with_written_images(turn: Turn, options: objects.Options) -> objects.Options:
    """The options without partial images where the turn has them as frames."""
    frames = (json_object(part.frame.data) for part in turn.parts if isinstance(part, Opaque))
    types = {value.get("type") for value in frames if value}
    return replace(options, partial_images=0) if _PARTIAL_IMAGE in types else options


_PARTIAL_IMAGE = f"response.{PARTIAL_IMAGE}"


class Encoder:
    """Turns the events of one turn into the frames of a Responses stream."""

    def __init__(self, turn: Turn, reply: Reply) -> None:
        turn = self._turn = with_image_calls(turn)
        self._reply = reply
        self._options = _with_written_images(turn, reply.options)
        self._layout = lay_out(turn, reply)
        self._next = 0
        self._opened: set[int] = set()
        self._citing: dict[int, _Citing] = {}
        self._code: dict[int, list[tuple[str, ...]]] = {}

    def encode(self, event: ev.Event) -> list[Frame]:
        """The frames of one event, in order."""
        match event:
            case ev.Start():
                return self._start()
            case ev.TextDelta():
                return [*self._delta(event.part, event.text, event.tokens), *self._cites(event)]
            case ev.ReasoningDelta() | ev.RefusalDelta():
                return self._delta(event.part, event.text)
            case ev.ToolArgs():
                return self._arguments(event.part, event.text)
            case ev.ToolStart() | ev.ServerToolStart():
                return self._open(event.part)
            case ev.MediaDelta() if event.part in self._layout.positions:
                return self._open(event.part)
            case ev.PartEnd() if event.part in self._layout.positions:
                return self._close(event.part)
            case ev.Raw():
                return self._raw(event)
            case ev.Finish() | ev.StreamError():
                return self._end(event)
        return []

    def _start(self) -> list[Frame]:
        response = objects.response_object(self._reply, "in_progress")
        frame = self._frame
        if response["background"] is not True:
            first = [frame("response.created", response=response)]
        else:
            # A background response waits in a queue before it starts.
            queued = {**response, "status": "queued"}
            first = [frame(f"response.{state}", response=queued) for state in ("created", "queued")]
        return [*first, frame("response.in_progress", response=response)]

    def _frame(self, type: str, **fields: Any) -> Frame:
        frame = objects.frame_of(type, self._next, fields)
        self._next += 1
        return frame

    def _where(self, part: int) -> Json:
        position, names = self._layout.positions[part], _part_type(self._turn.parts[part])
        where: Json = {
            "item_id": position.item.id,
            "output_index": position.item.output_index,
        }
        if names is not None and names.index:
            where[names.index] = position.index
        return where

    def _open(self, part: int) -> list[Frame]:
        """The frames that must come before the first delta of a part; openai-python requires
        `output_item.added` before any event of an item, and `content_part.added` before text."""
        if part in self._opened:
            return []
        self._opened.add(part)
        position, names = self._layout.positions[part], _part_type(self._turn.parts[part])
        frames = []
        if position.number == 0:
            index, item = position.item.output_index, opening(position.item)
            frames.append(self._frame("response.output_item.added", output_index=index, item=item))
        if tool := SERVER_TOOLS.get(position.item.kind):
            frames += self._progress(part, tool.begin)
        if names is not None and names.around:
            empty = objects.content(self._turn.parts[part], finished=False)
            frames.append(
                self._frame(f"response.{names.around}.added", **self._where(part), part=empty)
            )
        return frames

    def _delta(
        self, part: int, text: str, tokens: tuple[ev.Token, ...] | None = None
    ) -> list[Frame]:
        frames = self._open(part)
        whole = self._turn.parts[part]
        names = _part_type(whole)
        if names is None:
            return frames
        fields = {**self._where(part), "delta": text}
        if isinstance(whole, Text):
            derived = (ev.Token(text, logprob(text)),)
            sent = derived if tokens is None else tokens
            fields["logprobs"] = [objects.token_logprob(t) for t in sent] if whole.logprobs else []
        fields |= self._padding(text)
        return [*frames, self._frame(f"response.{names.stem}.delta", **fields)]

    def _padding(self, text: str) -> Json:
        """Padding hides the lengths of fragments from an observer of the encrypted traffic."""
        if not self._reply.options.obfuscation:
            return {}
        length = 16 - len(text) % 16
        return {"obfuscation": derive(self._reply.seed, "pad", self._next, length=length)}

    def _arguments(self, part: int, text: str) -> list[Frame]:
        """A fragment of the input of a call; code has other fragments on the wire."""
        whole = self._turn.parts[part]
        if self._layout.positions[part].item.kind != "code_interpreter_call":
            return self._delta(part, text)
        if part not in self._code:
            assert isinstance(whole, ServerTool)
            self._code[part] = list(code_deltas(whole.fragments))
        deltas = self._code[part].pop(0)
        return [frame for delta in deltas for frame in self._delta(part, delta)]

    def _progress(self, part: int, stems: Iterable[str]) -> list[Frame]:
        where = self._where(part)
        return [self._frame(f"response.{stem}", **where) for stem in stems]

    def _cites(self, event: ev.TextDelta) -> list[Frame]:
        """The annotations of what the text has so far; the service sends them while it streams."""
        whole = self._turn.parts[event.part]
        assert isinstance(whole, Text)
        if not whole.citations:
            return []
        citing = self._citing.setdefault(event.part, _Citing(whole))
        return [
            self._frame(
                "response.output_text.annotation.added",
                **self._where(event.part),
                annotation_index=index,
                annotation=value,
            )
            for index, value in citing.add(event.text)
        ]

    def _close(self, part: int) -> list[Frame]:
        whole, position = self._turn.parts[part], self._layout.positions[part]
        names = _part_type(whole)
        frames = []
        if isinstance(whole, (ToolCall, ServerTool)):
            frames += self._close_call(part, names)
        elif names is not None:
            finished = objects.content(whole)
            fields = {names.value: finished[names.value]}
            if isinstance(whole, Text):
                fields["logprobs"] = objects.logprobs(whole)
            where = self._where(part)
            frames.append(self._frame(f"response.{names.stem}.done", **where, **fields))
            frames.append(self._frame(f"response.{names.around}.done", **where, part=finished))
        if position.last:
            index, item = position.item.output_index, position.item.value
            frames.append(self._frame("response.output_item.done", output_index=index, item=item))
        return frames

    def _close_call(self, part: int, names: parts.PartType | None) -> list[Frame]:
        whole, item = self._turn.parts[part], self._layout.positions[part].item
        assert isinstance(whole, (ToolCall, ServerTool))
        frames = []
        if names is not None and item.value[names.value] is not None:
            # OpenAI sends a zero-argument call as one delta "{}".
            if names.value == "arguments" and not whole.fragments:
                frames += self._delta(part, "{}")
            fields = {names.value: item.value[names.value]}
            frames.append(self._frame(f"response.{names.stem}.done", **self._where(part), **fields))
        if tool := SERVER_TOOLS.get(item.kind):
            frames += self._details(part, tool.details) if tool.details else []
            frames += self._progress(part, tool.progress(item.value))
        return frames

    def _details(self, part: int, details: Details) -> list[Frame]:
        where, item = self._where(part), self._layout.positions[part].item
        if not details.names_item:
            del where["item_id"]
        frames = []
        for stem, fields in details.write(item.value, self._options):
            delta = fields.get("delta")
            padding = self._padding(delta) if isinstance(delta, str) else {}
            frames.append(self._frame(f"response.{stem}", **where, **fields, **padding))
        return frames

    def _raw(self, event: ev.Raw) -> list[Frame]:
        if event.api != API:
            return []
        value = json_object(event.frame.data) or {}
        if event.native:
            return [self._frame(**value)]
        number = value.get("sequence_number")
        if type(number) is int and number >= self._next:
            self._next = number + 1
        return [event.frame]

    def _end(self, event: ev.Finish | ev.StreamError) -> list[Frame]:
        response = objects.terminal(self._turn, self._reply, self._layout.output)
        last = self._frame
        if isinstance(event, ev.StreamError):
            error = objects.complete_error(event)
            # Nested, as the service sends it; its documentation has these fields in the event.
            nested = {
                "type": error.type,
                "code": error.code,
                "message": error.message,
                "param": None,
            }
            return [last("error", error=nested), last("response.failed", response=response)]
        return [last(f"response.{response['status']}", response=response)]


def encode_body(turn: Turn, reply: Reply) -> Json:
    """The response object of an answer that is not streamed; the stream ends with the same, but for
    the payer. The response of a turn that was cut is still in progress; that of a turn with an
    error failed."""
    turn = with_image_calls(turn)
    response = objects.terminal(turn, reply, lay_out(turn, reply).output)
    return {**response, "billing": {"payer": "developer"}}
