"""Mistakes with the events of Cohere's Chat API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from examples.accumulators import CohereAccumulator
from examples.accumulators.values import mapping, string

Object = Mapping[str, Any]


class CallsHaveOneIndex(CohereAccumulator):
    def _start(self, index: int | None, call: Object) -> None:
        if 0 not in self._calls:
            super()._start(0, call)

    def _arguments(self, index: int | None, call: Object) -> None:
        super()._arguments(0, call)

    def _end(self, index: int | None) -> None:
        pass

    def _message_end(self, delta: Object) -> None:
        super()._end(0)
        super()._message_end(delta)


class NullArgumentsAreText(CohereAccumulator):
    def _arguments(self, index: int | None, call: Object) -> None:
        staged = self._calls.get(index)
        text = string(mapping(call.get("function")).get("arguments"))
        if staged is not None:
            staged.argue(text)


class CallWithoutArgumentsDropped(CohereAccumulator):
    def _end(self, index: int | None) -> None:
        staged = self._calls.get(index)
        if staged is not None and not staged.arguments:
            staged.closed = True
            return
        super()._end(index)


class PlanLost(CohereAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Any:
        if mapping(payload).get("type") == "tool-plan-delta":
            return None
        return super().feed(payload, event)


class TextOfAStartLost(CohereAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Any:
        if mapping(payload).get("type") == "content-start":
            return None
        return super().feed(payload, event)


class BlocksKeyedByIndex(CohereAccumulator):
    def _content(self, index: int | None, content: Object) -> None:
        kinds: dict[int | None, str] = self.__dict__.setdefault("kinds", {})
        text = string(content.get("thinking")) + string(content.get("text"))
        if index not in kinds:
            kinds[index] = "thinking" if "thinking" in content else "text"
        super()._content(index, {kinds[index]: text})


class ThinkingLost(CohereAccumulator):
    def _content(self, index: int | None, content: Object) -> None:
        super()._content(index, {**content, "thinking": ""})


class ErrorIsAFinish(CohereAccumulator):
    def _message_end(self, delta: Object) -> None:
        self._usage(mapping(delta.get("usage")))
        self._answer.finish = string(delta.get("finish_reason")) or None
        self._answer.complete = True


class BilledUnitsAreTheUsage(CohereAccumulator):
    def _usage(self, usage: Object) -> None:
        super()._usage({**usage, "tokens": usage.get("billed_units")})


class UnknownEventRaises(CohereAccumulator):
    def _other(self, value: Object) -> None:
        raise ValueError(f"unknown event {value.get('type')}")


class EndOfInputIsTheEnd(CohereAccumulator):
    def close(self) -> None:
        self._answer.complete = self._answer.complete or not self._answer.failed
        super().close()


class EventLineIsRequired(CohereAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Any:
        return super().feed(payload, event) if event else None


class CitationIsACall(CohereAccumulator):
    def _other(self, value: Object) -> None:
        cited = mapping(mapping(mapping(value.get("delta")).get("message")).get("citations"))
        for source in cited.get("sources") or []:
            if source.get("type") == "tool":
                call = self._answer.open(99, id=str(source["id"]), name="get_weather")
                self._answer.surface(call)
        super()._other(value)


class CitedTextIsText(CohereAccumulator):
    def _other(self, value: Object) -> None:
        cited = mapping(mapping(mapping(value.get("delta")).get("message")).get("citations"))
        self._answer.add("text", string(cited.get("text")))
        super()._other(value)


class TokensOfLogprobsAreText(CohereAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Any:
        super().feed(payload, event)
        self._answer.add("text", string(mapping(mapping(payload).get("logprobs")).get("text")))
        return self._answer.delta()
