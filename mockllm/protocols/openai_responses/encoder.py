"""The stream and the body of an answer, as OpenAI sends them.

https://platform.openai.com/docs/api-reference/responses-streaming

`layout` assigns the parts of the turn to output items; here each event becomes its frames. Every
event has an `event:` line and a `sequence_number` that counts from 0; there is no `[DONE]`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mockllm.core import events as ev
from mockllm.core.frame import Frame
from mockllm.core.turn import Part, Reasoning, Refusal, Text, ToolCall, Turn
from mockllm.protocols.base import Reply, derive
from mockllm.protocols.openai_responses.layout import bare, lay_out, opening
from mockllm.protocols.openai_responses.objects import (
    API,
    annotation,
    complete_error,
    content,
    frame_of,
    logprobs,
    response_object,
    terminal,
    token_logprob,
)
from mockllm.protocols.values import json_object

__all__ = ["Encoder", "encode_body"]


@dataclass(frozen=True, slots=True)
class _Names:
    """The names of the events and fields of one kind of part.

    Args:
        text: the stem of the events `.delta` and `.done` with its fragments and its whole value.
        value: the field of the whole value in `.done`.
        part: the stem of the events `.added` and `.done` around them, if there are any.
        index: the field with the index of the content in its item.
    """

    text: str
    value: str
    part: str = ""
    index: str = ""


_CONTENT_PART = "response.content_part"
_NAMES = {
    "text": _Names("response.output_text", "text", _CONTENT_PART, "content_index"),
    "refusal": _Names("response.refusal", "refusal", _CONTENT_PART, "content_index"),
    "reasoning": _Names("response.reasoning_text", "text", _CONTENT_PART, "content_index"),
    "summary": _Names(
        "response.reasoning_summary_text",
        "text",
        "response.reasoning_summary_part",
        "summary_index",
    ),
    "arguments": _Names("response.function_call_arguments", "arguments"),
}


def _names(part: Part) -> _Names | None:
    """The names for a part; None for reasoning without text, which only its item shows."""
    match part:
        case Text():
            return _NAMES["text"]
        case Refusal():
            return _NAMES["refusal"]
        case ToolCall():
            return _NAMES["arguments"]
        case Reasoning(summary=summary) if not bare(part):
            return _NAMES["summary" if summary else "reasoning"]
    return None


class Encoder:
    """Turns the events of one turn into the frames of a Responses stream."""

    def __init__(self, turn: Turn, reply: Reply) -> None:
        self._turn = turn
        self._reply = reply
        self._layout = lay_out(turn, reply)
        self._next = 0
        self._opened: set[int] = set()
        self._annotations: dict[int, int] = {}

    def encode(self, event: ev.Event) -> list[Frame]:
        """The frames of one event, in order."""
        match event:
            case ev.Start():
                return self._start()
            case ev.TextDelta() | ev.ReasoningDelta() | ev.RefusalDelta() | ev.ToolArgs():
                return self._delta(event.part, event.text)
            case ev.ToolStart():
                return self._open(event.part)
            case ev.PartEnd():
                return self._close(event.part)
            case ev.Cite():
                return [self._cite(event)]
            case ev.Raw():
                return self._raw(event)
            case ev.Finish() | ev.StreamError():
                return self._end(event)
        return []

    def _start(self) -> list[Frame]:
        response = response_object(self._reply, "in_progress")
        frame = self._frame
        if response["background"] is not True:
            first = [frame("response.created", response=response)]
        else:
            # A background response waits in a queue before it starts.
            queued = {**response, "status": "queued"}
            first = [frame(f"response.{state}", response=queued) for state in ("created", "queued")]
        return [*first, frame("response.in_progress", response=response)]

    def _frame(self, type: str, **fields: Any) -> Frame:
        frame = frame_of(type, self._next, fields)
        self._next += 1
        return frame

    def _where(self, part: int) -> dict[str, Any]:
        """The fields of events that locate a part: item id, output index and content index."""
        position, names = self._layout.positions[part], _names(self._turn.parts[part])
        where: dict[str, Any] = {
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
        position, names = self._layout.positions[part], _names(self._turn.parts[part])
        frames = []
        if position.index == 0:
            index, item = position.item.output_index, opening(position.item)
            frames.append(self._frame("response.output_item.added", output_index=index, item=item))
        if names is not None and names.part:
            empty = content(self._turn.parts[part], finished=False)
            frames.append(self._frame(f"{names.part}.added", **self._where(part), part=empty))
        return frames

    def _delta(self, part: int, text: str) -> list[Frame]:
        frames = self._open(part)
        whole = self._turn.parts[part]
        names = _names(whole)
        if names is None:
            return frames
        fields = {**self._where(part), "delta": text}
        if isinstance(whole, Text):
            fields["logprobs"] = [token_logprob(text)] if whole.logprobs else []
        if self._reply.options.obfuscation:
            # Padding hides the lengths of fragments from an observer of the encrypted traffic.
            length = 16 - len(text) % 16
            fields["obfuscation"] = derive(self._reply.seed, "pad", self._next, length=length)
        return [*frames, self._frame(f"{names.text}.delta", **fields)]

    def _cite(self, event: ev.Cite) -> Frame:
        index = self._annotations.get(event.part, 0)
        self._annotations[event.part] = index + 1
        whole = self._turn.parts[event.part]
        assert isinstance(whole, Text)
        return self._frame(
            "response.output_text.annotation.added",
            **self._where(event.part),
            annotation_index=index,
            annotation=annotation(event, whole.text),
        )

    def _close(self, part: int) -> list[Frame]:
        whole, position = self._turn.parts[part], self._layout.positions[part]
        names = _names(whole)
        frames = []
        if isinstance(whole, ToolCall):
            # OpenAI sends a zero-argument call as one delta "{}".
            if not whole.fragments:
                frames += self._delta(part, "{}")
            fields = {"arguments": position.item.value["arguments"]}
            frames.append(
                self._frame("response.function_call_arguments.done", **self._where(part), **fields)
            )
        elif names is not None:
            finished = content(whole)
            fields = {names.value: finished[names.value]}
            if isinstance(whole, Text):
                fields["logprobs"] = logprobs(whole)
            where = self._where(part)
            frames.append(self._frame(f"{names.text}.done", **where, **fields))
            frames.append(self._frame(f"{names.part}.done", **where, part=finished))
        if position.last:
            index, item = position.item.output_index, position.item.value
            frames.append(self._frame("response.output_item.done", output_index=index, item=item))
        return frames

    def _raw(self, event: ev.Raw) -> list[Frame]:
        if event.api != API:
            return []
        number = (json_object(event.frame.data) or {}).get("sequence_number")
        if type(number) is int and number >= self._next:
            self._next = number + 1
        return [event.frame]

    def _end(self, event: ev.Finish | ev.StreamError) -> list[Frame]:
        response = terminal(self._turn, self._reply, self._layout.output)
        last = self._frame
        if isinstance(event, ev.StreamError):
            error = complete_error(event)
            # Nested, as the service sends it; its documentation has these fields in the event.
            nested = {
                "type": error.type,
                "code": error.code,
                "message": error.message,
                "param": None,
            }
            return [last("error", error=nested), last("response.failed", response=response)]
        return [last(f"response.{response['status']}", response=response)]


def encode_body(turn: Turn, reply: Reply) -> dict[str, Any]:
    """The response object of an answer that is not streamed; the stream ends with the same.

    The response of a turn that was cut is still in progress; that of a turn with an error failed.
    """
    return terminal(turn, reply, lay_out(turn, reply).output)
