"""Chat Completions: mistakes with the end of a stream, its usage, and errors in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from examples.accumulators import ChatAccumulator
from examples.accumulators.answer import StagedCall
from mockllm.checking.outcome import Usage
from mockllm.checking.probes import Delta
from tests.checking.mutants.declared import SHARED, mutant

Object = Mapping[str, Any]


# One line loses both text and usage.
@mutant("text-accumulates", "finish-and-usage", api="chat", family="finish")
class StopsAtFinish(ChatAccumulator):
    """Ignores everything after the finish reason (`chat-delta-after-finish`)."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        return None if self._answer.complete else super().feed(payload, event)


@mutant("text-accumulates", api="chat", family="text")
class NoDeltaAfterFinish(ChatAccumulator):
    """Ignores deltas after the finish reason (`chat-delta-after-finish`)."""

    def _delta(self, delta: Object) -> None:
        if not self._answer.complete:
            super()._delta(delta)


# How much text is in the chunk of the finish reason depends on how chunks are joined.
@mutant("delta-first", "chunking-free", api="chat", family="text")
class FinishBeforeDelta(ChatAccumulator):
    """Ignores the delta in the chunk of the finish reason (`chat-finish-with-last-delta`)."""

    def _choice(self, choice: Object, *, failing: bool) -> None:
        delta = {} if choice.get("finish_reason") else choice.get("delta")
        super()._choice({**choice, "delta": delta}, failing=failing)


@mutant("finish-and-usage", api="chat", family="finish")
class LastFinishWins(ChatAccumulator):
    """Keeps the finish reason of the last chunk, even if it is null
    (`chat-delta-after-finish`)."""

    def _choice(self, choice: Object, *, failing: bool) -> None:
        super()._choice(choice, failing=failing)
        self._answer.finish = choice.get("finish_reason")


@mutant("finish-and-usage", api="chat", family="finish")
class AppendsTheFinish(ChatAccumulator):
    """Joins the finish reasons of all chunks: "stopstop" (`chat-finish-twice`)."""

    def _choice(self, choice: Object, *, failing: bool) -> None:
        before = self._answer.finish
        super()._choice(choice, failing=failing)
        if before and choice.get("finish_reason"):
            self._answer.finish = before + choice["finish_reason"]


@mutant("finish-and-usage", api="chat", family="finish")
class FinishFromAList(ChatAccumulator):
    """Raises on a finish reason that is not documented (`chat-finish-foreign-value`)."""

    def _choice(self, choice: Object, *, failing: bool) -> None:
        known = (None, "", "stop", "length", "tool_calls", "content_filter")
        if choice.get("finish_reason") not in known:
            raise ValueError(f"unknown finish_reason {choice['finish_reason']!r}")
        super()._choice(choice, failing=failing)


@mutant("finish-and-usage", api="chat", family="finish")
class CallsByFinish(ChatAccumulator):
    """Drops the calls where the finish reason is `stop` (`chat-finish-stop-with-tools`)."""

    def _surface(self) -> None:
        if self._answer.finish == "stop":
            self._answer._abandon()
        super()._surface()


@mutant("null-tolerant", api="chat", family="null and absent")
class FinishKeyRequired(ChatAccumulator):
    """Raises where a choice has no `finish_reason` key (`chat-finish-key-absent`)."""

    def _choice(self, choice: Object, *, failing: bool) -> None:
        choice["finish_reason"]
        super()._choice(choice, failing=failing)


@mutant("finish-and-usage", api="chat", family="usage")
class SumsUsage(ChatAccumulator):
    """Adds up counts that are already cumulative (`usage-cumulative`)."""

    def _usage(self, chunk: Object) -> None:
        before, self._answer.usage = self._answer.usage, None
        super()._usage(chunk)
        now = self._answer.usage
        if before is not None and now is not None:
            self._answer.usage = Usage(before.input, (before.output or 0) + (now.output or 0))
        else:
            self._answer.usage = now or before


@mutant("finish-and-usage", api="chat", family="usage")
class NullWipesUsage(ChatAccumulator):
    """Keeps the usage of the last chunk, even if it has none
    (`usage-wiped-by-trailing-chunk`)."""

    def _usage(self, chunk: Object) -> None:
        self._answer.usage = None
        super()._usage(chunk)


@mutant("finish-and-usage", api="chat", family="usage")
class UsageWithoutChoices(ChatAccumulator):
    """Reads the usage only of chunks without choices (`usage-in-finish-chunk`)."""

    def _usage(self, chunk: Object) -> None:
        if not chunk.get("choices"):
            super()._usage(chunk)


@mutant("truncated-is-not-complete", api="chat", family="cut streams")
class EndOfInputIsTheEnd(ChatAccumulator):
    """Treats a stream that stops as complete (`chat-finish-never`, `sse-cut`)."""

    def close(self) -> None:
        self._answer.complete = True
        super().close()


@mutant("error-ends", api="chat", family="errors")
class ErrorPassedOver(ChatAccumulator):
    """Ignores errors in a stream (`err-in-stream`, `err-with-choices`)."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        return super().feed({**payload, "error": None}, None)


@mutant("error-ends", api="chat", family="errors")
class ErrorNeedsItsEventLine(ChatAccumulator):
    """Reads errors only of events named `error` (`err-with-choices`)."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        return super().feed(payload if event == "error" else {**payload, "error": None}, event)


@mutant("error-ends", api="chat", family="errors")
class ErrorSurfacesCalls(ChatAccumulator):
    """Reports the staged calls when an error arrives, and does not report the error."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        if payload.get("error"):
            self._answer.complete = True
            return None
        return super().feed(payload, event)


_STAGE: list[StagedCall] = []
_SHARED: list[StagedCall] = []


def forget_streams() -> None:
    """Clears what mutants keep from one stream to the next."""
    for kept in (_STAGE, _SHARED, *SHARED):
        kept.clear()


@mutant("stage-empties", api="chat", family="shared state")
class SharesTheStage(ChatAccumulator):
    """Keeps the calls in one list for all streams."""

    def __init__(self) -> None:
        super().__init__()
        self._calls = _STAGE


@mutant("stage-empties", api="chat", family="shared state")
class ClearsTheStageAtTheEnd(ChatAccumulator):
    """Shares the stage between streams, and clears it whenever one of them ends."""

    def __init__(self) -> None:
        super().__init__()
        self._calls = _SHARED

    def close(self) -> None:
        super().close()
        _SHARED.clear()
