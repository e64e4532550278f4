"""How to put together a stream of Cohere's Chat API, version 2.

https://docs.cohere.com/reference/chat-stream

The deltas have the places of a whole message, but objects where the message has lists. A name in
backquotes is the quirk that a rule is there for; `mockllm list quirks NAME` shows it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from examples.accumulators.answer import StagedCall
from examples.accumulators.base import Accumulator, Options
from examples.accumulators.values import count, error_message, mapping, string
from mockllm.checking.outcome import Usage
from mockllm.checking.probes import Delta

__all__ = ["CohereAccumulator"]

_FAILURES = ("ERROR", "TIMEOUT")


class CohereAccumulator(Accumulator):
    """Puts the events of one stream together (a `Probe`).

    Without `message-end` the stream was cut; a missing `[DONE]` is accepted (`cohere-no-done`).
    """

    end = "message-end"

    def __init__(self, **options: Unpack[Options]) -> None:
        super().__init__(**options)
        self._calls: dict[int | None, StagedCall] = {}
        # Blocks and the plan are joined in the order in which they begin.
        self._slots: dict[int | str | None, int] = {}
        self._begun = 0

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        """What one event adds: text, reasoning, and the call that surfaces."""
        if self._answer.failed or self._answer.complete:
            return None
        value = mapping(payload)
        # The type in the JSON counts, as for the SDKs of the service.
        type = string(value.get("type")) or event or ""
        index = count(value.get("index"))
        message = mapping(mapping(value.get("delta")).get("message"))
        match type:
            case "message-start":
                self._answer.identify(string(value.get("id")), "")
            case "content-start":
                self._slots.pop(index, None)
                self._content(index, mapping(message.get("content")))
            case "content-delta":
                self._content(index, mapping(message.get("content")))
            case "tool-plan-delta":
                # What the model says before its calls.
                self._answer.add("text", string(message.get("tool_plan")), self._slot("plan"))
            case "tool-call-start":
                self._start(index, mapping(message.get("tool_calls")))
            case "tool-call-delta":
                self._arguments(index, mapping(message.get("tool_calls")))
            case "tool-call-end":
                self._end(index)
            case "message-end":
                self._message_end(mapping(value.get("delta")))
            case _:
                self._other(value)
        return self._answer.delta()

    def _content(self, index: int | None, content: Mapping[str, Any]) -> None:
        # Reasoning and text are told apart by the field of the deltas: the blocks may have the same
        # index (`cohere-content-index`).
        slot = self._slot(index)
        self._answer.add("reasoning", string(content.get("thinking")), slot)
        self._answer.add("text", string(content.get("text")), slot)

    def _slot(self, key: int | str | None) -> tuple[int]:
        """Where the text of a block, by its index, or of the plan belongs."""
        if key not in self._slots:
            self._slots[key] = self._begun
            self._begun += 1
        return (self._slots[key],)

    # Calls

    def _start(self, index: int | None, call: Mapping[str, Any]) -> None:
        id, name = string(call.get("id")), string(mapping(call.get("function")).get("name"))
        self._calls[index] = self._answer.open(key=index, id=id, name=name)
        self._arguments(index, call)

    def _arguments(self, index: int | None, call: Mapping[str, Any]) -> None:
        staged = self._calls.get(index)
        text = string(mapping(call.get("function")).get("arguments"))
        # A call without arguments may have none, or the text `null` (`cohere-zero-arg`).
        if staged is not None and not staged.closed and (staged.arguments or text != "null"):
            staged.argue(text)

    def _end(self, index: int | None) -> None:
        staged = self._calls.get(index)
        if staged is not None:
            self._answer.surface(staged)

    # The end

    def _message_end(self, delta: Mapping[str, Any]) -> None:
        self._usage(mapping(delta.get("usage")))
        finish, error = string(delta.get("finish_reason")), string(delta.get("error"))
        # No other event says that the generation failed (`cohere-error-finish`).
        if finish in _FAILURES or error:
            self._answer.fail(error or f"the answer ended in {finish}")
            return
        # Whether there are calls shows in the events alone.
        self._answer.finish = finish or None
        self._answer.complete = True

    def _usage(self, usage: Mapping[str, Any]) -> None:
        """Takes the tokens that the model read and wrote: fewer are billed
        (`cohere-two-usages`)."""
        counted = mapping(usage.get("tokens")) or mapping(usage.get("billed_units"))
        read, written = count(counted.get("input_tokens")), count(counted.get("output_tokens"))
        if read is not None or written is not None:
            self._answer.usage = Usage(read, written, None, count(usage.get("cached_tokens")))

    def _other(self, value: Mapping[str, Any]) -> None:
        """Citations and unknown events add nothing; an error of a proxy has no type of its own."""
        if value.get("error"):
            self._answer.fail(error_message(value))
        elif string(value.get("message")):
            self._answer.fail(string(value.get("message")))
