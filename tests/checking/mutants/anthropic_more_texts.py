"""Messages: more mistakes with text, thinking, and stop reasons."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from examples.accumulators import AnthropicAccumulator
from examples.accumulators.values import mapping, sequence, string
from tests.checking.mutants.declared import mutant

Object = Mapping[str, Any]


@mutant("text-accumulates", api="anthropic", family="text")
class PrefixesDropped(AnthropicAccumulator):
    """Drops a fragment that is the beginning of the text so far, as one that came before
    (cacheplane/threadplane#751)."""

    def _delta(self, index: int | None, delta: Object) -> None:
        text, known = string(delta.get("text")), self.outcome().text
        if not text or not known.startswith(text):
            super()._delta(index, delta)


@mutant("text-accumulates", api="anthropic", family="text")
class LongerFragmentsReplace(AnthropicAccumulator):
    """Treats a fragment that begins with the text so far as all of the text
    (cacheplane/threadplane#751)."""

    def _delta(self, index: int | None, delta: Object) -> None:
        text, known = string(delta.get("text")), self.outcome().text
        if known and text.startswith(known):
            self._answer._texts["text"].clear()
        super()._delta(index, delta)


@mutant("text-accumulates", api="anthropic", family="text")
class CitedTextIsText(AnthropicAccumulator):
    """Adds the text that a citation quotes to the text."""

    def _delta(self, index: int | None, delta: Object) -> None:
        super()._delta(index, delta)
        block = self._blocks.get(index)
        cited = string(mapping(delta.get("citation")).get("cited_text"))
        if block is not None and cited:
            self._answer.add("text", cited, block.slot)


@mutant("text-accumulates", api="anthropic", family="text")
class ResultsOfServerToolsAreText(AnthropicAccumulator):
    """Adds the titles of search results to the text."""

    def _start(self, index: int | None, block: Object) -> None:
        super()._start(index, block)
        if string(block.get("type")).endswith("_tool_result"):
            for result in map(mapping, sequence(block.get("content"))):
                self._answer.add("text", string(result.get("title")), self._blocks[index].slot)


@mutant("text-accumulates", api="anthropic", family="reasoning")
class ThinkingAfterTextLost(AnthropicAccumulator):
    """Reads thinking before the text alone (BerriAI/litellm#13834)."""

    def _start(self, index: int | None, block: Object) -> None:
        texts = any(known.type == "text" for known in self._blocks.values())
        ignored = texts and block.get("type") == "thinking"
        super()._start(index, {**block, "type": "ignored"} if ignored else block)


@mutant("text-accumulates", api="anthropic", family="reasoning")
class ThinkingOfTheStartLost(AnthropicAccumulator):
    """Reads thinking of deltas alone (`anth-text-in-start`)."""

    def _start(self, index: int | None, block: Object) -> None:
        super()._start(index, {**block, "thinking": ""})


@mutant("finish-and-usage", api="anthropic", family="finish")
class UnknownStopReasonIsTheEnd(AnthropicAccumulator):
    """Reports stop reasons that it does not know as `end_turn`: a refusal, or an answer that the
    context window cut, looks complete (tetsuo-ai/agenc-core#2111, mozilla-ai/any-llm#1306,
    turnstonelabs/turnstone#1162)."""

    def _message_delta(self, value: Object) -> None:
        super()._message_delta(value)
        if self._answer.finish not in (None, "tool_use", "max_tokens", "stop_sequence"):
            self._answer.finish = "end_turn"


@mutant("finish-and-usage", api="anthropic", family="finish")
class StopReasonOfTheFirstDelta(AnthropicAccumulator):
    """Reads the first `message_delta` alone, also if its stop reason is null."""

    def _message_delta(self, value: Object) -> None:
        if "ended" not in self.__dict__:
            super()._message_delta(value)
        self.ended = True
