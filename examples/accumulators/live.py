"""How to put together a turn of Gemini Live.

https://ai.google.dev/api/live#BidiGenerateContentServerMessage

Each message has one thing: parts of the model, what it speaks, whole calls, or the end of the turn.
After calls nothing ends the turn: the model waits for their results. Errors close the connection;
in the cases of the kit a close frame is the message `{"close": {"code", "reason"}}`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from examples.accumulators.base import Accumulator
from examples.accumulators.values import count, json_text, mapping, sequence, string
from mockllm.checking.outcome import Usage
from mockllm.checking.probes import Delta

__all__ = ["LiveAccumulator"]


class LiveAccumulator(Accumulator):
    """Puts the messages of one turn together (a `Probe`).

    Without the end of the turn it was cut.
    """

    end = "turnComplete or toolCall"
    text_arguments = False

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        """What one message adds. Calls have no raw arguments: the service sends values."""
        if not self._answer.failed:
            self._message(mapping(payload))
        return self._answer.delta()

    # Messages

    def _message(self, message: Mapping[str, Any]) -> None:
        if message.get("close"):
            self._answer.fail(string(mapping(message["close"]).get("reason")))
            return
        self._usage(mapping(message.get("usageMetadata")))
        content = mapping(message.get("serverContent"))
        for part in map(mapping, sequence(mapping(content.get("modelTurn")).get("parts"))):
            self._answer.keep(string(part.get("thoughtSignature")))
            thinks = bool(part.get("thought"))
            self._answer.add("reasoning" if thinks else "text", string(part.get("text")))
        for call in map(mapping, sequence(mapping(message.get("toolCall")).get("functionCalls"))):
            self._call(call)
        if content.get("turnComplete"):
            self._answer.complete = True
            reason = string(content.get("turnCompleteReason"))
            # Some models end a turn with calls, too.
            self._answer.finish = reason or self._answer.finish or "stop"

    def _call(self, value: Mapping[str, Any]) -> None:
        call = self._answer.open(id=string(value.get("id")), name=string(value.get("name")))
        if value.get("args") is not None:
            call.arguments = json_text(value["args"])
        self._answer.surface(call)
        self._answer.finish, self._answer.complete = "tool_calls", True

    def _usage(self, usage: Mapping[str, Any]) -> None:
        """Takes the counts of a message; thoughts are in none of the others."""
        prompt, response = (
            count(usage.get("promptTokenCount")),
            count(usage.get("responseTokenCount")),
        )
        if prompt is None and response is None:
            return
        tools = count(usage.get("toolUsePromptTokenCount")) or 0
        thoughts = count(usage.get("thoughtsTokenCount")) or 0
        cached = count(usage.get("cachedContentTokenCount")) or 0
        self._answer.usage = Usage(
            (prompt or 0) + tools, (response or 0) + thoughts, thoughts, cached
        )
