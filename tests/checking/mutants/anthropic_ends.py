"""Mistakes with ends, usage, errors and policies in Messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from examples.accumulators import AnthropicAccumulator
from examples.accumulators.values import count, mapping, string
from mockllm.checking import Policy
from mockllm.checking.outcome import Outcome
from mockllm.checking.probes import Delta
from tests.checking.mutants.altered import answer_of, rewriting_errors
from tests.checking.mutants.anthropic_calls import LastFragmentOnly
from tests.checking.mutants.common import Skips

Object = Mapping[str, Any]


class RoleNotSet(AnthropicAccumulator):
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        return replace(outcome, role="assistant" if outcome.text else None)


class RoleOfTheToolResult(AnthropicAccumulator):
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        return replace(outcome, role="tool" if outcome.tool_calls else "assistant")


class IdOfTheLastObject(AnthropicAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        for name in ("message", "content_block"):
            self.id = string(mapping(payload.get(name)).get("id")) or self.__dict__.get("id")
        return super().feed(payload, event)

    def outcome(self) -> Outcome:
        return replace(super().outcome(), response_id=self.__dict__.get("id"))


class ModelOfTheLastEvent(AnthropicAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        self.model = mapping(payload.get("message")).get("model")
        return super().feed(payload, event)

    def outcome(self) -> Outcome:
        return replace(super().outcome(), model=self.__dict__.get("model"))


class ContentOfTheStartIgnored(AnthropicAccumulator):
    def _message_start(self, message: Object) -> None:
        super()._message_start({**message, "content": []})


# Usage


class UsageReplacedByTheDelta(AnthropicAccumulator):
    def _message_delta(self, value: Object) -> None:
        if value.get("usage"):
            self._tokens.clear()
        super()._message_delta(value)


class MissingCountsAreZero(AnthropicAccumulator):
    def _message_delta(self, value: Object) -> None:
        zero = {"input_tokens": 0, "cache_read_input_tokens": 0}
        super()._message_delta({**value, "usage": {**zero, **mapping(value.get("usage"))}})


class UsageOfTheStartOnly(AnthropicAccumulator):
    def _message_start(self, message: Object) -> None:
        super()._message_start(message)
        self._count_tokens(mapping(message.get("usage")))

    def _message_delta(self, value: Object) -> None:
        super()._message_delta({**value, "usage": None})


class UsageOfTheEndOnly(AnthropicAccumulator):
    def _message_start(self, message: Object) -> None:
        super()._message_start({**message, "usage": None})


class CacheCountedTwice(AnthropicAccumulator):
    def _message_delta(self, value: Object) -> None:
        usage = dict(mapping(value.get("usage")))
        for name in ("cache_read_input_tokens", "cache_creation_input_tokens"):
            if count(usage.get(name)) is not None:
                usage[name] += self._tokens.get(name, 0)
        super()._message_delta({**value, "usage": usage or None})


class CacheOfTheEndIgnored(AnthropicAccumulator):
    def _message_delta(self, value: Object) -> None:
        usage = mapping(value.get("usage"))
        kept = {name: usage[name] for name in usage if not name.startswith("cache_")}
        super()._message_delta({**value, "usage": kept})


class CacheWritesLeftOut(AnthropicAccumulator):
    def _count_tokens(self, usage: Object) -> None:
        super()._count_tokens({**usage, "cache_creation_input_tokens": None})


# Finish


class FinishGuessed(AnthropicAccumulator):
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        guess = "tool_use" if outcome.tool_calls else "end_turn"
        return replace(outcome, finish=guess if outcome.finish else None)


class UnknownStopReasonRaises(AnthropicAccumulator):
    def _message_delta(self, value: Object) -> None:
        reason = mapping(value.get("delta")).get("stop_reason")
        if reason not in (None, "end_turn", "tool_use", "max_tokens", "stop_sequence"):
            raise ValueError(f"unknown stop reason {reason!r}")
        super()._message_delta(value)


class CallsOfToolUseOnly(AnthropicAccumulator):
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        return outcome if outcome.finish == "tool_use" else replace(outcome, tool_calls=())


# Errors and cut streams


class MessageOfTheErrorLost(AnthropicAccumulator):
    def __init__(self) -> None:
        super().__init__()
        answer_of(self, rewriting_errors(lambda _: "the request failed"))


class ErrorEventIgnored(AnthropicAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        return None if "error" in payload else super().feed(payload, event)


# Input and other streams


class AppendsToTheBlock(AnthropicAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        blocks = self.__dict__.setdefault("blocks", {})
        if payload.get("type") == "content_block_start":
            blocks[payload.get("index")] = payload["content_block"]
        text = mapping(payload.get("delta")).get("text")
        delta = super().feed(payload, event)
        if text and isinstance(blocks.get(payload.get("index")), dict):
            block = blocks[payload["index"]]
            block["text"] = string(block.get("text")) + text
        return delta


class SharesItsBlocks(AnthropicAccumulator):
    _all: dict[int | None, str] = {}  # noqa: RUF012 - the mistake

    def _start(self, index: int | None, block: Object) -> None:
        super()._start(index, block)
        self._all[index] = string(block.get("text"))

    def _delta(self, index: int | None, delta: Object) -> None:
        super()._delta(index, delta)
        if index in self._blocks:
            self._all[index] = self._all.get(index, "") + string(delta.get("text"))

    def outcome(self) -> Outcome:
        blocks = sorted(self._blocks.values(), key=lambda block: block.slot)
        keys = {id(block): index for index, block in self._blocks.items()}
        if len(self._blocks) != self._count:
            return super().outcome()
        text = "".join(self._all.get(keys[id(block)], "") for block in blocks)
        return replace(super().outcome(), text=text)


SKIP = Policy(malformed="skip")

KEEP = Policy(malformed="keep")

FAIL = Policy(malformed="fail")


class SkipsOverwrittenArguments(Skips, LastFragmentOnly):
    pass


class SkipsArgumentsByPosition(Skips, AnthropicAccumulator):
    def _delta(self, index: int | None, delta: Object) -> None:
        if delta.get("type") == "input_json_delta" and self._blocks:
            index = list(self._blocks)[-1]
        super()._delta(index, delta)


class KeepsTrimmedArguments(AnthropicAccumulator):
    def __init__(self) -> None:
        super().__init__(malformed="keep")

    def _delta(self, index: int | None, delta: Object) -> None:
        super()._delta(index, {**delta, "partial_json": string(delta.get("partial_json")).strip()})


class KeepsTheBeginning(AnthropicAccumulator):
    def __init__(self) -> None:
        super().__init__(malformed="keep")

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        calls = tuple(
            replace(call, arguments=call.arguments[:20])
            if isinstance(call.arguments, str)
            else call
            for call in outcome.tool_calls
        )
        return replace(outcome, tool_calls=calls)


class UnknownToolIsRun(AnthropicAccumulator):
    pass


class UsageByMaximum(AnthropicAccumulator):
    def _count_tokens(self, usage: Object) -> None:
        known = {name: count for name, count in usage.items() if isinstance(count, int)}
        super()._count_tokens(
            {name: max(count, self._tokens.get(name, 0)) for name, count in known.items()}
        )


class UnsentInputIsAnObject(AnthropicAccumulator):
    def _end_open_blocks(self) -> None:
        for block in self._blocks.values():
            if block.call is not None and not block.call.arguments:
                self._end(block)
        super()._end_open_blocks()


# Blocks


class StopOfEveryBlockRequired(AnthropicAccumulator):
    def _end_open_blocks(self) -> None:
        for block in self._blocks.values():
            if block.call is not None:
                block.call.closed = True
        super()._end_open_blocks()


class ThinkingTrimmed(AnthropicAccumulator):
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        return replace(outcome, reasoning=outcome.reasoning.strip())


class SignatureOfTheStartOnly(AnthropicAccumulator):
    def _delta(self, index: int | None, delta: Object) -> None:
        if delta.get("type") != "signature_delta":
            super()._delta(index, delta)


class CitationsRaise(AnthropicAccumulator):
    def _delta(self, index: int | None, delta: Object) -> None:
        if delta.get("type") == "citations_delta":
            raise ValueError("unexpected delta type citations_delta")
        super()._delta(index, delta)


class StopSequenceIsTheFinish(AnthropicAccumulator):
    def _stop_reason(self, value: Object) -> None:
        super()._stop_reason(value)
        if value.get("stop_sequence"):
            self._answer.finish = string(value["stop_sequence"])


class BraceBeforeTheInput(AnthropicAccumulator):
    def _start(self, index: int | None, block: Object) -> None:
        super()._start(index, block)
        call = self._blocks[index].call
        if call is not None:
            call.arguments = "{"


class PrefixOfTheServerRemoved(AnthropicAccumulator):
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        calls = (replace(one, name=one.name.rpartition("_")[2]) for one in outcome.tool_calls)
        return replace(outcome, tool_calls=tuple(calls))


class BlocksJoinedByLines(AnthropicAccumulator):
    def outcome(self) -> Outcome:
        slots = self._answer._texts["text"]
        return replace(
            super().outcome(), text="\n".join("".join(slots[slot]) for slot in sorted(slots))
        )


class CacheIsZero(AnthropicAccumulator):
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        return replace(outcome, usage=outcome.usage and replace(outcome.usage, cached=0))


class PingClearsTheInput(AnthropicAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        if payload.get("type") == "ping":
            for call in self._answer.open_calls():
                call.arguments = ""
        return super().feed(payload, event)


class OverloadIsNoError(AnthropicAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        overloaded = mapping(payload.get("error")).get("type") == "overloaded_error"
        return None if overloaded else super().feed(payload, event)
