"""Mistakes with blocks, ends and counts in Converse of Amazon Bedrock."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from examples.accumulators import BedrockAccumulator
from examples.accumulators.values import count, mapping, string
from mockllm.checking.outcome import Usage

Object = Mapping[str, Any]


class OneBlockForAllCalls(BedrockAccumulator):
    def _start(self, index: int, use: Object) -> None:
        call = self._calls.get(0)
        if call is None or not use:
            super()._start(0, use)

    def _delta(self, index: int, delta: Object) -> None:
        super()._delta(0, delta)

    def _stop(self, index: int) -> None:
        if self._answer.complete:
            super()._stop(0)


class CallWithoutDeltaDropped(BedrockAccumulator):
    def _stop(self, index: int) -> None:
        call = self._calls.get(index)
        if call is not None and not call.arguments:
            self._calls.pop(index)
            call.closed = True
        super()._stop(index)


class DeltaNeedsAStart(BedrockAccumulator):
    def _start(self, index: int, use: Object) -> None:
        super()._start(index, use)
        self.__dict__.setdefault("started", set()).add(index)

    def _delta(self, index: int, delta: Object) -> None:
        if index not in self.__dict__.get("started", set()):
            raise KeyError(index)
        super()._delta(index, delta)


class CallsOfToolUseOnly(BedrockAccumulator):
    def _content(self, name: str, index: int, value: Object) -> None:
        if name == "messageStop" and string(value.get("stopReason")) != "tool_use":
            for call in self._answer._opened:
                call.closed = True
            self._answer._calls.clear()
            self._calls.clear()
        super()._content(name, index, value)


class CallsNeedABlockStop(BedrockAccumulator):
    def _end_open_blocks(self) -> None:
        for call in self._calls.values():
            call.closed = True
        self._calls.clear()
        super()._end_open_blocks()


class ServersToolsAreCalls(BedrockAccumulator):
    def _start(self, index: int, use: Object) -> None:
        super()._start(index, {**use, "type": None} if use else use)


class LastTextBlockOnly(BedrockAccumulator):
    def _delta(self, index: int, delta: Object) -> None:
        if "text" in delta and index != self.__dict__.get("block", index):
            self._answer.replace("text", "", (self.__dict__["block"],))
        if "text" in delta:
            self.__dict__["block"] = index
        super()._delta(index, delta)


class ReasoningLost(BedrockAccumulator):
    def _delta(self, index: int, delta: Object) -> None:
        super()._delta(index, {**delta, "reasoningContent": None})


class RedactedReasoningLost(BedrockAccumulator):
    def _delta(self, index: int, delta: Object) -> None:
        reasoning = {**mapping(delta.get("reasoningContent")), "redactedContent": None}
        super()._delta(index, {**delta, "reasoningContent": reasoning})


class SignatureNeedsText(BedrockAccumulator):
    def _delta(self, index: int, delta: Object) -> None:
        reasoning = mapping(delta.get("reasoningContent"))
        kept = reasoning if reasoning.get("text") else {**reasoning, "signature": None}
        super()._delta(index, {**delta, "reasoningContent": kept})


class UnknownEventRaises(BedrockAccumulator):
    def _content(self, name: str, index: int, value: Object) -> None:
        known = ("messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop")
        if name not in (*known, "messageStop", "p"):
            raise ValueError(f"unknown event {name}")
        super()._content(name, index, value)


class PaddingIsAnEvent(BedrockAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Any:
        if isinstance(payload, dict) and "p" in payload:
            raise TypeError("several members of the union are set")
        for value in mapping(payload).values():
            if isinstance(value, dict) and "p" in value:
                raise TypeError("unknown field p")
        return super().feed(payload, event)


class KnownExceptionsOnly(BedrockAccumulator):
    def _event(self, name: str, value: Object) -> None:
        known = ("throttlingException", "internalServerException", "validationException")
        if name.endswith("Exception") and name not in known:
            return
        super()._event(name, value)


class ExceptionsIgnored(BedrockAccumulator):
    def _event(self, name: str, value: Object) -> None:
        if name != "error" and not name.endswith("Exception"):
            super()._event(name, value)


class EndOfInputIsTheEnd(BedrockAccumulator):
    def close(self) -> None:
        if not self._answer.failed:
            self._answer.complete = True
            self._end_open_blocks()
        super().close()


class CachedTokensNotCounted(BedrockAccumulator):
    def _count_tokens(self, usage: Object) -> None:
        super()._count_tokens(usage)
        if self._answer.usage is not None:
            old = self._answer.usage
            self._answer.usage = Usage(
                count(usage.get("inputTokens")), old.output, None, old.cached
            )


class UsageNeedsEveryField(BedrockAccumulator):
    def _count_tokens(self, usage: Object) -> None:
        super()._count_tokens({"inputTokens": usage["inputTokens"], **usage})


class WrittenTokensLost(BedrockAccumulator):
    def _count_tokens(self, usage: Object) -> None:
        super()._count_tokens({**usage, "cacheWriteInputTokens": 0})


class WrittenTokensAreCached(BedrockAccumulator):
    def _count_tokens(self, usage: Object) -> None:
        read, written = (count(usage.get(f"cache{name}InputTokens")) or 0 for name in _CACHE)
        counts = {"cacheReadInputTokens": read + written, "cacheWriteInputTokens": 0}
        super()._count_tokens({**usage, **counts} if usage else usage)


_CACHE = ("Read", "Write")


class StopNeedsAnIndex(BedrockAccumulator):
    def _content(self, name: str, index: int, value: Object) -> None:
        if name == "contentBlockStop":
            index = value["contentBlockIndex"]
        super()._content(name, index, value)


class StopWithoutIndexDropsTheCall(BedrockAccumulator):
    def _content(self, name: str, index: int, value: Object) -> None:
        if name == "contentBlockStop" and "contentBlockIndex" not in value:
            for call in self._calls.values():
                call.closed = True
            self._calls.clear()
        super()._content(name, index, value)
