"""Answers of Completions back to events, as any server sends them.

https://platform.openai.com/docs/api-reference/completions/object

The decoder never fails. A frame without any known content (a comment, malformed JSON, a choice
that does not repeat the first one) is kept as `Raw`, and so is everything after `[DONE]`.
"""

from __future__ import annotations

from mockllm.core import events as ev
from mockllm.core.errors import WireError
from mockllm.core.events import Frame
from mockllm.core.timeline import fold
from mockllm.core.turn import Turn
from mockllm.wire.protocols.openai_common import error_of, usage_of
from mockllm.wire.protocols.openai_completions import API, fields
from mockllm.wire.protocols.records import Fields, Json
from mockllm.wire.protocols.values import json_value, kind, mapping, objects, string

_TEXT = 0
"""The key of the text; the frames that are kept follow."""


class Decoder:
    """Frames of one stream to events. `complete` is True after `[DONE]`, a finish reason or an
    error: servers end without `[DONE]`, and after a finish reason only usage follows."""

    def __init__(self) -> None:
        self.complete = False
        self._begun = False
        self._done = False
        self._finished = False
        self._open = False
        self._raws = 0
        self._first_choice: tuple[object, object] | None = None
        self._known = False

    def decode(self, frame: Frame) -> list[ev.Event]:
        """The events of a frame."""
        if frame.data is None or self._done:
            return [self._raw(frame)]
        if frame.data.strip() == "[DONE]":
            self._done = self.complete = True
            return self.close()
        value = json_value(frame.data)
        if frame.event == "error":
            self.complete = True
            return [error_of(value if value is not None else frame.data)]
        if not isinstance(value, dict):
            return [self._raw(frame)]
        self._known = False
        events = self._chunk(value)
        if not events and not self._known:
            return [self._raw(frame)]
        if not self._begun:
            self._begun = True
            events.insert(0, ev.Start(string(value.get("id")), string(value.get("model"))))
        return events

    def close(self) -> list[ev.Event]:
        """The end of a text that is still open."""
        is_open, self._open = self._open, False
        return [ev.PartEnd(_TEXT)] if is_open else []

    def _raw(self, frame: Frame) -> ev.Raw:
        self._raws += 1
        return ev.Raw(_TEXT + self._raws, API, frame)

    def _chunk(self, chunk: Json) -> list[ev.Event]:
        events: list[ev.Event] = []
        finish = ""
        for choice in objects(chunk.get("choices")):
            content = choice.get("text"), choice.get("finish_reason")
            if choice.get("index"):  # another choice than the first one
                self._known |= content == self._first_choice
                continue
            events += self._choice(choice)
            finish = string(choice.get("finish_reason")) or finish
            self._first_choice = content
        usage = usage_of(chunk.get("usage"))
        # Usage may come in any chunk, and grow; `fold` takes the last one.
        if usage is not None:
            events.append(usage)
        error = chunk.get("error") or (chunk if chunk.get("object") == "error" else None)
        if error:
            self.complete = True
            events.append(error_of(error))
        elif finish:
            self._known = True
            events += self._finish(finish)
        return events

    def _choice(self, choice: Json) -> list[ev.Event]:
        text = choice.get("text")
        self._known |= "text" in choice
        # The text of the chunk with the finish reason is usually empty, which is no fragment.
        if not isinstance(text, str) or (not text and choice.get("finish_reason")):
            return []
        self._open = True
        return [ev.TextDelta(_TEXT, text, has_logprobs(choice))]

    def _finish(self, value: str) -> list[ev.Event]:
        if self._finished:  # the first one counts
            return []
        self._finished = self.complete = True
        return [*self.close(), fields.read_finish(value)]


def has_logprobs(choice: Fields) -> bool:
    """Whether a choice has log probabilities."""
    return isinstance(mapping(choice.get("logprobs")).get("tokens"), list)


def decode_body(body: Fields) -> Turn:
    """The turn of an answer that was not streamed: its choice with index 0; raises `WireError`
    without one."""
    if body.get("error"):
        return Turn(error=error_of(body["error"]))
    choices = objects(body.get("choices"))
    choice = next((c for c in choices if not c.get("index")), choices[0] if choices else {})
    text, finish = choice.get("text"), string(choice.get("finish_reason"))
    if not isinstance(text, str):
        raise WireError(
            f"choices[0].text must be a string in the body of a completion, got {kind(text)}; is "
            "this the answer of /completions, not streamed?"
        )
    events: list[ev.Event] = [ev.TextDelta(_TEXT, text, has_logprobs(choice))] if text else []
    usage = usage_of(body.get("usage"))
    events += [usage] if usage is not None else []
    events += [fields.read_finish(finish)] if finish else []
    return fold(ev.Timed(0, event) for event in events)
