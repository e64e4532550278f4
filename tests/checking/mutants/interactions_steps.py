"""Mistakes with the steps of Gemini Interactions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from examples.accumulators import InteractionsAccumulator
from examples.accumulators.values import mapping, string

Object = Mapping[str, Any]


class ArgumentsOfTheLastCall(InteractionsAccumulator):
    def _delta(self, index: int | None, delta: Object) -> None:
        if delta.get("type") == "arguments_delta":
            index = list(self._steps)[-1]
        super()._delta(index, delta)


class ArgumentsInStartLost(InteractionsAccumulator):
    def _start(self, index: int | None, step: Object) -> None:
        super()._start(index, {**step, "arguments": {}})


class BracesOfTheStartAreText(InteractionsAccumulator):
    def _start(self, index: int | None, step: Object) -> None:
        super()._start(index, step)
        call = self._steps[index].call
        if call is not None:
            call.argue("{}")


class CallWithoutArgumentsDropped(InteractionsAccumulator):
    def _end(self, step: Any) -> None:
        if step.call is not None and not step.call.arguments:
            step.call.closed = True
        super()._end(step)


class ContentOfStartLost(InteractionsAccumulator):
    def _start(self, index: int | None, step: Object) -> None:
        super()._start(index, {**step, "content": []})


class SummaryIsText(InteractionsAccumulator):
    def _delta(self, index: int | None, delta: Object) -> None:
        super()._delta(index, delta)
        if delta.get("type") == "thought_summary":
            self._answer.add("text", string(mapping(delta.get("content")).get("text")))


class FirstSignatureOnly(InteractionsAccumulator):
    def _delta(self, index: int | None, delta: Object) -> None:
        signed: set[int | None] = self.__dict__.setdefault("signed", set())
        if delta.get("type") == "thought_signature":
            if index in signed:
                return
            signed.add(index)
        super()._delta(index, delta)


class UnknownStepRaises(InteractionsAccumulator):
    def _start(self, index: int | None, step: Object) -> None:
        if step.get("type") == "kit_step":
            raise ValueError(f"unknown step {step}")
        super()._start(index, step)


class EndOfInputIsTheEnd(InteractionsAccumulator):
    def close(self) -> None:
        self._answer.complete = self._answer.complete or not self._answer.failed
        super().close()


class ErrorIsAnItem(EndOfInputIsTheEnd):
    def feed(self, payload: Any, event: str | None = None) -> Any:
        return None if mapping(payload).get("error") else super().feed(payload, event)


class ThoughtsAreNotOutput(InteractionsAccumulator):
    def _usage(self, usage: Object) -> None:
        thoughts = usage.get("total_thought_tokens") or 0
        output = usage.get("total_output_tokens")
        counted = None if output is None else output - thoughts
        super()._usage({**usage, "total_output_tokens": counted})


class MetadataIsTheUsage(InteractionsAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Any:
        delta = super().feed(payload, event)
        usage = mapping(mapping(mapping(payload).get("metadata")).get("usage"))
        if usage:
            self.__dict__["early"] = usage
        return delta

    def _usage(self, usage: Object) -> None:
        early = self.__dict__.get("early", {})
        super()._usage({**usage, **({"total_output_tokens": 0} if early else {})})
