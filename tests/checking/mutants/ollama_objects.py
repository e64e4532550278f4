"""Mistakes with the objects of Ollama's streams."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from examples.accumulators import OllamaAccumulator
from examples.accumulators.values import mapping, sequence, string

Object = Mapping[str, Any]


def _with_message(value: Object, **fields: Any) -> Object:
    return {**value, "message": {**mapping(value.get("message")), **fields}}


def _calls(value: Object) -> list[Any]:
    return sequence(mapping(value.get("message")).get("tool_calls"))


class FirstCallOfAnObject(OllamaAccumulator):
    def _object(self, value: Object) -> None:
        super()._object(_with_message(value, tool_calls=_calls(value)[:1]))


class CallsOfTheLastObjectLost(OllamaAccumulator):
    def _object(self, value: Object) -> None:
        super()._object(_with_message(value, tool_calls=[]) if value.get("done") else value)


class CallsOfOneObjectOnly(OllamaAccumulator):
    def _object(self, value: Object) -> None:
        if _calls(value) and self.__dict__.setdefault("called", value) is not value:
            value = _with_message(value, tool_calls=[])
        super()._object(value)


class CallsKeyedByIndex(OllamaAccumulator):
    def _call(self, value: Object) -> None:
        index = mapping(value.get("function")).get("index")
        seen: set[Any] = self.__dict__.setdefault("seen", set())
        if index is None or index not in seen:
            super()._call(value)
        seen.add(index)


class IdsAreDropped(OllamaAccumulator):
    def _call(self, value: Object) -> None:
        super()._call({**value, "id": None})


class ArgumentsStayText(OllamaAccumulator):
    def _call(self, value: Object) -> None:
        function = mapping(value.get("function"))
        if isinstance(function.get("arguments"), str):
            function = {**function, "arguments": json.dumps(function["arguments"])}
        super()._call({**value, "function": function})


class CallWithoutArgumentsDropped(OllamaAccumulator):
    def _call(self, value: Object) -> None:
        if mapping(value.get("function")).get("arguments"):
            super()._call(value)


class DoneReasonDecidesOnCalls(OllamaAccumulator):
    def _finish(self, value: Object, reason: str) -> None:
        if reason == "stop":
            for call in self._answer._opened:
                call.closed = True
            self._answer._calls.clear()
        super()._finish(value, reason)


class DoneNeedsAReason(OllamaAccumulator):
    def _finish(self, value: Object, reason: str) -> None:
        if value.get("done_reason"):
            super()._finish(value, reason)


class ThinkingIsText(OllamaAccumulator):
    def _object(self, value: Object) -> None:
        message = mapping(value.get("message"))
        text = string(message.get("thinking")) + string(message.get("content"))
        super()._object(_with_message(value, thinking="", content=text))


class NullContentRaises(OllamaAccumulator):
    def _object(self, value: Object) -> None:
        message = mapping(value.get("message"))
        if message and message.get("content", "") is None:
            raise TypeError("can only concatenate str")
        super()._object(value)


class CountsAreRequired(OllamaAccumulator):
    def _finish(self, value: Object, reason: str) -> None:
        super()._finish({**value, "prompt_eval_count": value["prompt_eval_count"]}, reason)


class ErrorLineIgnored(OllamaAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Any:
        return super().feed({**mapping(payload), "error": None}, event)


class EndOfInputIsTheEnd(OllamaAccumulator):
    def close(self) -> None:
        self._answer.complete = self._answer.complete or not self._answer.failed
        super().close()


class NullArgumentsDropTheCall(OllamaAccumulator):
    def _call(self, value: Object) -> None:
        if mapping(value.get("function")).get("arguments") is not None:
            super()._call(value)


class NullArgumentsAreText(OllamaAccumulator):
    def _call(self, value: Object) -> None:
        function = mapping(value.get("function"))
        arguments = json.dumps(function.get("arguments"))
        super()._call({**value, "function": {**function, "arguments": arguments}})


class TextOfTheLastObjectLost(OllamaAccumulator):
    def _object(self, value: Object) -> None:
        last = value.get("done") or value.get("done_reason")
        super()._object(_with_message(value, content="") if last else value)


class ImagesRaise(OllamaAccumulator):
    def _object(self, value: Object) -> None:
        if mapping(value.get("message")).get("images"):
            raise ValueError("unknown field images")
        super()._object(value)


class TokensOfLogprobsAreText(OllamaAccumulator):
    def _object(self, value: Object) -> None:
        super()._object(value)
        for token in map(mapping, sequence(value.get("logprobs"))):
            self._answer.add("text", string(token.get("token")))
