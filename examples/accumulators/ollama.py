"""How to put together a stream of Ollama's own API, of `/api/chat` and of `/api/generate`.

https://github.com/ollama/ollama/blob/main/docs/api.md#generate-a-chat-completion

Every line is an object with only what is new in it, and calls are whole. No field is required. A
name in backquotes is the quirk that a rule is there for; `mockllm list quirks NAME` shows it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from examples.accumulators.base import Accumulator
from examples.accumulators.values import (
    count,
    error_message,
    json_text,
    mapping,
    sequence,
    string,
)
from mockllm.checking.outcome import Usage
from mockllm.checking.probes import Delta

__all__ = ["OllamaAccumulator"]


class OllamaAccumulator(Accumulator):
    """Puts the objects of one stream together (a `Probe`).

    Thinking between tags stays text (`ollama-think-tags`): only the service knows which model
    writes such tags.

    Without a last object the stream was cut (`ollama-no-done`).
    """

    end = "done: true"
    has_ids = False  # before 0.12.10 (`ollama-call-ids`)
    text_arguments = False

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        """What one object adds: text, thinking, and the calls that surface. Calls have no raw
        arguments, because the service sends a value and no text."""
        value = mapping(payload)
        if value.get("error") is not None:
            # The status was sent before (`ollama-error-line`).
            self._answer.fail(error_message(value["error"]))
        if not self._answer.failed:
            self._object(value)
        return self._answer.delta()

    def _object(self, value: Mapping[str, Any]) -> None:
        self._answer.identify("", string(value.get("model")))
        # `/api/generate` has no message, and the text in `response`.
        message = mapping(value.get("message")) or value
        # Any of them may be null (`ollama-null-fields`).
        self._answer.add("reasoning", string(message.get("thinking")))
        self._answer.add("text", string(message.get("content", message.get("response"))))
        # Calls may be in any object, several in one (`ollama-calls-one-object`), and in the last
        # one (`ollama-calls-in-last`): so they are read before the end.
        for call in map(mapping, sequence(message.get("tool_calls"))):
            self._call(call)
            if self._answer.failed:
                return
        # A reason is an end, too (`ollama-done-missing`), and none is the usual one
        # (`ollama-no-reason`).
        reason = string(value.get("done_reason"))
        if value.get("done") is True or (reason and value.get("done") is None):
            self._finish(value, reason or "stop")

    def _call(self, value: Mapping[str, Any]) -> None:
        function = mapping(value.get("function"))
        arguments = function.get("arguments")
        # The index is not looked at: it may be the same for all calls (`ollama-same-index`).
        call = self._answer.open(id=string(value.get("id")), name=string(function.get("name")))
        if arguments is not None:
            # A string is the JSON text of an object (`ollama-args-string`).
            call.arguments = arguments if isinstance(arguments, str) else json_text(arguments)
        self._answer.surface(call)

    def _finish(self, value: Mapping[str, Any], reason: str) -> None:
        """Ends the answer. `stop` ends answers with calls, too, and other reasons may
        name them (`ollama-done-reason`)."""
        self._answer.finish = reason
        self._answer.complete = True
        names = ("prompt_eval_count", "eval_count", "prompt_eval_cached_count")
        counts = [count(value.get(name)) for name in names]
        # Zeros are left out, and those of a prompt that was in the cache (`ollama-counts-missing`).
        if any(found is not None for found in counts):
            prompt, output, cached = (found or 0 for found in counts)
            self._answer.usage = Usage(prompt, output, 0, cached)
