"""How to put together a stream of Ollama's own API, of `/api/chat` and of `/api/generate`.

https://github.com/ollama/ollama/blob/main/docs/api.md#generate-a-chat-completion

Every line is an object with only what is new in it, and calls are whole. No field is required. A
name in backquotes is the quirk that a rule is there for; `mockllm list quirks NAME` shows it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from examples.accumulators.answer import Answer, Malformed, MissingId
from examples.accumulators.values import (
    count,
    error_message,
    json_text,
    mapping,
    sequence,
    string,
)
from mockllm.checking.outcome import Outcome, TroubleKind, Usage
from mockllm.checking.probes import Delta

__all__ = ["OllamaAccumulator"]


class OllamaAccumulator:
    """Puts the objects of one stream together (a `Probe`).

    Thinking between tags stays text (`ollama-think-tags`): only the service knows which model
    writes such tags.

    Args:
        tools: the names of the tools that were offered; None: a call of any tool is accepted.
        malformed: what happens to a call whose arguments are no object.
        missing_id: ignored: servers before 0.12.10 send calls without ids, so they are always given
            one (`ollama-call-ids`).
    """

    def __init__(
        self,
        *,
        tools: Collection[str] | None = None,
        malformed: Malformed = "error",
        missing_id: MissingId = "synthesise",
    ) -> None:
        self._answer = Answer(tools, malformed, "synthesise", "done: true", text_arguments=False)

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

    def outcome(self) -> Outcome:
        """The answer so far."""
        return self._answer.outcome()

    def pending(self) -> int:
        """How many calls have begun and not surfaced."""
        return len(self._answer.open_calls())

    def fail(self, message: str, kind: TroubleKind = "stream_error") -> None:
        """Ends the answer with an error of the transport, such as a broken connection."""
        self._answer.fail(message, kind)

    def close(self) -> None:
        """Ends the input. Without a last object the stream was cut (`ollama-no-done`)."""
        self._answer.close()

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
