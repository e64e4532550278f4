"""Chat Completions: mistakes with the end of a stream, its usage, and errors in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mockllm.checking.outcome import Usage
from mockllm.checking.probes import Delta
from mockllm.checking.reference import ChatAccumulator
from mockllm.checking.reference.answer import StagedCall
from tests.checking.mutants.declared import mutant

Object = Mapping[str, Any]


# Lost text and usage are two things that are broken, though one line does it.
@mutant("text-accumulates", "finish-and-usage", api="chat")
class StopsAtFinish(ChatAccumulator):
    """Looks at nothing behind the finish reason (`chat-delta-after-finish`)."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        return None if self._answer.complete else super().feed(payload, event)


@mutant("text-accumulates", api="chat")
class NoDeltaAfterFinish(ChatAccumulator):
    """Looks at no text behind the finish reason (`chat-delta-after-finish`)."""

    def _delta(self, delta: Object) -> None:
        if not self._answer.complete:
            super()._delta(delta)


# How many deltas there are next to it depends on how chunks are joined.
@mutant("delta-first", "chunking-free", api="chat")
class FinishBeforeDelta(ChatAccumulator):
    """Looks at the finish reason instead of the delta next to it
    (`chat-finish-with-last-delta`)."""

    def _choice(self, choice: Object, *, failing: bool) -> None:
        delta = {} if choice.get("finish_reason") else choice.get("delta")
        super()._choice({**choice, "delta": delta}, failing=failing)


@mutant("finish-and-usage", api="chat")
class LastFinishWins(ChatAccumulator):
    """Takes the finish reason of the last chunk, be it null (`chat-delta-after-finish`)."""

    def _choice(self, choice: Object, *, failing: bool) -> None:
        super()._choice(choice, failing=failing)
        self._answer.finish = choice.get("finish_reason")


@mutant("finish-and-usage", api="chat")
class AppendsTheFinish(ChatAccumulator):
    """Joins the finish reasons of all chunks: "stopstop" (`chat-finish-twice`)."""

    def _choice(self, choice: Object, *, failing: bool) -> None:
        before = self._answer.finish
        super()._choice(choice, failing=failing)
        if before and choice.get("finish_reason"):
            self._answer.finish = before + choice["finish_reason"]


@mutant("finish-and-usage", api="chat")
class FinishFromAList(ChatAccumulator):
    """Takes no finish reason but those of the documentation (`chat-finish-foreign-value`)."""

    def _choice(self, choice: Object, *, failing: bool) -> None:
        known = (None, "", "stop", "length", "tool_calls", "content_filter")
        if choice.get("finish_reason") not in known:
            raise ValueError(f"unknown finish_reason {choice['finish_reason']!r}")
        super()._choice(choice, failing=failing)


@mutant("finish-and-usage", api="chat")
class CallsByFinish(ChatAccumulator):
    """Has calls only where the finish reason says so (`chat-finish-stop-with-tools`)."""

    def _surface(self) -> None:
        if self._answer.finish == "stop":
            self._answer._abandon()
        super()._surface()


@mutant("null-tolerant", api="chat")
class FinishKeyRequired(ChatAccumulator):
    """Breaks where a choice says nothing of a finish (`chat-finish-key-absent`)."""

    def _choice(self, choice: Object, *, failing: bool) -> None:
        choice["finish_reason"]
        super()._choice(choice, failing=failing)


@mutant("finish-and-usage", api="chat")
class SumsUsage(ChatAccumulator):
    """Adds up counts that are sums already (`usage-cumulative`)."""

    def _usage(self, chunk: Object) -> None:
        before, self._answer.usage = self._answer.usage, None
        super()._usage(chunk)
        now = self._answer.usage
        if before is not None and now is not None:
            self._answer.usage = Usage(before.input, (before.output or 0) + (now.output or 0))
        else:
            self._answer.usage = now or before


@mutant("finish-and-usage", api="chat")
class NullWipesUsage(ChatAccumulator):
    """Takes the usage of the last chunk, be it none (`usage-wiped-by-trailing-chunk`)."""

    def _usage(self, chunk: Object) -> None:
        self._answer.usage = None
        super()._usage(chunk)


@mutant("finish-and-usage", api="chat")
class UsageWithoutChoices(ChatAccumulator):
    """Looks for the usage only where there are no choices (`usage-in-finish-chunk`)."""

    def _usage(self, chunk: Object) -> None:
        if not chunk.get("choices"):
            super()._usage(chunk)


@mutant("truncated-is-not-complete", api="chat")
class EndOfInputIsTheEnd(ChatAccumulator):
    """Takes a stream that stops for one that is complete (`chat-finish-never`, `sse-cut`)."""

    def close(self) -> None:
        self._answer.complete = True
        super().close()


@mutant("error-ends", api="chat")
class ErrorPassedOver(ChatAccumulator):
    """Knows nothing of errors in a stream (`err-in-stream`, `err-with-choices`)."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        return super().feed({**payload, "error": None}, None)


@mutant("error-ends", api="chat")
class ErrorNeedsItsEventLine(ChatAccumulator):
    """Reads errors only where the event line tells of them (`err-with-choices`)."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        return super().feed(payload if event == "error" else {**payload, "error": None}, event)


@mutant("error-ends", api="chat")
class ErrorSurfacesCalls(ChatAccumulator):
    """Lets the calls out that wait when an error comes, and says nothing of the error."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        if payload.get("error"):
            self._answer.complete = True
            return None
        return super().feed(payload, event)


_STAGE: list[StagedCall] = []


@mutant("stage-empties", api="chat")
class SharesTheStage(ChatAccumulator):
    """Keeps the calls in an attribute of the class, and so those of the last stream, too."""

    def __init__(self) -> None:
        super().__init__()
        self._calls = _STAGE


@mutant("stage-empties", api="chat")
class ClearsTheStageAtTheEnd(ChatAccumulator):
    """Shares the stage between streams, and clears it whenever one of them is complete."""

    def __init__(self) -> None:
        super().__init__()
        self._calls = _SHARED

    def close(self) -> None:
        super().close()
        _SHARED.clear()


_SHARED: list[StagedCall] = []
