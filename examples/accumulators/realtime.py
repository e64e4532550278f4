"""How to put together an answer of OpenAI's Realtime API, message by message.

https://platform.openai.com/docs/api-reference/realtime-server-events

The words of an answer are text, or the transcript of its sound. Each belongs to an item, by whose
id the fragments are joined; the whole value that ends an item counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from examples.accumulators.answer import StagedCall
from examples.accumulators.base import Accumulator, Options
from examples.accumulators.values import count, error_message, mapping, string
from mockllm.checking.outcome import Usage
from mockllm.checking.probes import Delta

__all__ = ["RealtimeAccumulator"]

_WORDS = ("response.output_text.delta", "response.output_audio_transcript.delta")


class RealtimeAccumulator(Accumulator):
    """Puts the events of one answer together (a `Probe`).

    Without `response.done` the answer was cut.
    """

    end = "response.done"

    def __init__(self, **options: Unpack[Options]) -> None:
        super().__init__(**options)
        self._calls: dict[str, StagedCall] = {}
        self._slots: dict[str, int] = {}

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        """What one event adds: text, and the call that surfaces."""
        if self._answer.failed or self._answer.complete:
            return None
        value = mapping(payload)
        type, item, id = string(value.get("type")), mapping(value.get("item")), value.get("item_id")
        match type:
            case "response.created":
                self._answer.identify(string(mapping(value.get("response")).get("id")), "")
            case "response.output_item.added" if item.get("type") == "function_call":
                self._start(item)
            case "response.function_call_arguments.delta":
                self._arguments(string(id), string(value.get("delta")))
            case "response.output_item.done":
                self._end(item)
            case "response.done":
                self._done(mapping(value.get("response")))
            case "error":
                self._answer.fail(error_message(value))
            case _ if type in _WORDS:
                self._answer.add("text", string(value.get("delta")), self._slot(string(id)))
        return self._answer.delta()

    def _slot(self, id: str) -> tuple[int]:
        """Where the text of an item belongs: items are joined in the order in which they begin."""
        return (self._slots.setdefault(id, len(self._slots)),)

    def _start(self, item: Mapping[str, Any]) -> None:
        id, name = string(item.get("id")), string(item.get("name"))
        self._calls[id] = self._answer.open(key=id, id=string(item.get("call_id")), name=name)
        self._arguments(id, string(item.get("arguments")))

    def _arguments(self, id: str, text: str) -> None:
        staged = self._calls.get(id)
        if staged is not None and not staged.closed:
            staged.argue(text)

    def _end(self, item: Mapping[str, Any]) -> None:
        staged = self._calls.get(string(item.get("id")))
        if staged is not None:
            self._answer.surface(staged)

    def _done(self, response: Mapping[str, Any]) -> None:
        self._usage(mapping(response.get("usage")))
        status, details = response.get("status"), mapping(response.get("status_details"))
        if status == "failed":
            self._answer.fail(error_message(details))
            return
        reason = string(details.get("reason"))
        self._answer.finish = reason or string(status) or None
        self._answer.complete = True

    def _usage(self, usage: Mapping[str, Any]) -> None:
        read, written = count(usage.get("input_tokens")), count(usage.get("output_tokens"))
        if read is not None or written is not None:
            cached = mapping(usage.get("input_token_details")).get("cached_tokens")
            self._answer.usage = Usage(read, written, None, count(cached))
