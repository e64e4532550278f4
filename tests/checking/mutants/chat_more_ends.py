"""Chat Completions: more mistakes with the finish reason and usage."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from examples.accumulators import ChatAccumulator
from examples.accumulators.values import mapping
from mockllm.checking.outcome import Outcome, Usage
from mockllm.checking.probes import Delta
from tests.checking.mutants.chat_more_base import Object
from tests.checking.mutants.declared import mutant

# Finish


@mutant("finish-and-usage", api="chat", family="finish")
class LengthIsStop(ChatAccumulator):
    """Reports `stop` where the answer was cut off by its token limit (zhayujie/CowAgent#3074).

    Finish reasons that break clients: gunpal5/Google_GenerativeAI#98,
    realmorrisliu/openrouter-rs#241, sgl-project/sglang#3912.
    """

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        return replace(outcome, finish="stop") if outcome.finish == "length" else outcome


@mutant("finish-and-usage", api="chat", family="finish")
class FilterRaises(ChatAccumulator):
    """Raises where a content filter has ended the answer."""

    def _choice(self, choice: Object, *, failing: bool) -> None:
        super()._choice(choice, failing=failing)
        if choice.get("finish_reason") == "content_filter":
            raise ValueError("the answer was filtered")


@mutant("finish-and-usage", api="chat", family="finish")
class CallsDecideTheFinish(ChatAccumulator):
    """Reports `tool_calls` wherever there are calls, also at the token limit."""

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        return replace(outcome, finish="tool_calls") if outcome.tool_calls else outcome


@mutant("finish-and-usage", api="chat", family="finish")
class CallsOfUnusualFinishLost(ChatAccumulator):
    """Drops the calls unless the finish reason is `stop` or `tool_calls`
    (Mirascope/mirascope#257)."""

    def _surface(self) -> None:
        if self._answer.finish not in ("stop", "tool_calls"):
            self._answer._abandon()
        super()._surface()


@mutant("finish-and-usage", api="chat", family="finish")
class EmptyFinishCounts(ChatAccumulator):
    """Keeps the first finish reason that is not null, even an empty one (sgl-project/sglang#3912;
    `chat-finish-key-absent`)."""

    def _choice(self, choice: Object, *, failing: bool) -> None:
        super()._choice(choice, failing=failing)
        reason = choice.get("finish_reason")
        if reason is not None and not failing:
            self._answer.finish = self.__dict__.setdefault("first", reason)


@mutant("finish-and-usage", api="chat", family="finish")
class AnyChoiceFinishes(ChatAccumulator):
    """Ends the answer when any choice has finished (`chat-n-choices`)."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        finished = self.__dict__.get("finished", False)
        delta = None if finished else super().feed(payload, event)
        choices = map(mapping, payload.get("choices") or [])
        if any(choice.get("index") and choice.get("finish_reason") for choice in choices):
            self.__dict__["finished"] = self._answer.complete = True
        return delta


@mutant("finish-and-usage", api="chat", family="finish")
class FinishInCapitals(ChatAccumulator):
    """Converts the finish reason to upper case."""

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        return replace(outcome, finish=outcome.finish and outcome.finish.upper())


@mutant("finish-and-usage", api="chat", family="finish")
class FinishLost(ChatAccumulator):
    """Reads the finish reason only of chunks without a delta (`chat-finish-with-last-delta`)."""

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        return replace(outcome, finish=outcome.finish and self.__dict__.get("finish"))

    def _choice(self, choice: Object, *, failing: bool) -> None:
        super()._choice(choice, failing=failing)
        if not any((choice.get("delta") or {}).values()):
            self.__dict__["finish"] = choice.get("finish_reason") or self.__dict__.get("finish")


# Usage


@mutant("finish-and-usage", api="chat", family="usage")
class FirstUsageWins(ChatAccumulator):
    """Keeps the usage of the first chunk that has one (router-for-me/CLIProxyAPI#3221;
    `usage-cumulative`).

    Usage lost or wrong: openai/openai-agents-python#2126, strands-agents/harness-sdk#442,
    vllm-project/vllm#7262, xiufengsun/TokenTracker#105.
    """

    def _usage(self, chunk: Object) -> None:
        if self._answer.usage is None:
            super()._usage(chunk)


@mutant("text-accumulates", api="chat", family="usage")
class UsageEndsTheAnswer(ChatAccumulator):
    """Ignores everything after the first usage (`usage-cumulative`)."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        return None if self._answer.usage is not None else super().feed(payload, event)


@mutant("finish-and-usage", api="chat", family="usage")
class UsageNeedsChoices(ChatAccumulator):
    """Reads the usage only of chunks with choices (`usage-empty-choices`)."""

    def _usage(self, chunk: Object) -> None:
        if chunk.get("choices"):
            super()._usage(chunk)


class _ChangedUsage(ChatAccumulator):
    """Reports its usage changed by a subclass."""

    def changed(self, usage: Usage) -> Usage:
        """The usage as the mutant reports it."""
        raise NotImplementedError

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        return replace(outcome, usage=outcome.usage and self.changed(outcome.usage))


@mutant("finish-and-usage", api="chat", family="usage")
class DetailsAreZero(_ChangedUsage):
    """Reports 0 for reasoning and cached tokens."""

    def changed(self, usage: Usage) -> Usage:
        return replace(usage, reasoning=0, cached=0)


@mutant("finish-and-usage", api="chat", family="usage")
class UsageSwapped(_ChangedUsage):
    """Exchanges the tokens of input and output."""

    def changed(self, usage: Usage) -> Usage:
        return replace(usage, input=usage.output, output=usage.input)


@mutant("finish-and-usage", api="chat", family="usage")
class TotalIsOutput(_ChangedUsage):
    """Reports the total for the output."""

    def changed(self, usage: Usage) -> Usage:
        return replace(usage, output=(usage.input or 0) + (usage.output or 0))


@mutant("finish-and-usage", api="chat", family="usage")
class ReasoningCountsTwice(_ChangedUsage):
    """Adds the tokens of reasoning to those of the output, which include them."""

    def changed(self, usage: Usage) -> Usage:
        return replace(usage, output=(usage.output or 0) + (usage.reasoning or 0))


@mutant("finish-and-usage", api="chat", family="usage")
class CachedSubtracted(_ChangedUsage):
    """Subtracts the cached tokens from those of the input."""

    def changed(self, usage: Usage) -> Usage:
        return replace(usage, input=(usage.input or 0) - (usage.cached or 0))


@mutant("finish-and-usage", api="chat", family="usage")
class DetailsExchanged(_ChangedUsage):
    """Reports the cached tokens for those of reasoning."""

    def changed(self, usage: Usage) -> Usage:
        return replace(usage, reasoning=usage.cached, cached=usage.reasoning)
