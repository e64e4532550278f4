"""Mistakes that were found in reports of bugs and had no mutant yet, in all APIs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from examples.accumulators import (
    AGUIAccumulator,
    AnthropicAccumulator,
    ChatAccumulator,
    GeminiAccumulator,
    ResponsesAccumulator,
)
from examples.accumulators.answer import StagedCall
from examples.accumulators.values import mapping, sequence
from mockllm.checking.outcome import Outcome
from mockllm.checking.probes import Delta

Object = Mapping[str, Any]


def _function(entry: Object) -> Any:
    return entry.get("function", {})


# Chat Completions


class FunctionRequired(ChatAccumulator):
    def _fragment(self, entry: Object) -> None:
        super()._fragment({**entry, "function": {**_function(entry)}})


class NullArgumentsEndTheChunk(ChatAccumulator):
    def _delta(self, delta: Object) -> None:
        entries = sequence(delta.get("tool_calls"))
        nulls = (n for n, each in enumerate(entries, 1) if _arguments_are_null(each))
        super()._delta({**delta, "tool_calls": entries[: next(nulls, None)]})


def _arguments_are_null(entry: Object) -> bool:
    return mapping(entry.get("function")).get("arguments", "") is None


class NegativeIndexLost(ChatAccumulator):
    def _fragment(self, entry: Object) -> None:
        if (entry.get("index") or 0) >= 0:
            super()._fragment(entry)


class OtherIdBeginsACall(ChatAccumulator):
    def _find_call(self, index: int | None, id: str, name: str) -> StagedCall | None:
        call = super()._find_call(index, id, name)
        return None if call and id and call.id and id != call.id else call


class TextLosesTheCalls(ChatAccumulator):
    def _delta(self, delta: Object) -> None:
        super()._delta({**delta, "tool_calls": None} if self._answer.has("text") else delta)


class TextEndsTheCall(ChatAccumulator):
    def _delta(self, delta: Object) -> None:
        if delta.get("content"):
            for call in self._answer.open_calls():
                self._answer.surface(call)
        super()._delta(delta)


class NameOfEveryFragment(ChatAccumulator):
    def _fragment(self, entry: Object) -> None:
        function = mapping(entry.get("function"))
        named = {**function, "name": function["name"]}
        super()._fragment({**entry, "function": named})


class IndexOfEveryChoice(ChatAccumulator):
    def _choice(self, choice: Object, *, failing: bool) -> None:
        super()._choice({**choice, "index": choice["index"]}, failing=failing)


class ObjectRequired(ChatAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        if isinstance(payload, dict) and payload.get("choices"):
            payload = {**payload, "object": payload["object"]}
        return super().feed(payload, event)


class TextOfAnErrorIgnored(ChatAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        if isinstance(payload, dict) and isinstance(payload.get("error"), str):
            payload = {**payload, "error": None}
        return super().feed(payload, event)


# Anthropic Messages


class NullCountsAdded(AnthropicAccumulator):
    def _message_delta(self, value: Object) -> None:
        for number in mapping(value.get("usage")).values():
            if not isinstance(number, dict):
                0 + number
        super()._message_delta(value)


class MissingStopReasonIsEndTurn(AnthropicAccumulator):
    def _message_delta(self, value: Object) -> None:
        delta = {"stop_reason": "end_turn", **mapping(value.get("delta"))}
        super()._message_delta({**value, "delta": delta})


class InputTokensOfTheEndRequired(AnthropicAccumulator):
    def _message_delta(self, value: Object) -> None:
        0 + mapping(value.get("usage")).get("input_tokens", None)
        super()._message_delta(value)


class UsageOfTheStartRequired(AnthropicAccumulator):
    def _message_start(self, message: Object) -> None:
        super()._message_start({**message, "usage": {**message["usage"]}})


class EndTurnRunsNoCalls(AnthropicAccumulator):
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        return replace(outcome, tool_calls=()) if outcome.finish == "end_turn" else outcome


class DeltasWithoutAStartLost(AnthropicAccumulator):
    def _delta(self, index: int | None, delta: Object) -> None:
        if index in self._blocks:
            super()._delta(index, delta)


class SignatureOfTheStartRequired(AnthropicAccumulator):
    def _start(self, index: int | None, block: Object) -> None:
        if block.get("type") == "thinking":
            block = {**block, "signature": block["signature"]}
        super()._start(index, block)


# Responses


class EmptyFragmentRefused(ResponsesAccumulator):
    def _arguments(self, stage: str, value: Object) -> None:
        if stage == "delta" and not value["delta"]:
            raise ValueError(f"invalid delta in {value}")
        super()._arguments(stage, value)


class OutputIsAList(ResponsesAccumulator):
    def _end(self, status: str, response: Object) -> None:
        super()._end(status, {**response, "output": list(response.get("output", []))})


class OutputRequired(ResponsesAccumulator):
    def _end(self, status: str, response: Object) -> None:
        output = response.get("output", []) if status == "failed" else response["output"]
        super()._end(status, {**response, "output": output})


class ContentIndexRequired(ResponsesAccumulator):
    def _text_event(self, name: str, stage: str, value: Object) -> None:
        if name == "output_text":
            value = {**value, "content_index": 0 + value["content_index"]}
        super()._text_event(name, stage, value)


class SummaryIndexRequired(ResponsesAccumulator):
    def _text_event(self, name: str, stage: str, value: Object) -> None:
        if name == "reasoning_summary_text":
            value = {**value, "summary_index": 0 + value["summary_index"]}
        super()._text_event(name, stage, value)


class ErrorWithoutACodeIgnored(ResponsesAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        unread = mapping(mapping(payload).get("error")).get("code", "") is None
        return None if unread else super().feed(payload, event)


# Gemini


class SignedTextLost(GeminiAccumulator):
    def _part(self, part: Object) -> None:
        super()._part({**part, "text": ""} if part.get("thoughtSignature") else part)


# AG-UI


class ParentIsText(AGUIAccumulator):
    def _start(self, id: str, value: Object) -> None:
        super()._start(id, {**value, "parentMessageId": "" + value.get("parentMessageId", "")})


class FragmentsAfterTheEndLost(AGUIAccumulator):
    def __init__(self) -> None:
        super().__init__()
        self.ended: set[str] = set()

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        value = mapping(payload)
        id = value.get("messageId", "")
        match value.get("type"):
            case "TEXT_MESSAGE_START":
                self.ended.discard(id)
            case "TEXT_MESSAGE_END":
                self.ended.add(id)
            case "TEXT_MESSAGE_CONTENT" if id in self.ended:
                return None
        return super().feed(payload, event)


class OpenMessageRefusesCalls(AGUIAccumulator):
    def _start(self, id: str, value: Object) -> None:
        if any(kind == "text message" for kind, _ in self._open_spans):
            raise ValueError("end the message first")
        super()._start(id, value)
