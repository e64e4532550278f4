"""Streams of choices back to events: what the decoders of Chat Completions and of Completions
share, from the frame to the chunk, and the end of both."""

from __future__ import annotations

from abc import ABC, abstractmethod

from mockllm.core import events as ev
from mockllm.core.events import Frame
from mockllm.wire.protocols.openai_common import error_of
from mockllm.wire.protocols.records import Json
from mockllm.wire.protocols.values import json_value, string


class ChoicesDecoder(ABC):
    """Frames of one stream to events. `complete` is True after `[DONE]`, a finish reason or an
    error: many servers end without `[DONE]` (`chat-no-done`), and after a finish reason only usage
    follows.

    Args:
        api: the protocol of the frames that are kept as `Raw`.
        first_raw: the key of the first of them; the others follow.
    """

    def __init__(self, api: str, first_raw: int) -> None:
        self._api = api
        self._next_raw = first_raw
        self.complete = False
        self._id = ""
        self._begun = False
        self._done = False
        self._finished = False
        self._first_choice: tuple[object, object] | None = None
        self._known = False

    def decode(self, frame: Frame) -> list[ev.Event]:
        """The events of a frame, and those of earlier ones that had to wait for it."""
        if frame.data is None:
            return [self._raw(frame)]
        if frame.data.strip() == "[DONE]":
            events = [] if self._done else self._end_parts()
            self._done = self.complete = True
            return events
        value = None if self._done else json_value(frame.data)
        if frame.event == "error" and not self._done:
            # Groq reports errors in an event of this name (`err-event-line`).
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
            events.insert(0, ev.Start(self._id, string(value.get("model"))))
        return events

    def close(self) -> list[ev.Event]:
        """The events that are left when the stream ends."""
        return self._end_parts()

    @abstractmethod
    def _chunk(self, chunk: Json) -> list[ev.Event]:
        """The events of a chunk; `_known` is whether it says anything without one."""

    @abstractmethod
    def _end_parts(self) -> list[ev.Event]:
        """The ends of the parts that are still open."""

    @abstractmethod
    def _read_finish(self, reason: str) -> ev.Finish:
        """The finish of a reason on the wire."""

    def _raw(self, frame: Frame) -> ev.Raw:
        self._next_raw += 1
        return ev.Raw(self._next_raw - 1, self._api, frame)

    def _ending(self, chunk: Json, usage: ev.Usage | None, finish: str) -> list[ev.Event]:
        """The events at the end of a chunk: its usage, and its error or finish reason."""
        # Usage may come in any chunk, and grow (`usage-cumulative`); `fold` takes the last one.
        events: list[ev.Event] = [] if usage is None else [usage]
        error = chunk.get("error") or (chunk if chunk.get("object") == "error" else None)
        if error:
            self.complete = True
            events.append(error_of(error))
        elif finish:
            self._known = True
            # OpenRouter and LM Studio send it twice (`chat-finish-twice`); the first counts.
            if not self._finished:
                self._finished = self.complete = True
                events += [*self._end_parts(), self._read_finish(finish)]
        return events
