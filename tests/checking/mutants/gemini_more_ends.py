"""Gemini: more mistakes with usage, finish, errors, unknown parts, and ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from examples.accumulators import GeminiAccumulator
from examples.accumulators.values import count, mapping, sequence, string
from mockllm.checking.outcome import Outcome, Usage
from mockllm.checking.probes import Delta
from tests.checking.mutants.common import common
from tests.checking.mutants.declared import WATCHED, mutant

Object = Mapping[str, Any]

common(
    __name__,
    "gemini",
    TotalIsTheOutput="Reads `totalTokenCount` as the output.",
    StatusOfTheErrorOnly=(
        "Reports the status of an error, such as RESOURCE_EXHAUSTED, without its message."
    ),
    TextMakesItComplete="Treats a stream that stops as complete if it has text (`gem-no-finish`).",
    HandsOnTheSum="Passes on all text so far for each chunk.",
)


@mutant("finish-and-usage", api="gemini", family="usage")
class FirstUsageOnly(GeminiAccumulator):
    """Keeps the counts of the first chunk, which are not the totals."""

    def _usage(self, usage: Object) -> None:
        if self._answer.usage is None:
            super()._usage(usage)


@mutant("finish-and-usage", api="gemini", family="usage")
class ThoughtsNotInTheOutput(GeminiAccumulator):
    """Leaves the tokens of thoughts out of the output (langchain-ai/langchainjs#11423,
    simstudioai/sim#3039)."""

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        usage = outcome.usage
        if usage is None or not usage.output:
            return outcome
        output = usage.output - (usage.reasoning or 0)
        return replace(outcome, usage=replace(usage, output=output))


@mutant("finish-and-usage", api="gemini", family="usage")
class UsageOfAFinishOnly(GeminiAccumulator):
    """Reads usage in the chunk with the finish reason alone; another one may follow."""

    def _chunk(self, chunk: Object) -> None:
        ends = any(mapping(one).get("finishReason") for one in sequence(chunk.get("candidates")))
        super()._chunk(chunk if ends else {**chunk, "usageMetadata": None})


@mutant("finish-and-usage", api="gemini", family="usage")
class MissingUsageIsZero(GeminiAccumulator):
    """Reads the usage of a chunk without any as zero, and so erases it."""

    def _chunk(self, chunk: Object) -> None:
        super()._chunk(chunk)
        if not chunk.get("usageMetadata") and not chunk.get("error"):
            self._answer.usage = Usage(0, 0, 0, 0)


@mutant("finish-and-usage", api="gemini", family="usage")
class ToolUseTokensLeftOut(GeminiAccumulator):
    """Leaves `toolUsePromptTokenCount` out of the input (simstudioai/sim#3039)."""

    def _usage(self, usage: Object) -> None:
        super()._usage({**usage, "toolUsePromptTokenCount": None})


@mutant("finish-and-usage", api="gemini", family="finish")
class EveryFinishIsStop(GeminiAccumulator):
    """Reports every end as STOP."""

    def _finish(self, reason: str) -> None:
        super()._finish("STOP")


@mutant("finish-and-usage", api="gemini", family="finish")
class UnknownFinishRaises(GeminiAccumulator):
    """Raises on finish reasons other than STOP and MAX_TOKENS."""

    def _finish(self, reason: str) -> None:
        if reason not in ("STOP", "MAX_TOKENS"):
            raise ValueError(f"unknown finish reason {reason!r}")
        super()._finish(reason)


@mutant("finish-and-usage", api="gemini", family="finish")
class BlockedPromptIsNoFinish(GeminiAccumulator):
    """Does not read `promptFeedback`; a blocked prompt looks like a stream that was cut
    (dudarenok-maker/Castwright#1755 distinguishes the causes)."""

    def _chunk(self, chunk: Object) -> None:
        super()._chunk({**chunk, "promptFeedback": None})


# Errors, cut streams, unknown parts


@mutant("error-ends", api="gemini", family="errors")
class ErrorInAnArrayIgnored(GeminiAccumulator):
    """Passes over a payload that is an array, although errors come in one."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        return None if isinstance(payload, list) else super().feed(payload, event)


@mutant("truncated-is-not-complete", api="gemini", family="cut streams")
class CallsMakeItComplete(GeminiAccumulator):
    """Treats a stream that stops as complete if it has calls."""

    def close(self) -> None:
        self._answer.complete = self._answer.complete or bool(self._answer._calls)
        super().close()


@mutant("unknown-event", api="gemini", family="unknown events")
class UnknownPartRaises(GeminiAccumulator):
    """Expects text in every part that is no call; `executableCode` has none."""

    def _part(self, part: Object) -> None:
        if "functionCall" not in part:
            part["text"]
        super()._part(part)


@mutant("null-tolerant", api="gemini", family="null and absent")
class IndexRequired(GeminiAccumulator):
    """Raises where a candidate has no index; the service leaves out an index of 0."""

    def _candidate(self, candidate: Object) -> None:
        candidate["index"] + 0
        super()._candidate(candidate)


@mutant("null-tolerant", api="gemini", family="null and absent")
class CountsRequired(GeminiAccumulator):
    """Raises where usage has no count of candidates, as for a blocked prompt."""

    def _usage(self, usage: Object) -> None:
        if count(usage.get("promptTokenCount")) is not None:
            usage["candidatesTokenCount"] + 0
        super()._usage(usage)


# Input, other streams, deltas


@mutant("input-untouched", api="gemini", family="modified input")
class ThoughtTakenOut(GeminiAccumulator):
    """Takes `thought` out of the part that it was given."""

    def _part(self, part: Object) -> None:
        super()._part(part)
        if isinstance(part, dict):
            part.pop("thought", None)


@mutant("stage-empties", api="gemini", family="shared state")
class SharesItsText(GeminiAccumulator):
    """Keeps text in a list of the class, and clears it when a stream begins."""

    _all: list[str] = []  # noqa: RUF012 - the mistake

    def _part(self, part: Object) -> None:
        super()._part(part)
        if not part.get("thought"):
            self._all.append(string(part.get("text")))

    def outcome(self) -> Outcome:
        return replace(super().outcome(), text="".join(self._all))

    def __init__(self) -> None:
        super().__init__()
        self._all.clear()


@mutant("finish-and-usage", api="gemini", family="finish")
class UnknownFinishIsStop(GeminiAccumulator):
    """Reports finish reasons that it does not know as STOP, such as MALFORMED_FUNCTION_CALL
    (NousResearch/hermes-agent#83886, elastic/kibana#227096)."""

    def _finish(self, reason: str) -> None:
        super()._finish(reason if reason in ("MAX_TOKENS", "SAFETY", "RECITATION") else "STOP")


@mutant("finish-and-usage", api="gemini", family="finish")
class FirstFinishEndsTheStream(GeminiAccumulator):
    """Stops to read at the first finish reason; text or usage may follow
    (Chevey339/kelivo#1003)."""

    def _chunk(self, chunk: Object) -> None:
        if not self._answer.complete or chunk.get("error"):
            super()._chunk(chunk)


@mutant("id-kept", api="gemini", policy=WATCHED, family="call ids")
class AnotherIdAtTheEnd(GeminiAccumulator):
    """Makes an id for the call that it passes on, and another one for the final call
    (librefang/librefang#5874)."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        delta = super().feed(payload, event)
        if delta is None:
            return None
        calls = tuple(replace(call, id=f"passed-on-{call.id}") for call in delta.tool_calls)
        return replace(delta, tool_calls=calls)
