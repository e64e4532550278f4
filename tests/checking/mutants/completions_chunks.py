"""Mistakes with the chunks of OpenAI's legacy Completions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from examples.accumulators import CompletionsAccumulator
from examples.accumulators.values import mapping

Object = Mapping[str, Any]


class EveryChoiceIsRead(CompletionsAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Any:
        chunk = mapping(payload)
        if isinstance(chunk.get("choices"), list):
            choices = [{**mapping(choice), "index": 0} for choice in chunk["choices"]]
            chunk = {**chunk, "choices": choices}
        return super().feed(chunk or payload, event)


class FirstChoiceIsRequired(CompletionsAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Any:
        chunk = mapping(payload)
        if "choices" in chunk:
            _first = chunk["choices"][0]
        return super().feed(payload, event)


class TextIsRequired(CompletionsAccumulator):
    def _choice(self, choice: Object, *, failing: bool) -> None:
        _text = "" + choice["text"]
        super()._choice(choice, failing=failing)


class TextWithTheFinishLost(CompletionsAccumulator):
    def _choice(self, choice: Object, *, failing: bool) -> None:
        super()._choice(
            {**choice, "text": ""} if choice.get("finish_reason") else choice, failing=failing
        )


class SecondFinishRaises(CompletionsAccumulator):
    def _choice(self, choice: Object, *, failing: bool) -> None:
        if choice.get("finish_reason") and self._answer.complete:
            raise ValueError("the choice has ended already")
        super()._choice(choice, failing=failing)


class EmptyFinishIsTheEnd(CompletionsAccumulator):
    def _choice(self, choice: Object, *, failing: bool) -> None:
        if not self._answer.complete:
            super()._choice(choice, failing=failing)
        if choice.get("finish_reason") is not None:
            self._answer.complete = True


class UsageIsSummed(CompletionsAccumulator):
    def _usage(self, usage: Object) -> None:
        sums: dict[str, int] = self.__dict__.setdefault("sums", {})
        for name in ("prompt_tokens", "completion_tokens"):
            if isinstance(usage.get(name), int):
                sums[name] = sums.get(name, 0) + usage[name]
        super()._usage({**usage, **sums} if usage else usage)


class AnswerForEachId(CompletionsAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Any:
        id = mapping(payload).get("id")
        if id and id != self.__dict__.setdefault("first", id):
            return None
        return super().feed(payload, event)


class ErrorsIgnored(CompletionsAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Any:
        chunk = mapping(payload)
        return None if chunk.get("error") or event == "error" else super().feed(payload, event)


class EndOfInputIsTheEnd(CompletionsAccumulator):
    def close(self) -> None:
        self._answer.complete = self._answer.complete or not self._answer.failed
        super().close()


class ErrorObjectIgnored(CompletionsAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Any:
        is_error = mapping(payload).get("object") == "error"
        return None if is_error else super().feed(payload, event)


class NamedErrorIgnored(CompletionsAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Any:
        return None if event == "error" else super().feed(payload, event)


class NullUsageErases(CompletionsAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Any:
        delta = super().feed(payload, event)
        if "usage" in payload and payload["usage"] is None:
            self._answer.usage = None
        return delta


class TextBehindTheFinishLost(CompletionsAccumulator):
    def _choice(self, choice: Object, *, failing: bool) -> None:
        if not self._answer.complete:
            super()._choice(choice, failing=failing)


class FinishOfAnyChoice(CompletionsAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Any:
        delta = super().feed(payload, event)
        for choice in mapping(payload).get("choices") or []:
            if choice.get("finish_reason") and not self._answer.failed:
                self._answer.finish = choice["finish_reason"]
        return delta


class LastModelCounts(CompletionsAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Any:
        delta = super().feed(payload, event)
        self._answer.model = mapping(payload).get("model", self._answer.model)
        return delta


class TokensOfLogprobsAreText(CompletionsAccumulator):
    def _choice(self, choice: Object, *, failing: bool) -> None:
        super()._choice(choice, failing=failing)
        for token in mapping(choice.get("logprobs")).get("tokens") or []:
            self._answer.add("text", token)
