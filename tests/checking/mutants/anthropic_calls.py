"""Mistakes with blocks, calls and fragments of arguments in Messages."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from examples.accumulators import (
    AnthropicAccumulator,
)
from examples.accumulators.anthropic import _Block
from examples.accumulators.values import mapping, string
from mockllm.checking.outcome import Outcome
from mockllm.checking.probes import Delta, Fragment
from tests.checking.mutants.altered import (
    AbandonsNothing,
    answer_of,
    closing_brackets,
    rewriting_arguments,
    with_calls,
)

Object = Mapping[str, Any]


class InputOfTheStart(AnthropicAccumulator):
    def _delta(self, index: int | None, delta: Object) -> None:
        if delta.get("type") != "input_json_delta":
            super()._delta(index, delta)


class InputOfTheStartLost(AnthropicAccumulator):
    def _start(self, index: int | None, block: Object) -> None:
        super()._start(index, {**block, "input": {}})


class IndexIsAPosition(AnthropicAccumulator):
    def _start(self, index: int | None, block: Object) -> None:
        super()._start(len(self._blocks), block)


class DeltasToTheOpenBlock(AnthropicAccumulator):
    def _delta(self, index: int | None, delta: Object) -> None:
        super()._delta(list(self._blocks)[-1] if self._blocks else index, delta)


class FirstBlockOfAnIndex(AnthropicAccumulator):
    def _start(self, index: int | None, block: Object) -> None:
        if index not in self._blocks:
            super()._start(index, block)


class ParsesEachFragment(AnthropicAccumulator):
    def _delta(self, index: int | None, delta: Object) -> None:
        if delta.get("partial_json"):
            json.loads(delta["partial_json"])
        super()._delta(index, delta)


class ParsesEmptyArguments(AnthropicAccumulator):
    def _end(self, block: _Block) -> None:
        if block.call is not None and not block.call.closed and not block.initial_arguments:
            block.call.arguments = block.call.arguments or json.loads("")
        super()._end(block)


class DropsFalsyInput(AnthropicAccumulator):
    def _end(self, block: _Block) -> None:
        if block.call is not None and not (block.call.arguments or block.initial_arguments):
            block.call.closed = True
        super()._end(block)


class ThinkingIsText(AnthropicAccumulator):
    def _delta(self, index: int | None, delta: Object) -> None:
        if delta.get("type") == "thinking_delta":
            self._answer.add("text", delta["thinking"], (index or 0,))
        else:
            super()._delta(index, delta)


class TextOfTheStartLost(AnthropicAccumulator):
    def _start(self, index: int | None, block: Object) -> None:
        super()._start(index, {**block, "text": ""})


class SecondStartGoesOn(AnthropicAccumulator):
    def _message_start(self, message: Object) -> None:
        self._started = False
        super()._message_start(message)


class SumsUsage(AnthropicAccumulator):
    def _count_tokens(self, usage: Object) -> None:
        output = usage.get("output_tokens")
        more = self._tokens.get("output_tokens", 1)
        super()._count_tokens({**usage, "output_tokens": output and output + more})


class LastStopReason(AnthropicAccumulator):
    def _message_delta(self, value: Object) -> None:
        super()._message_delta(value)
        self._answer.finish = value["delta"].get("stop_reason")


class InputTokensAlone(AnthropicAccumulator):
    def _count_tokens(self, usage: Object) -> None:
        cached = ("cache_read_input_tokens", "cache_creation_input_tokens")
        super()._count_tokens({**usage, **dict.fromkeys(cached)})


class UnknownEventRaises(AnthropicAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        type = payload.get("type") or event or "error"
        if not type.startswith(("message_", "content_block_", "ping", "error")):
            raise ValueError(f"unknown event {type!r}")
        return super().feed(payload, event)


class UnknownBlockRaises(AnthropicAccumulator):
    def _start(self, index: int | None, block: Object) -> None:
        known = {"text": 0, "thinking": 1, "redacted_thinking": 2, "tool_use": 3}
        known[block["type"]]
        super()._start(index, block)


class PingIsADelta(AnthropicAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        if payload.get("type") == "ping" and self._started and not self._answer.complete:
            payload["delta"]
        return super().feed(payload, event)


class InputRequired(AnthropicAccumulator):
    def _start(self, index: int | None, block: Object) -> None:
        if block.get("type") == "tool_use":
            block["input"].items()
        super()._start(index, block)


class UsageRequired(AnthropicAccumulator):
    def _message_delta(self, value: Object) -> None:
        value["usage"]
        super()._message_delta(value)


class CutCallComesOut(AnthropicAccumulator):
    def _message_delta(self, value: Object) -> None:
        if value["delta"].get("stop_reason") == "max_tokens":
            for block in self._blocks.values():
                if block.call is not None and not block.call.closed:
                    block.call.arguments = "{}"
                    self._answer.surface(block.call)
        super()._message_delta(value)


class ErrorIsAnEnd(AnthropicAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        return super().feed({"type": "message_stop"} if "error" in payload else payload, event)


class EndOfInputIsTheEnd(AnthropicAccumulator):
    def close(self) -> None:
        self._answer.complete = True
        super().close()


class EventLinesRequired(AnthropicAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        if event is None:
            self._answer.complete = not self._started
            return None
        return super().feed(payload, event)


class FirstCallOnly(AnthropicAccumulator):
    def _start(self, index: int | None, block: Object) -> None:
        if block.get("type") != "tool_use" or not any(b.call for b in self._blocks.values()):
            super()._start(index, block)


class OneDigitOfTheIndex(AnthropicAccumulator):
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        return replace(outcome, tool_calls=outcome.tool_calls[-10:])


class ServerToolInputToTheCall(AnthropicAccumulator):
    def _delta(self, index: int | None, delta: Object) -> None:
        block = self._blocks.get(index)
        if block is not None and block.call is None and delta.get("type") == "input_json_delta":
            calls = [b.call for b in self._blocks.values() if b.call is not None]
            if calls:
                calls[-1].closed = False
                calls[-1].arguments += string(delta.get("partial_json"))
        super()._delta(index, delta)


class ServerToolsAreCalls(AnthropicAccumulator):
    def _start(self, index: int | None, block: Object) -> None:
        hosted = string(block.get("type")).endswith("tool_use")
        super()._start(index, {**block, "type": "tool_use"} if hosted else block)


class PrefixOfTheIdChanged(AnthropicAccumulator):
    def outcome(self) -> Outcome:
        return with_calls(
            super().outcome(),
            lambda call: replace(call, id="fc_" + str(call.id).partition("_")[2]),
        )


class IdsCutToTheirBeginning(AnthropicAccumulator):
    def outcome(self) -> Outcome:
        return with_calls(super().outcome(), lambda call: replace(call, id=str(call.id)[:6]))


class IdOfTheMessage(AnthropicAccumulator):
    def _message_start(self, message: Object) -> None:
        self.message = string(message.get("id"))
        super()._message_start(message)

    def _start(self, index: int | None, block: Object) -> None:
        id = f"{self.__dict__.get('message', '')}-{self._count}"
        super()._start(index, {**block, "id": id} if "id" in block else block)


class NamesInLowerCase(AnthropicAccumulator):
    def outcome(self) -> Outcome:
        def changed(call: Any) -> Any:
            return replace(call, name=call.name.lower().replace("_", "-"))

        return with_calls(super().outcome(), changed)


# Fragments


class StartIsTheFirstFragment(AnthropicAccumulator):
    def _start(self, index: int | None, block: Object) -> None:
        super()._start(index, block)
        call = self._blocks[index].call
        if call is not None:
            call.arguments = json.dumps(block.get("input") or {})


class EmptyFragmentIsAnObject(AnthropicAccumulator):
    def _delta(self, index: int | None, delta: Object) -> None:
        if delta.get("type") == "input_json_delta":
            delta = {**delta, "partial_json": delta.get("partial_json") or "{}"}
        super()._delta(index, delta)


class TrimsFragments(AnthropicAccumulator):
    def _delta(self, index: int | None, delta: Object) -> None:
        super()._delta(index, {**delta, "partial_json": string(delta.get("partial_json")).strip()})


class RepeatedFragmentsDropped(AnthropicAccumulator):
    def _delta(self, index: int | None, delta: Object) -> None:
        before = self.__dict__.get("before")
        self.before = (index, delta.get("partial_json"))
        if not delta.get("partial_json") or before != self.before:
            super()._delta(index, delta)


class LastFragmentOnly(AnthropicAccumulator):
    def _delta(self, index: int | None, delta: Object) -> None:
        block = self._blocks.get(index)
        if block is not None and block.call is not None and delta.get("partial_json"):
            block.call.arguments = ""
        super()._delta(index, delta)


class FailedFragmentsSwallowed(AnthropicAccumulator):
    def _end(self, block: _Block) -> None:
        if block.call is not None and self.__dict__.get("fragments", {}).get(block.call.id, 0) > 1:
            block.call.arguments = "{}"
        super()._end(block)

    def _delta(self, index: int | None, delta: Object) -> None:
        block = self._blocks.get(index)
        if block is not None and block.call is not None and delta.get("partial_json"):
            counts = self.__dict__.setdefault("fragments", {})
            counts[block.call.id] = counts.get(block.call.id, 0) + 1
        super()._delta(index, delta)


class StopWithoutDeltasEmpties(AnthropicAccumulator):
    def _end(self, block: _Block) -> None:
        if block.call is not None and not block.call.closed:
            block.call.arguments = block.call.arguments or "{}"
        super()._end(block)


class StopEndsTheNewestCall(AnthropicAccumulator):
    def _stop(self, index: int | None) -> None:
        super()._stop(list(self._blocks)[-1] if self._blocks else index)


# Arguments that do not parse


class BracketsClosed(AnthropicAccumulator):
    def __init__(self) -> None:
        super().__init__()
        answer_of(self, rewriting_arguments(closing_brackets))


class ErrorRunsOpenCalls(AnthropicAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        if "error" in payload:
            answer_of(self, AbandonsNothing)
        return super().feed(payload, event)


# What is passed on during the stream


class HandsOnArgumentsSoFar(AnthropicAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        delta = super().feed(payload, event)
        if not mapping(mapping(payload).get("delta")).get("partial_json"):
            return delta
        block = self._blocks.get(payload["index"])
        if block is None or block.call is None:
            return delta
        call = block.call
        fragment = Fragment(call.arguments, call.id, call.name, call.number)
        return replace(delta or Delta(), tool=(fragment,))


class HandsOnCallsAgainAtTheEnd(AnthropicAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        delta = super().feed(payload, event)
        if mapping(payload).get("type") == "message_delta" and self.outcome().tool_calls:
            return replace(delta or Delta(), tool_calls=self.outcome().tool_calls)
        return delta


class HandsOnTextAtTheStop(AnthropicAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        delta = super().feed(payload, event)
        held = self.__dict__.setdefault("held", [])
        if delta is not None and delta.text:
            held.append(delta.text)
            delta = replace(delta, text="")
        if held and mapping(payload).get("type") == "content_block_stop":
            text = "".join(held)
            held.clear()
            return replace(delta or Delta(), text=text)
        return delta


class HandsOnTheThoughtsSoFar(AnthropicAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        delta = super().feed(payload, event)
        return delta and replace(delta, reasoning=self.outcome().reasoning)


class StoppedAndFinished(AnthropicAccumulator):
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        calls = outcome.tool_calls * (2 if self._stopped else 1)
        return replace(outcome, tool_calls=calls)


class SurfacesAtTheStart(AnthropicAccumulator):
    def _start(self, index: int | None, block: Any) -> None:
        super()._start(index, block)
        call = self._blocks[index].call
        if call is not None:
            self._answer.surface(call)


class McpToolsAreCalls(AnthropicAccumulator):
    def _start(self, index: int | None, block: Object) -> None:
        is_mcp = block.get("type") == "mcp_tool_use"
        super()._start(index, {**block, "type": "tool_use"} if is_mcp else block)
